//! The task of one command: reads the output, enforces the timeout, and writes
//! the result.

use super::Workplace;
use super::capture::Capture;
use crabtalk_domain::tool::ToolOutput;
use crabtalk_guardian::{Child, Command, ExitStatus, Guardian, Streams};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Bytes per read: a pipe's default capacity.
const CHUNK_BYTES: usize = 64 << 10;

/// Error messages of programs that the sandbox stopped.
const WALLS: &[&str] = &[
    "Permission denied",
    "permission denied",
    "Read-only file system",
    "read-only file system",
    "Operation not permitted",
    "Device or resource busy",
    "Could not resolve host",
    "Couldn't resolve host",
    "Network is unreachable",
    "Temporary failure in name resolution",
    "Name or service not known",
    "CONNECT tunnel failed",
    "ENOTFOUND",
    "EAI_AGAIN",
];

/// The hint after such a message.
const HINT: &str = "this ran in the sandbox, which may be why. Ask again if it is needed: `hosts` for the network, `write` for paths outside the folder, or `escalate` for outside the sandbox, each with a `reason`";

/// The reason for ending the command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndReason {
    Nothing,
    TimedOut,
    Cancelled,
}

/// The limits and the output of a command.
pub(super) struct CommandRun {
    /// Whether it runs in the sandbox.
    pub(super) confined: bool,
    pub(super) timeout: Duration,
    pub(super) capture: Capture,
    pub(super) cancel: CancellationToken,
}

impl CommandRun {
    /// Runs a command. `cwd` stays open until it starts, since the command's folder is a path to that
    /// descriptor.
    pub(super) async fn run(
        mut self,
        guardian: &Guardian,
        command: Command,
        cwd: Workplace,
    ) -> ToolOutput {
        let mut child = match guardian.spawn(command, Streams::Merged) {
            Ok(child) => child,
            Err(e) => return ToolOutput::error(e.to_string()),
        };
        drop(cwd);
        let (told, end) = self.attend(&mut child).await;
        self.tell(told, end).await
    }

    /// Waits until the command and its descendants have ended.
    async fn attend(&mut self, child: &mut Child) -> (EndReason, ExitStatus) {
        let mut output = child.stdout.take();
        let mut told = EndReason::Nothing;
        let mut buffer = vec![0; CHUNK_BYTES];
        let timeout = Instant::now() + self.timeout;
        let mut open = true;
        let end = loop {
            let listening = told == EndReason::Nothing;
            tokio::select! {
                read = read(&mut output, &mut buffer), if open => match read {
                    Some(length) => self.capture.take(&buffer[..length]).await,
                    None => open = false,
                },
                end = child.wait() => break end,
                () = self.cancel.cancelled(), if listening => told = EndReason::Cancelled,
                () = sleep_until(timeout), if listening => told = EndReason::TimedOut,
            }
            if told != EndReason::Nothing {
                child.kill();
            }
        };
        if let Some(output) = &output {
            self.drain(output).await;
        }
        (told, end)
    }

    /// Reads the rest of the pipe without waiting for its end, since a process that could not be
    /// ended may keep it open. Reads directly, since the runtime may not have noticed the last
    /// bytes.
    async fn drain(&mut self, output: &Receiver) {
        let mut buffer = vec![0; CHUNK_BYTES];
        while let Ok(length @ 1..) = rustix::io::read(output, &mut buffer) {
            self.capture.take(&buffer[..length]).await;
        }
    }

    async fn tell(self, told: EndReason, end: ExitStatus) -> ToolOutput {
        let mut text = self.capture.finish().await;
        let ended = "everything it had started was ended";
        let failed = match (told, &end) {
            (EndReason::Cancelled, _) => Some(format!("cancelled; {ended}")),
            (EndReason::TimedOut, _) => Some(format!(
                "timed out after {} ms; {ended}. A longer timeout_ms may help",
                self.timeout.as_millis()
            )),
            (EndReason::Nothing, ExitStatus::GuardianKilled) => {
                Some(format!("the guardian of this command was killed; {ended}"))
            }
            (EndReason::Nothing, ExitStatus::NotStarted { why }) => Some(why.clone()),
            (EndReason::Nothing, ExitStatus::Lost { why }) => {
                Some(format!("cannot wait for the command: {why}"))
            }
            (EndReason::Nothing, ExitStatus::Ended { code: Some(0), .. }) => None,
            (
                EndReason::Nothing,
                ExitStatus::Ended {
                    code: Some(code), ..
                },
            ) => Some(format!("exit code {code}")),
            (
                EndReason::Nothing,
                ExitStatus::Ended {
                    code: None, signal, ..
                },
            ) => Some(format!("killed by signal {}", signal.unwrap_or_default())),
        };
        let is_error = failed.is_some();
        let hit_wall = self.confined
            && matches!(end, ExitStatus::Ended { .. })
            && is_error
            && WALLS.iter().any(|wall| text.contains(wall));
        let hint = hit_wall.then(|| HINT.to_owned());
        let left = match &end {
            ExitStatus::Ended { left, .. } if !left.is_empty() => Some(format!(
                "processes of another user could not be ended: {left:?}"
            )),
            ExitStatus::Ended { .. }
            | ExitStatus::NotStarted { .. }
            | ExitStatus::GuardianKilled
            | ExitStatus::Lost { .. } => None,
        };
        for note in failed.into_iter().chain(left).chain(hint) {
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

/// The next piece of output; `None` at its end.
async fn read(output: &mut Option<Receiver>, buffer: &mut [u8]) -> Option<usize> {
    let length = output.as_mut()?.read(buffer).await.ok()?;
    (length > 0).then_some(length)
}
