//! How many files this process may have open at once.
//!
//! Invariant: a daemon that is ready has descriptors to serve with; one that has not
//! says so and does not start.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The fewest with which a daemon starts. It holds about fifteen by itself, a client
/// takes two while it is looked at and one from then on, an open conversation one, a
/// command of an agent half a dozen while it starts, and a call to a model one: a
/// person with a few conversations and commands at a time.
const NEEDED: u64 = 64;

/// Refuses to start with a limit below which nobody would be served.
pub(crate) fn suffice() -> anyhow::Result<()> {
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < NEEDED => anyhow::bail!(
            "the daemon needs {NEEDED} open files at once, and may have {most} here: raise the limit \
             with `ulimit -n 1024` before it is started; where that is forbidden, an administrator \
             does (`LimitNOFILE=1024` in a unit of systemd, `nofile` in /etc/security/limits.conf)"
        ),
        _ => Ok(()),
    }
}

/// Lets the process open as many files as the system allows it: a log in
/// memory holds one, and so does a connection. Returns what the limit was,
/// which is what commands get: some close every number below it one by one, and
/// `select` cannot wait for high ones.
pub(crate) fn raise_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    limit.current
}
