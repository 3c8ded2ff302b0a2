//! Starts the shell of a command, in the sandbox or outside.

use super::RESTRICTED_ARGUMENT;
use super::frame::{self, Start};
use super::scratch::Scratch;
use super::words::{Beginning, Task, Word};
use crate::sandbox::{Namespaces, SandboxPolicy, apart, bubblewrap, lacks, temporary};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The kernel takes single arguments up to 128 KiB; longer commands go
/// through a file.
const MAX_ARGUMENT_BYTES: usize = 100 << 10;

/// A shell at work.
pub(super) struct Shell {
    /// The process that ends when the shell does.
    pub(super) process: i32,
    /// Where the first process of the shell's namespaces says how it ended.
    /// Closed, it ends, and the kernel ends all others in there.
    words: Option<UnixStream>,
    /// Kept for as long as the command runs.
    _scratch: Option<Scratch>,
}

impl Shell {
    /// How the shell ended, as its own namespace saw it; for when that is gone.
    pub(super) fn ended(self) -> Option<(Option<i32>, Option<i32>)> {
        let mut words = self.words?;
        // Whoever could not be ended may hold the other end.
        words.set_nonblocking(true).ok()?;
        match frame::read(&mut words) {
            Ok(Word::Ended { code, signal }) => Some((code, signal)),
            _ => None,
        }
    }
}

pub(super) fn start(start: Start) -> Result<Shell, String> {
    let is_long = start.command.len() > MAX_ARGUMENT_BYTES;
    let scratch = (start.sandbox.is_some() || is_long)
        .then(Scratch::make)
        .transpose()
        .map_err(|e| format!("cannot make a temporary folder: {e}"))?;
    let (process, words) = match (start.sandbox, &scratch) {
        (Some(policy), Some(scratch)) => {
            let boxed = Boxed {
                policy,
                scratch,
                command: start.command,
                is_long,
            };
            match boxed.policy.namespaces.clone() {
                Namespaces::None => (boxed.restricted()?, None),
                Namespaces::BuiltIn => boxed.apart()?,
                Namespaces::Bubblewrap(program) => boxed.bubblewrapped(&program)?,
            }
        }
        (_, scratch) => (
            start_free(&arguments(start.command, scratch.as_ref())?)?,
            None,
        ),
    };
    Ok(Shell {
        process,
        words,
        _scratch: scratch,
    })
}

/// The shell's arguments; a command that is too long goes through a file of
/// the folder that it then has.
fn arguments(command: String, scratch: Option<&Scratch>) -> Result<Vec<String>, String> {
    match scratch {
        Some(scratch) if command.len() > MAX_ARGUMENT_BYTES => {
            let file = command_file(&command, scratch)?;
            Ok(vec![file.to_string_lossy().into_owned()])
        }
        _ => Ok(vec!["-c".to_owned(), command]),
    }
}

fn command_file(command: &str, scratch: &Scratch) -> Result<PathBuf, String> {
    let file = scratch.path().join("command");
    std::fs::write(&file, command)
        .map_err(|e| format!("cannot write the command to {}: {e}", file.display()))?;
    Ok(file)
}

/// Starts `bash`, or `sh` where there is none.
fn start_free(arguments: &[String]) -> Result<i32, String> {
    let start = |program: &str| {
        // A group of its own: `kill 0` in the shell must not hit the guardian.
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
    };
    let shell = match start("bash") {
        Err(e) if e.kind() == io::ErrorKind::NotFound => start("sh"),
        other => other,
    };
    shell
        .map(|child| child.id().cast_signed())
        .map_err(|e| format!("cannot start the shell: {e}"))
}

fn failed(e: io::Error) -> String {
    format!("cannot start the sandboxed shell: {e}")
}

/// A command of the sandbox.
struct Boxed<'a> {
    policy: SandboxPolicy,
    scratch: &'a Scratch,
    command: String,
    is_long: bool,
}

impl Boxed<'_> {
    /// Without namespaces: the process that restricts itself becomes the shell.
    fn restricted(mut self) -> Result<i32, String> {
        self.policy.write.push(self.scratch.spot().clone());
        let (child, mut control) = start_own(self.scratch.path())?;
        let task = Task::Become {
            arguments: arguments(self.command, Some(self.scratch))?,
            policy: self.policy,
        };
        frame::write(&mut control, &task).map_err(failed)?;
        match frame::read(&mut control) {
            // Closed by the kernel at the moment in which it becomes the shell.
            Err(_) => Ok(child.id().cast_signed()),
            Ok(word) => Err(unexpected(word)),
        }
    }

    fn apart(self) -> Result<(i32, Option<UnixStream>), String> {
        let temporary = temporary(&self.policy);
        let (child, mut control) = start_own(Path::new(temporary))?;
        let network = self.policy.network;
        frame::write(&mut control, &Task::Leave { network }).map_err(failed)?;
        let word: Word = frame::read(&mut control).map_err(failed)?;
        if word != Word::Left {
            return Err(unexpected(word));
        }
        let lacks = |e: io::Error| lacks(&format!("users cannot be told to a namespace: {e}"));
        apart::map_ids(child.id().cast_signed()).map_err(lacks)?;
        frame::write(&mut control, &Task::Go).map_err(failed)?;
        let word: Word = frame::read(&mut control).map_err(failed)?;
        let Word::Began { process } = word else {
            return Err(unexpected(word));
        };
        self.begin(process, control, false)
    }

    fn bubblewrapped(self, program: &Path) -> Result<(i32, Option<UnixStream>), String> {
        let own = std::env::current_exe().map_err(failed)?;
        let file = self
            .is_long
            .then(|| command_file(&self.command, self.scratch))
            .transpose()?;
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let child = Command::new(program)
            .args(bubblewrap::arguments(
                &self.policy,
                &own,
                self.scratch.path(),
                file.as_deref(),
            ))
            .arg(bubblewrap::PROGRAM)
            .args(std::env::args_os().skip(1))
            .arg(RESTRICTED_ARGUMENT)
            .env("TMPDIR", temporary(&self.policy))
            .stdin(OwnedFd::from(theirs))
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        self.begin(child.id().cast_signed(), ours, true)
    }

    /// Tells the first process what to do.
    fn begin(
        self,
        process: i32,
        mut control: UnixStream,
        mounted: bool,
    ) -> Result<(i32, Option<UnixStream>), String> {
        let beginning = Beginning {
            policy: self.policy,
            scratch: self.scratch.spot().clone(),
            command: self.command,
            by_file: self.is_long,
            mounted,
        };
        let begun = frame::write(&mut control, &Task::Begin(Box::new(beginning)))
            .and_then(|()| frame::read(&mut control));
        match begun {
            Ok(Word::Started) => Ok((process, Some(control))),
            Ok(word) => Err(unexpected(word)),
            Err(e) => Err(lacks(&format!("what makes the namespaces has ended: {e}"))),
        }
    }
}

/// Starts a process of this very program that shuts itself in.
fn start_own(temporary: &Path) -> Result<(Child, UnixStream), String> {
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let child = Command::new("/proc/self/exe")
        .args(std::env::args_os().skip(1))
        .arg(RESTRICTED_ARGUMENT)
        .env("TMPDIR", OsStr::new(temporary))
        .stdin(OwnedFd::from(theirs))
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    Ok((child, ours))
}

/// Why nothing was started.
fn unexpected(word: Word) -> String {
    match word {
        Word::Failed { why } => why,
        word @ (Word::Left | Word::Began { .. } | Word::Started | Word::Ended { .. }) => {
            format!("cannot start the sandboxed shell: it said {word:?}")
        }
    }
}
