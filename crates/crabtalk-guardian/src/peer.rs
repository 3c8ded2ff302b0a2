//! Refuses socket peers that are processes of an agent's command (GATE-5), since they
//! could approve their own calls.
//!
//! Two properties identify such a process, and forking, waiting or dying removes
//! neither. It has a lower limit than the daemon (see the `mark` module),
//! and the daemon is its ancestor, since it is the reaper of processes that
//! lose their parent. The limit survives everything except that root can raise it; the
//! ancestry holds for root too, but not beyond a foreign pid namespace.
//!
//! Invariants: a peer that cannot be read, or ends during the check, is refused; the
//! answer applies to the process that connected, which a pidfd identifies, and
//! not to a later process with the same id.

use crate::mark;
use crate::processes::{self, Stat};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

#[cfg(test)]
mod tests;

/// Maximum number of ancestors that are read; real chains have a dozen.
const MAX_ANCESTORS: usize = 512;

/// Maximum restarts of the walk after an ancestor ended. A shell that leaves a
/// background job ends once; more ends suggest an attempt to hide.
const MAX_RESTARTS: usize = 8;

/// The reason for refusing a peer.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// An agent's command is among the peer's ancestors; the connection is closed.
    #[error("processes that an agent started may not connect to the daemon")]
    Command,
    /// The peer's ancestors cannot be read; it is refused like an agent's command.
    #[error(
        "the daemon cannot read process {pid}, which is this client or one of its ancestors, so it \
         cannot rule out that an agent started the client; check for processes that end at once, \
         or for a /proc mounted with `hidepid`"
    )]
    Unreadable {
        /// The process that cannot be read.
        pid: i32,
        /// The system's error.
        source: io::Error,
    },
    /// The daemon lacks memory or descriptors, independently of the peer.
    #[error("the daemon cannot identify the client: {0}; try again")]
    Exhausted(#[source] io::Error),
}

/// Judges peers. The daemon has one instance.
#[derive(Debug)]
pub struct Peers {
    /// The limit of an unmarked peer, read once, because a command may lower the daemon's own limit
    /// later.
    unmarked: u64,
}

impl Default for Peers {
    fn default() -> Self {
        Self::new()
    }
}

impl Peers {
    /// Creates a judge; must be called before the first command starts.
    pub fn new() -> Self {
        Self {
            unmarked: mark::own(),
        }
    }

    /// The limit of a process that no guardian started.
    pub(crate) fn unmarked(&self) -> u64 {
        self.unmarked
    }

    /// Checks whether a peer may connect. `handle` is a pidfd from the socket; without it, as
    /// on Linux before 6.5, only the process id identifies the peer.
    ///
    /// # Errors
    /// [`Refusal`] for a process of an agent's command, and for a process that cannot be
    /// read.
    pub fn judge(
        &self,
        pid: i32,
        handle: Result<Option<BorrowedFd<'_>>, &io::Error>,
    ) -> Result<(), Refusal> {
        let me = std::process::id().cast_signed();
        if pid == me {
            return Ok(());
        }
        let handle = handle.map_err(|e| match e.raw_os_error() {
            Some(errno) => refusal(pid, io::Error::from_raw_os_error(errno)),
            None => refusal(pid, e.kind().into()),
        })?;
        let peer = look(pid)?;
        let own_handle;
        let handle = match handle {
            Some(handle) => handle,
            None => {
                own_handle = peer.process.open().map_err(|e| refusal(pid, e))?;
                own_handle.as_fd()
            }
        };
        let free = self.is_free(&peer, me)?;
        // The process is still alive, so its id was not reused while it was read.
        if processes::has_ended(handle).map_err(Refusal::Exhausted)? {
            return Err(refusal(pid, io::ErrorKind::NotFound.into()));
        }
        if free { Ok(()) } else { Err(Refusal::Command) }
    }

    fn is_free(&self, peer: &Stat, me: i32) -> Result<bool, Refusal> {
        let pid = peer.process.pid;
        let limit = processes::limits(pid)
            .and_then(|text| {
                mark::parse(&text)
                    .ok_or_else(|| io::Error::other(format!("cannot parse /proc/{pid}/limits")))
            })
            .map_err(|e| refusal(pid, e))?;
        Ok(limit >= self.unmarked && !descends(*peer, me, &mut look)?)
    }
}

fn look(pid: i32) -> Result<Stat, Refusal> {
    Stat::of(pid).map_err(|e| refusal(pid, e))
}

fn refusal(pid: i32, source: io::Error) -> Refusal {
    use rustix::io::Errno;
    let own_lack = [Errno::MFILE, Errno::NFILE, Errno::NOMEM].map(Errno::raw_os_error);
    match source.raw_os_error() {
        Some(errno) if own_lack.contains(&errno) => Refusal::Exhausted(source),
        _ => Refusal::Unreadable { pid, source },
    }
}

/// Whether `peer` descends from `me`. A parent is accepted if it is older than the
/// child, since a later process with its id is younger, or if the child still
/// names it after it was read. So every step leads from a process to
/// its parent; a broken chain is walked again.
fn descends(
    peer: Stat,
    me: i32,
    look: &mut dyn FnMut(i32) -> Result<Stat, Refusal>,
) -> Result<bool, Refusal> {
    let pid = peer.process.pid;
    let mut broken = None;
    for restart in 0..=MAX_RESTARTS {
        // A restart reads the peer again; if the peer has ended, the check fails.
        let mut at = if restart == 0 { peer } else { look(pid)? };
        broken = None;
        for _ in 0..MAX_ANCESTORS {
            if at.parent == me {
                return Ok(true);
            }
            // The first process of a pid namespace has no visible parent.
            if at.parent <= 1 {
                return Ok(false);
            }
            let parent = look(at.parent);
            if let Ok(parent) = &parent
                && parent.process.is_older_than(&at.process)
            {
                at = *parent;
                continue;
            }
            let child = look(at.process.pid);
            match (parent, child) {
                (Err(Refusal::Exhausted(e)), _) | (_, Err(Refusal::Exhausted(e))) => {
                    return Err(Refusal::Exhausted(e));
                }
                // The id is free, or was given to another process.
                (_, Err(e)) => broken = Some(e),
                (_, Ok(child)) if child.process != at.process => {
                    broken = Some(refusal(at.process.pid, io::ErrorKind::NotFound.into()));
                }
                // The child has another parent now: repeat the step.
                (_, Ok(child)) if child.parent != at.parent => at = child,
                // The named parent cannot be read: it is hidden.
                (Err(hidden), Ok(_)) => return Err(hidden),
                (Ok(parent), Ok(_)) => at = parent,
            }
            if broken.is_some() {
                break;
            }
        }
        if broken.is_none() {
            return Err(refusal(
                at.process.pid,
                io::Error::other(format!(
                    "the process has more than {MAX_ANCESTORS} ancestors"
                )),
            ));
        }
    }
    Err(broken.unwrap_or_else(|| refusal(pid, io::ErrorKind::NotFound.into())))
}
