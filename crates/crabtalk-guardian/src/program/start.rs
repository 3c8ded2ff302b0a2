//! Starts the guarded process, inside or outside the sandbox.

use super::RESTRICTED_ARGUMENT;
use super::descriptors::{self, Stdio};
use super::frame::{self, Run, Start};
use super::proxy;
use super::replies::{Beginning, Launch, Reply, Task};
use super::scratch::{OverlayScratch, Scratch};
use crate::sandbox::{OpenedPath, Right, SandboxPolicy, apart, lacks, temporary};
use rustix::process::Pid;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

/// Longest command that is passed as an argument; the kernel's limit is 128 KiB. Longer
/// commands are passed in a file.
const MAX_ARGUMENT_BYTES: usize = 100 << 10;

/// The name of that file.
const COMMAND: &str = "crabtalk-command";

pub(super) struct Started {
    /// The process whose end is the end of the command.
    pub(super) process: i32,
    /// The socket on which the first process of the namespaces reports the exit status. Closing it
    /// ends that process, and the kernel ends all others in the namespaces.
    words: Option<UnixStream>,
    /// Dropped when the process has ended.
    _folders: (Option<Scratch>, Option<OverlayScratch>),
}

impl Started {
    /// The exit status reported from the namespace; read after the namespace has ended.
    pub(super) fn ended(self) -> Option<(Option<i32>, Option<i32>)> {
        let mut words = self.words?;
        // A process that could not be ended may keep the other end open.
        words.set_nonblocking(true).ok()?;
        match frame::read(&mut words) {
            Ok(Reply::Ended { code, signal }) => Some((code, signal)),
            _ => None,
        }
    }
}

/// Starts the process. `terminal` means that the streams are this session's terminal,
/// which is handed to the process.
pub(super) fn start(start: Start, streams: Stdio, terminal: bool) -> Result<Started, String> {
    let is_long = matches!(&start.run, Run::Shell(text) if text.len() > MAX_ARGUMENT_BYTES);
    let temporary = std::env::temp_dir();
    let scratch = (start.sandbox.is_some() || is_long)
        .then(|| Scratch::make(&temporary))
        .transpose()
        .map_err(|e| {
            format!(
                "cannot make a temporary folder in {}: {e}",
                temporary.display()
            )
        })?;
    let caches = start.sandbox.as_ref().and_then(|s| s.caches.as_ref());
    // Without a work folder the private caches start empty.
    let work = caches.and_then(|caches| OverlayScratch::make(&caches.work).ok());
    let (process, words) = match (start.sandbox, &scratch) {
        (Some(policy), Some(scratch)) => {
            let boxed = Boxed {
                policy,
                scratch,
                work: work.as_ref(),
                streams,
                terminal,
            };
            if boxed.policy.namespaces {
                boxed.apart(start.run)?
            } else {
                (boxed.restricted(start.run)?, None)
            }
        }
        (_, scratch) => {
            let shown_at = scratch.as_ref().map_or(Path::new("/"), Scratch::path);
            let launch = launch(start.run, scratch.as_ref(), shown_at)?;
            (start_free(&launch, &streams)?, None)
        }
    };
    Ok(Started {
        process,
        words,
        _folders: (scratch, work),
    })
}

/// The program and arguments. A long text goes through a file in the scratch
/// folder, whose path for the command is `shown_at`.
fn launch(run: Run, scratch: Option<&Scratch>, shown_at: &Path) -> Result<Launch, String> {
    let shells = || vec!["bash".to_owned(), "sh".to_owned()];
    let (programs, arguments) = match run {
        Run::Program { program, arguments } => (vec![program], arguments),
        Run::Shell(text) if text.len() > MAX_ARGUMENT_BYTES => {
            let scratch = scratch.ok_or("there is no temporary folder for a long command")?;
            let file = scratch.path().join(COMMAND);
            std::fs::write(&file, text)
                .map_err(|e| format!("cannot write the command to {}: {e}", file.display()))?;
            let file = shown_at.join(COMMAND);
            (shells(), vec![file.to_string_lossy().into_owned()])
        }
        Run::Shell(text) => (shells(), vec!["-c".to_owned(), text]),
    };
    Ok(Launch {
        programs,
        arguments,
        environment: Vec::new(),
    })
}

