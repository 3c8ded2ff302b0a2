//! Starts processes under guardians and waits for their end.
//!
//! Invariant: a guardian's task outlives its caller until the guardian
//! has ended; dropping a [`Child`] only signals that task. Therefore
//! a drop returns immediately and leaves no process behind.

use crate::program::{GuardianCommand, Report, Run, Start, Stdio, encode};
use crate::reaper::{Children, Registration};
use crate::sandbox::SandboxPolicy;
use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio as Inherited;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Time for a guardian to end its tree before the guardian itself is killed. Its limits
/// add up to 0.8 s; a stopped guardian never ends.
const END_WITHIN: Duration = Duration::from_millis(900);

/// Longest report: the process ids that could not be ended.
const MAX_REPORT_BYTES: usize = 64 << 10;

/// A process to run, with its surroundings.
#[derive(Debug)]
pub struct Command {
    /// The program, or a text for the shell.
    pub run: Run,
    /// The complete environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The working folder.
    pub cwd: PathBuf,
    /// The sandbox; `None` gives it the rights of this process.
    pub sandbox: Option<SandboxPolicy>,
    /// The soft limit of open files; `None` inherits this process's.
    pub open_files: Option<u64>,
}

/// The streams between a process and its starter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// No input, and one pipe for standard output and error, which keeps the order of
    /// writes.
    Merged,
    /// Three separate pipes.
    Three,
}

