//! The guardian: a small process that owns another process and all its
//! descendants.
//!
//! The daemon starts it with a socket as stdin, which carries the order and
//! the streams of the process. The guardian becomes the reaper of its descendants, so
//! that neither `setsid` nor a double fork escapes it, starts the process, and
//! ends the whole tree when the process ends or when the socket's other end is
//! closed: by cancellation, by a timeout, or by the daemon's death.
//! Then it reports over the socket and exits.
//!
//! Invariants: after the report of a guardian, all processes that it started have ended,
//! except those that the report names; the guardian keeps no stream open, so
//! that readers see the end of the streams.

mod descriptors;
mod frame;
mod leftovers;
mod proxy;
mod replies;
mod restricted;
mod scratch;
mod start;
mod terminal;
mod watch;

pub(crate) use descriptors::Stdio;
pub use frame::{MAX_COMMAND_BYTES, Run};
pub(crate) use frame::{Report, Start, encode};
pub use terminal::TerminalCommand;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// First argument of a guardian, which [`enter`] checks and by which a guardian is recognised among a peer's
/// ancestors.
pub const GUARDIAN_ARGUMENT: &str = "__guardian";

/// Second argument for a program that is started with the mark.
const MARKED_ARGUMENT: &str = "__marked";

/// Last argument of the process that restricts itself and then executes the shell.
const RESTRICTED_ARGUMENT: &str = "__sandbox-exec";

/// The command line of a guardian: the daemon's program with [`GUARDIAN_ARGUMENT`].
#[derive(Debug, Clone)]
pub struct GuardianCommand {
    /// The program; it calls [`enter`].
    pub program: PathBuf,
    /// The arguments; [`GUARDIAN_ARGUMENT`] is the first.
    pub args: Vec<OsString>,
    /// Whether the program is this one.
    is_own: bool,
}

/// The kernel's link to the running program.
const RUNNING: &str = "/proc/self/exe";

impl GuardianCommand {
    /// Creates a command line for a program that calls [`enter`].
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: vec![GUARDIAN_ARGUMENT.into()],
            is_own: false,
        }
    }

    /// Creates a command line for this program.
    ///
    /// # Errors
    /// The system does not tell the program's path.
    pub fn own() -> io::Result<Self> {
        let program = std::env::current_exe()?;
        Ok(Self {
            is_own: true,
            ..Self::new(program)
        })
    }

    /// The command line that starts a program with the mark but without a guardian;
    /// [`Peers`](crate::Peers) refuses it and its descendants.
    pub fn marked(&self, words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
        let mut all = vec![self.program.as_os_str().to_owned()];
        all.extend(self.args.iter().cloned());
        all.push(MARKED_ARGUMENT.into());
        all.extend(words);
        all
    }

    /// The program to execute: the running one by the kernel's link, since another version may
    /// have replaced its file.
    pub(crate) fn program(&self) -> &Path {
        if self.is_own {
            Path::new(RUNNING)
        } else {
            &self.program
        }
    }
}

/// Runs the guardian if this process was started as one; the binary calls it
/// first and exits with the returned code.
pub fn enter() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let called = arguments.nth(1).is_some_and(|a| a == GUARDIAN_ARGUMENT);
    called.then(main)
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(2).collect();
    match arguments.as_slice() {
        [.., last] if last == RESTRICTED_ARGUMENT => restricted::main(),
        [first, rest @ ..] if first == terminal::ARGUMENT => terminal::main(rest),
        [first, rest @ ..] if first == MARKED_ARGUMENT => exec_marked(rest),
        _ => watch::main(),
    }
}

/// Marks this process and executes the program.
fn exec_marked(words: &[OsString]) -> ExitCode {
    use std::io::Write;
    use std::os::unix::process::CommandExt;
    let error = match (words, crate::mark::mark_this_process()) {
        ([program, arguments @ ..], Ok(())) => {
            let error = std::process::Command::new(program).args(arguments).exec();
            format!("cannot run {}: {error}", program.display())
        }
        ([], _) => "no program given".into(),
        (_, Err(error)) => format!("cannot mark the program's processes: {error}"),
    };
    let _ = writeln!(std::io::stderr(), "{error}");
    ExitCode::FAILURE
}
