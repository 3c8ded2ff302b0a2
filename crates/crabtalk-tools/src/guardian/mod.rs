//! The guardian: a small process that owns one command and everything that
//! descends from it.
//!
//! The daemon starts it with a socket as stdin and one pipe as stdout and
//! stderr. It reads what to run, becomes the reaper of its descendants (so
//! that neither `setsid` nor a double fork leads out), starts the shell, and
//! ends the whole tree when the shell ends or when the socket's other end is
//! closed, which is how cancellation, a timeout and the daemon's death look.
//! Then it reports over the socket and exits.
//!
//! Invariant: when a guardian has reported, nothing it started is alive, but
//! for the processes that the report names.

mod frame;
#[cfg(target_os = "linux")]
mod restricted;
#[cfg(target_os = "linux")]
mod scratch;
#[cfg(target_os = "linux")]
mod shell;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(target_os = "linux")]
mod words;

pub(crate) use frame::{MAX_COMMAND_BYTES, Report, Start, encode};

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// First argument of a guardian's command line: what the binary dispatches on
/// before anything else, and how a guardian is recognised among a peer's
/// ancestors.
pub const GUARDIAN_ARGUMENT: &str = "__guardian";

/// Last argument of the process that restricts itself and becomes the shell.
#[cfg(target_os = "linux")]
const RESTRICTED_ARGUMENT: &str = "__sandbox-exec";

/// How the daemon starts a guardian: itself with [`GUARDIAN_ARGUMENT`].
#[derive(Debug, Clone)]
pub struct GuardianCommand {
    /// The program; it calls [`main`] when it sees the argument.
    pub program: PathBuf,
    /// Its arguments, [`GUARDIAN_ARGUMENT`] first.
    pub args: Vec<OsString>,
}

impl GuardianCommand {
    /// A program that understands [`GUARDIAN_ARGUMENT`].
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: vec![GUARDIAN_ARGUMENT.into()],
        }
    }
}

/// What the binary does when its first argument is [`GUARDIAN_ARGUMENT`].
#[cfg(target_os = "linux")]
pub fn main() -> ExitCode {
    if std::env::args_os()
        .next_back()
        .is_some_and(|a| a == RESTRICTED_ARGUMENT)
    {
        restricted::main()
    } else {
        watch::main()
    }
}

/// What the binary does when its first argument is [`GUARDIAN_ARGUMENT`].
#[cfg(not(target_os = "linux"))]
pub fn main() -> ExitCode {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "the guardian needs Linux");
    ExitCode::FAILURE
}
