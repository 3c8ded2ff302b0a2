//! The guardian: a small process that owns another one and everything that
//! descends from it.
//!
//! The daemon starts it with a socket as stdin, over which come the streams of
//! the process and what to run. It becomes the reaper of its descendants (so
//! that neither `setsid` nor a double fork leads out), starts the process, and
//! ends the whole tree when the process ends or when the socket's other end is
//! closed, which is how cancellation, a timeout and the daemon's death look.
//! Then it reports over the socket and exits.
//!
//! Invariants: when a guardian has reported, nothing it started is alive, but
//! for the processes that the report names; it holds none of the streams, so
//! that who reads them sees their end.

mod descriptors;
mod frame;
mod leftovers;
mod proxy;
mod restricted;
mod scratch;
mod start;
mod terminal;
mod watch;
mod words;

pub(crate) use descriptors::Stdio;
pub use frame::{MAX_COMMAND_BYTES, Run};
pub(crate) use frame::{Report, Start, encode};
pub use terminal::TerminalCommand;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// First argument of a guardian's command line: what [`enter`] looks for, and how a guardian is recognised among a peer's
/// ancestors.
pub const GUARDIAN_ARGUMENT: &str = "__guardian";

/// Follows [`GUARDIAN_ARGUMENT`] before a program that is started with the mark.
const MARKED_ARGUMENT: &str = "__marked";

/// Last argument of the process that restricts itself and becomes the shell.
const RESTRICTED_ARGUMENT: &str = "__sandbox-exec";

/// How the daemon starts a guardian: itself with [`GUARDIAN_ARGUMENT`].
#[derive(Debug, Clone)]
pub struct GuardianCommand {
    /// The program; it calls [`enter`].
    pub program: PathBuf,
    /// Its arguments, [`GUARDIAN_ARGUMENT`] first.
    pub args: Vec<OsString>,
    /// Whether it is this program.
    is_own: bool,
}

/// The kernel's name for the running program.
const RUNNING: &str = "/proc/self/exe";

impl GuardianCommand {
    /// A program that understands [`GUARDIAN_ARGUMENT`].
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: vec![GUARDIAN_ARGUMENT.into()],
            is_own: false,
        }
    }

    /// This program.
    ///
    /// # Errors
    /// The system does not say where it lies.
    pub fn own() -> io::Result<Self> {
        let program = std::env::current_exe()?;
        Ok(Self {
            is_own: true,
            ..Self::new(program)
        })
    }

    /// The words that start a program with the mark of a guardian's processes and
    /// without a guardian: [`Peers`](crate::Peers) refuse it and its descendants.
    pub fn marked(&self, words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
        let mut all = vec![self.program.as_os_str().to_owned()];
        all.extend(self.args.iter().cloned());
        all.push(MARKED_ARGUMENT.into());
        all.extend(words);
        all
    }

    /// The program to execute: the running one as the kernel has it, since its
    /// file may have been replaced by another version.
    pub(crate) fn program(&self) -> &Path {
        if self.is_own {
            Path::new(RUNNING)
        } else {
            &self.program
        }
    }
}

/// Plays the guardian if this process was started as one; the binary calls it
/// first of all and exits with what it returns.
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

/// Marks this process and becomes the program.
fn exec_marked(words: &[OsString]) -> ExitCode {
    use std::io::Write;
    use std::os::unix::process::CommandExt;
    let error = match (words, crate::mark::mark_this_process()) {
        ([program, arguments @ ..], Ok(())) => {
            let error = std::process::Command::new(program).args(arguments).exec();
            format!("cannot run {}: {error}", program.display())
        }
        ([], _) => "no program was named".into(),
        (_, Err(error)) => format!("cannot mark the program's processes: {error}"),
    };
    let _ = writeln!(std::io::stderr(), "{error}");
    ExitCode::FAILURE
}
