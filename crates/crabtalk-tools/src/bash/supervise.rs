//! One command's task: feeds the guardian, drains the output, sees it end.

use super::Workplace;
use super::capture::Capture;
use crate::guardian::{GuardianCommand, Report, Start, encode};
use crate::reaper::{Children, Known};
use crabtalk_domain::tool::ToolOutput;
use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Read at once: a pipe's default capacity.
const CHUNK_BYTES: usize = 64 << 10;

/// How long a guardian may take over ending its tree before it is killed
/// itself; its own limits add up to 0.8 s, and a stopped one never ends.
const END_WITHIN: Duration = Duration::from_millis(900);

/// Longest report: the numbers of processes that would not end.
const MAX_REPORT_BYTES: usize = 64 << 10;

/// Why the guardian was told to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    TimedOut,
    Cancelled,
}

pub(super) struct Work {
    pub(super) guardian: GuardianCommand,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) cwd: Workplace,
    pub(super) timeout: Duration,
    pub(super) capture: Capture,
    pub(super) children: Children,
    pub(super) cancel: CancellationToken,
}

/// A guardian at work.
struct Running {
    child: Child,
    _known: Known,
    control: UnixStream,
    output: Receiver,
}

impl Work {
    pub(super) async fn run(mut self, start: Start) -> ToolOutput {
        let failed = |what: &str, e: io::Error| ToolOutput::error(format!("{what}: {e}"));
        let frame = match encode(&start) {
            Ok(frame) => frame,
            Err(e) => return failed("cannot describe the command", e),
        };
        let mut running = match self.start() {
            Ok(running) => running,
            Err(e) => {
                return failed(
                    &format!(
                        "cannot start the guardian {}",
                        self.guardian.program.display()
                    ),
                    e,
                );
            }
        };
        let (told, ended) = self.attend(&mut running, &frame).await;
        if let Err(e) = ended {
            // Dropping the socket ends the guardian all the same.
            return failed("lost sight of the command", e);
        }
        self.drain(&running.output).await;
        let report = report(&running.control);
        drop(running);
        if report.is_none() {
            // It was killed, and what it guarded fell to us.
            self.children.sweep().await;
        }
        self.tell(told, report).await
    }

    fn start(&self) -> io::Result<Running> {
        let (control, theirs) = std::os::unix::net::UnixStream::pair()?;
        control.set_nonblocking(true)?;
        let (output, into) = io::pipe()?;
        let mut command = Command::new(&self.guardian.program);
        command
            .args(&self.guardian.args)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("PWD", &self.cwd.spot().path)
            .current_dir(self.cwd.as_folder())
            .stdin(OwnedFd::from(theirs))
            .stdout(into.try_clone()?)
            .stderr(into);
        let (child, known) = self.children.spawn(&mut command)?;
        Ok(Running {
            child,
            _known: known,
            control: UnixStream::from_std(control)?,
            output: Receiver::from_owned_fd(output.into())?,
        })
    }

    /// Until the guardian has exited.
    async fn attend(&mut self, running: &mut Running, frame: &[u8]) -> (Told, io::Result<()>) {
        let mut told = Told::Nothing;
        let mut killed = false;
        let mut unsent = frame;
        let mut buffer = vec![0; CHUNK_BYTES];
        let timeout = Instant::now() + self.timeout;
        let mut last_word = timeout;
        let mut open = true;
        loop {
            let listening = told == Told::Nothing;
            tokio::select! {
                sent = running.control.write(unsent), if listening && !unsent.is_empty() => match sent {
                    Ok(sent) => unsent = &unsent[sent..],
                    // It is gone, or not a guardian; its end tells.
                    Err(_) => unsent = &[],
                },
                read = running.output.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(length) => self.capture.take(&buffer[..length]).await,
                },
                ended = running.child.wait() => return (told, ended.map(drop)),
                () = self.cancel.cancelled(), if listening => told = Told::Cancelled,
                () = sleep_until(timeout), if listening => told = Told::TimedOut,
                () = sleep_until(last_word), if !listening && !killed => {
                    killed = true;
                    end_guardian(&mut running.child).await;
                }
            }
            if listening && told != Told::Nothing {
                last_word = Instant::now() + END_WITHIN;
                // What the guardian takes for its cue, unless it was stopped.
                let _ = running.control.shutdown().await;
                wake(&running.child);
            }
        }
    }

    /// What is still in the pipe. A process that could not be ended may hold
    /// it open, so its end is not waited for; and it is read directly, since
    /// the runtime may not yet have heard of what came last.
    async fn drain(&mut self, output: &Receiver) {
        let mut buffer = vec![0; CHUNK_BYTES];
        while let Ok(length @ 1..) = rustix::io::read(output, &mut buffer) {
            self.capture.take(&buffer[..length]).await;
        }
    }

    async fn tell(self, told: Told, report: Option<Report>) -> ToolOutput {
        let mut text = self.capture.finish().await;
        let (note, is_error) = match (told, &report) {
            (Told::Cancelled, _) => (
                Some("cancelled; everything it had started was ended".into()),
                true,
            ),
            (Told::TimedOut, _) => (
                Some(format!(
                    "timed out after {} ms; everything it had started was ended. A longer timeout_ms may help",
                    self.timeout.as_millis()
                )),
                true,
            ),
            (Told::Nothing, None) => (
                Some(
                    "the guardian of this command was killed; everything it had started was ended"
                        .into(),
                ),
                true,
            ),
            (Told::Nothing, Some(Report::NotStarted { why })) => (Some(why.clone()), true),
            (Told::Nothing, Some(Report::Ended { code: Some(0), .. })) => (None, false),
            (
                Told::Nothing,
                Some(Report::Ended {
                    code: Some(code), ..
                }),
            ) => (Some(format!("exit code {code}")), true),
            (
                Told::Nothing,
                Some(Report::Ended {
                    code: None, signal, ..
                }),
            ) => (
                Some(format!("killed by signal {}", signal.unwrap_or_default())),
                true,
            ),
        };
        let left = match &report {
            Some(Report::Ended { left, .. }) if !left.is_empty() => Some(format!(
                "could not be ended, being another user's: processes {left:?}"
            )),
            Some(_) | None => None,
        };
        for note in note.into_iter().chain(left) {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[{note}]"));
        }
        if text.is_empty() {
            text.push_str("[no output]");
        }
        ToolOutput {
            content: text,
            is_error,
            images: Vec::new(),
        }
    }
}

/// Lets a guardian that its command stopped go on.
fn wake(child: &Child) {
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
        // Not waited for yet, so that the number is still its own.
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
}

/// Ends a guardian that does not do its work, and does its work.
async fn end_guardian(child: &mut Child) {
    #[cfg(target_os = "linux")]
    if let Some(pid) = child.id() {
        let below = move || crate::processes::kill_below(pid.cast_signed());
        if !matches!(tokio::task::spawn_blocking(below).await, Ok(Ok(_))) {
            tracing::warn!(pid, "cannot list what a guardian that hangs has started");
        }
    }
    // Fails only when it has just exited.
    let _ = child.start_kill();
}

/// What a guardian that has exited left in the socket.
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