fn start_free(launch: &Launch, streams: &Stdio) -> Result<i32, String> {
    let started = launch.each(|command| {
        let command = streams.try_clone()?.give(command);
        // A separate group: `kill 0` in a shell must not hit the guardian.
        command.process_group(0).spawn()
    });
    started
        .map(|child| child.id().cast_signed())
        .map_err(|e| format!("cannot start {}: {e}", launch.programs.join(" or ")))
}

fn failed(e: io::Error) -> String {
    format!("cannot start the program in the sandbox: {e}")
}

/// A process that restricts itself.
struct Boxed<'a> {
    policy: SandboxPolicy,
    scratch: &'a Scratch,
    work: Option<&'a OverlayScratch>,
    streams: Stdio,
    terminal: bool,
}

impl Boxed<'_> {
    /// Without namespaces, the restricting process executes the program.
    fn restricted(mut self, run: Run) -> Result<i32, String> {
        self.policy.opened.push(OpenedPath {
            spot: self.scratch.spot().clone(),
            right: Right::Write,
        });
        let (child, mut control) = start_own(self.scratch.path())?;
        let task = Task::Become {
            launch: launch(run, Some(self.scratch), self.scratch.path())?,
            policy: Box::new(self.policy),
        };
        frame::write(&mut control, &task)
            .and_then(|()| self.streams.send(&control))
            .map_err(failed)?;
        match frame::read(&mut control) {
            // The kernel closed the socket when the program was executed.
            Err(_) => Ok(child.id().cast_signed()),
            Ok(word) => Err(unexpected(word)),
        }
    }

    fn apart(self, run: Run) -> Result<(i32, Option<UnixStream>), String> {
        let temporary = temporary(&self.policy);
        let (child, mut control) = start_own(Path::new(temporary))?;
        if self.terminal {
            self.give_terminal(&child).map_err(failed)?;
        }
        frame::write(&mut control, &Task::Leave).map_err(failed)?;
        let word: Reply = frame::read(&mut control).map_err(failed)?;
        if word != Reply::Left {
            return Err(unexpected(word));
        }
        let lacks = |e: io::Error| lacks(&format!("cannot map users into a namespace: {e}"));
        apart::map_ids(child.id().cast_signed()).map_err(lacks)?;
        frame::write(&mut control, &Task::Go).map_err(failed)?;
        let word: Reply = frame::read(&mut control).map_err(failed)?;
        let Reply::Began { process } = word else {
            return Err(unexpected(word));
        };
        self.begin(run, process, control)
    }

    /// Makes the process group of the new process the terminal's foreground, so that
    /// reading and drawing do not stop it, and typed signals do not reach the
    /// guardian.
    fn give_terminal(&self, child: &Child) -> io::Result<()> {
        let group = Pid::from_raw(child.id().cast_signed());
        let group = group.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(rustix::termios::tcsetpgrp(&self.streams.stdin, group)?)
    }

    /// Sends the order to the first process.
    fn begin(
        self,
        run: Run,
        process: i32,
        mut control: UnixStream,
    ) -> Result<(i32, Option<UnixStream>), String> {
        let shown_at = Path::new(temporary(&self.policy));
        let launch = launch(run, Some(self.scratch), shown_at)?;
        let hosts = self.policy.hosts.clone();
        let beginning = Beginning {
            policy: self.policy,
            scratch: self.scratch.spot().clone(),
            overlays: self.work.map(OverlayScratch::overlays),
            launch,
            terminal: self.terminal,
        };
        let begun = frame::write(&mut control, &Task::Begin(Box::new(beginning)))
            .and_then(|()| self.streams.send(&control))
            .and_then(|()| match frame::read(&mut control) {
                Ok(Reply::Listening) => {
                    let listener = descriptors::receive(&control)?;
                    proxy::serve(listener, hosts)?;
                    frame::read(&mut control)
                }
                other => other,
            });
        match begun {
            Ok(Reply::Started) => Ok((process, Some(control))),
            Ok(word) => Err(unexpected(word)),
            Err(e) => Err(lacks(&format!("the first sandbox process has ended: {e}"))),
        }
    }
}

/// Starts this program as a process that restricts itself.
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

/// Explains an unexpected answer.
fn unexpected(word: Reply) -> String {
    match word {
        Reply::Failed { why } => why,
        word @ (Reply::Left
        | Reply::Began { .. }
        | Reply::Listening
        | Reply::Started
        | Reply::Ended { .. }) => {
            format!("cannot start the program in the sandbox: unexpected message {word:?}")
        }
    }
}