/// An error before a process was started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command exceeds the guardian's frame limit: shorten it.
    #[error("cannot describe the command: {0}")]
    Describe(#[source] io::Error),
    /// The system cannot start more processes, or the program is missing or not executable.
    #[error("cannot start the guardian {program}: {source}", program = program.display())]
    Start {
        /// The guardian's program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// How a guarded process ended. Its descendants have ended as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitStatus {
    /// It ended, with or without our signal.
    Ended {
        /// Its exit code, if it exited.
        code: Option<i32>,
        /// The signal that ended it, if one did.
        signal: Option<i32>,
        /// Processes that could not be ended, mostly those of other users.
        left: Vec<i32>,
    },
    /// It did not start.
    NotStarted {
        /// The reason, in words.
        why: String,
    },
    /// Its guardian was killed; its processes were ended by this process.
    GuardianKilled,
    /// Waiting for its guardian failed; the guardian was told to end.
    Lost {
        /// The reason.
        why: String,
    },
}

impl From<Report> for ExitStatus {
    fn from(report: Report) -> Self {
        match report {
            Report::Ended { code, signal, left } => Self::Ended { code, signal, left },
            Report::NotStarted { why } => Self::NotStarted { why },
        }
    }
}

/// Starts processes, and ends them all when it is shut down.
#[derive(Debug, Clone)]
pub struct Guardian {
    command: GuardianCommand,
    children: Children,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Guardian {
    /// Creates a starter that runs guardians by `command` and registers them in `children`.
    pub fn new(command: GuardianCommand, children: Children) -> Self {
        Self {
            command,
            children,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Starts a process under a guardian. [`Child::wait`] reports that the process could not be
    /// started; an error here means that the guardian could not.
    ///
    /// Must be called within a runtime.
    pub fn spawn(&self, command: Command, streams: Streams) -> Result<Child, Error> {
        let start = Start {
            run: command.run,
            sandbox: command.sandbox,
            open_files: command.open_files,
        };
        let told = encode(&start).map_err(Error::Describe)?;
        let started = self.start(&command.environment, &command.cwd, streams);
        let (pipes, guard) = started.map_err(|source| Error::Start {
            program: self.command.program.clone(),
            source,
        })?;
        let cancel = self.stop.child_token();
        let (tell, ended) = oneshot::channel();
        let (children, stop) = (self.children.clone(), cancel.clone());
        self.tasks.spawn(async move {
            // The caller may have dropped the child.
            let _ = tell.send(guard.attend(&told, &stop, &children).await);
        });
        let (stdin, stdout, stderr) = pipes;
        Ok(Child {
            stdin,
            stdout,
            stderr,
            ended,
            end: None,
            cancel: cancel.drop_guard(),
        })
    }

    /// Ends all started processes and waits for them.
    pub async fn shut_down(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn start(
        &self,
        environment: &[(OsString, OsString)],
        cwd: &Path,
        streams: Streams,
    ) -> io::Result<(Pipes, Guard)> {
        let (pipes, theirs) = pipes(streams)?;
        let (control, their_control) = std::os::unix::net::UnixStream::pair()?;
        theirs.send(&control)?;
        drop(theirs);
        control.set_nonblocking(true)?;
        let mut started = tokio::process::Command::new(self.command.program());
        started
            .arg0(&self.command.program)
            .args(&self.command.args)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir(cwd)
            .stdin(OwnedFd::from(their_control))
            .stdout(Inherited::null())
            .stderr(Inherited::null());
        let (child, known) = self.children.spawn(&mut started)?;
        let guard = Guard {
            child,
            _known: known,
            control: UnixStream::from_std(control)?,
        };
        Ok((pipes, guard))
    }
}

/// A guarded process. Dropping it ends the process and its descendants.
#[derive(Debug)]
pub struct Child {
    /// Its standard input.
    pub stdin: Option<Sender>,
    /// Its standard output.
    pub stdout: Option<Receiver>,
    /// Its standard error.
    pub stderr: Option<Receiver>,
    ended: oneshot::Receiver<ExitStatus>,
    end: Option<ExitStatus>,
    cancel: DropGuard,
}

impl Child {
    /// Waits until the process and its descendants have ended. May be dropped and
    /// called again.
    pub async fn wait(&mut self) -> ExitStatus {
        if let Some(end) = &self.end {
            return end.clone();
        }
        let end = (&mut self.ended)
            .await
            .unwrap_or_else(|_| ExitStatus::Lost {
                why: "the task that watches the guardian has ended".to_owned(),
            });
        self.end.insert(end).clone()
    }

    /// Ends the process and its descendants: by SIGTERM, after 200 ms by SIGKILL.
    /// [`wait`](Self::wait) returns when they have ended.
    pub fn kill(&mut self) {
        self.cancel.token().cancel();
    }
}

/// This side of a process's streams.
type Pipes = (Option<Sender>, Option<Receiver>, Option<Receiver>);

fn pipes(streams: Streams) -> io::Result<(Pipes, Stdio)> {
    let (output, into) = io::pipe()?;
    let output = Some(Receiver::from_owned_fd(output.into())?);
    match streams {
        Streams::Merged => {
            let theirs = Stdio {
                stdin: File::open("/dev/null")?.into(),
                stderr: into.try_clone()?.into(),
                stdout: into.into(),
            };
            Ok(((None, output, None), theirs))
        }
        Streams::Three => {
            let (from, input) = io::pipe()?;
            let (complaints, complain) = io::pipe()?;
            let theirs = Stdio {
                stdin: from.into(),
                stdout: into.into(),
                stderr: complain.into(),
            };
            let input = Some(Sender::from_owned_fd(input.into())?);
            let complaints = Some(Receiver::from_owned_fd(complaints.into())?);
            Ok(((input, output, complaints), theirs))
        }
    }
}

/// A running guardian.
struct Guard {
    child: tokio::process::Child,
    _known: Registration,
    control: UnixStream,
}

impl Guard {
    /// Sends the order and waits for the guardian to exit; ends it on `stop`.
    async fn attend(
        mut self,
        told: &[u8],
        stop: &CancellationToken,
        children: &Children,
    ) -> ExitStatus {
        let mut unsent = told;
        let mut stopped = None;
        let mut killed = false;
        let ended = loop {
            let listening = stopped.is_none();
            let last_word = stopped.unwrap_or_else(Instant::now);
            tokio::select! {
                sent = self.control.write(unsent), if listening && !unsent.is_empty() => match sent {
                    Ok(sent) => unsent = &unsent[sent..],
                    // The guardian is gone or is another program; its exit status shows that.
                    Err(_) => unsent = &[],
                },
                ended = self.child.wait() => break ended,
                () = stop.cancelled(), if listening => {
                    stopped = Some(Instant::now() + END_WITHIN);
                    // Closing the socket tells the guardian to end, unless it is stopped.
                    let _ = self.control.shutdown().await;
                    wake(&self.child);
                }
                () = sleep_until(last_word), if !listening && !killed => {
                    killed = true;
                    end_guardian(&mut self.child).await;
                }
            }
        };
        if let Err(e) = ended {
            // Dropping the socket ends the guardian.
            return ExitStatus::Lost { why: e.to_string() };
        }
        let report = report(&self.control);
        drop(self);
        if report.is_none() {
            // The guardian was killed, and its processes were re-parented to this one.
            children.sweep().await;
        }
        report.map_or(ExitStatus::GuardianKilled, ExitStatus::from)
    }
}

/// Continues a guardian that its command stopped with SIGSTOP.
fn wake(child: &tokio::process::Child) {
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
        // It was not waited for, so its process id cannot have been reused.
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
}

/// Ends the descendants of a guardian that hangs, then the guardian.
async fn end_guardian(child: &mut tokio::process::Child) {
    if let Some(pid) = child.id() {
        let below = move || crate::processes::kill_below(pid.cast_signed());
        if !matches!(tokio::task::spawn_blocking(below).await, Ok(Ok(_))) {
            tracing::warn!(pid, "cannot list the processes of a guardian that hangs");
        }
    }
    // Fails only if it has just exited.
    let _ = child.start_kill();
}

/// Reads the report that a guardian left in the socket when it exited.
fn report(control: &UnixStream) -> Option<Report> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while bytes.len() < MAX_REPORT_BYTES {
        match rustix::io::read(control, &mut buffer) {
            Ok(length @ 1..) => bytes.extend_from_slice(&buffer[..length]),
            Ok(0) | Err(_) => break,
        }
    }
    serde_json::from_slice(bytes.get(4..)?).ok()
}
