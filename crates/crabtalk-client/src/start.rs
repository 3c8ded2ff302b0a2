//! Starts the daemon in the background and waits until it answers.
//!
//! Invariant: the daemon outlives its client. It has its own session, no
//! terminal, and writes standard error to the log.

use crate::client::Client;
use crate::error::Error;
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::time::Instant;

/// Timeout of a start, which takes milliseconds on an idle machine and seconds on a loaded one.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// First pause between two attempts to connect, doubling up to
/// [`LONGEST_PAUSE`]. It is short because a person waits.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Time to wait for another daemon that was started at the same moment.
const RIVAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Lines of the log in the error of a failed start.
const EXPLANATION_LINES: usize = 10;

/// Bytes read from the end of the log for them.
const EXPLANATION_BYTES: u64 = 16 * 1024;

/// How a daemon is started.
#[derive(Debug, Clone)]
pub struct Starter {
    program: PathBuf,
    home: PathBuf,
    log: PathBuf,
}

impl Client {
    /// Starts the daemon if none listens; returns whether it started one.
    ///
    /// # Errors
    /// [`Error::NotStarted`], and errors of the endpoint.
    pub async fn find_or_start(&self, starter: &Starter) -> Result<bool, Error> {
        if self.endpoint().is_listening().await? {
            return Ok(false);
        }
        starter.start().await?;
        Ok(true)
    }
}

impl Starter {
    /// A starter of this program (`crabtalk`, to be found on PATH, or a path) for this
    /// home.
    pub fn new(program: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let home = absolute(home.into());
        let program: PathBuf = program.into();
        // A bare name is resolved on PATH.
        let is_bare = program.components().count() == 1;
        Self {
            program: if is_bare { program } else { absolute(program) },
            log: home.join("logs/daemon.log"),
            home,
        }
    }

    /// The path of the daemon's log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Starts the daemon with `crabtalk daemon start`, which starts the installed
    /// service if there is one, and waits until it answers.
    ///
    /// # Errors
    /// [`Error::NotStarted`] with the message of the command.
    pub async fn start(&self) -> Result<(), Error> {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(["daemon", "start", "--home"]).arg(&self.home);
        let output = command.stdin(Stdio::null()).output().await;
        let output = output.map_err(|error| self.not_spawned(&error))?;
        if output.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let message = crabtalk_proto::visible_prose(message.trim());
        let message = message.strip_prefix("crabtalk: ").unwrap_or(&message);
        Err(Error::NotStarted(match message {
            "" => format!("`crabtalk daemon start` failed ({})", output.status),
            message => message.to_owned(),
        }))
    }

    /// Starts the daemon as a separate process, without the service manager, and
    /// waits until it answers the client.
    ///
    /// # Errors
    /// [`Error::NotStarted`] with the last lines of the daemon's log.
    pub async fn start_process(&self, client: &Client) -> Result<(), Error> {
        let cannot_open =
            |error: &io::Error| format!("cannot open {}: {error}", self.log.display());
        let (log, begin) = match self.open_log() {
            Ok((log, begin)) => (Stdio::from(log), Ok(begin)),
            // The daemon can start on a full disk (STORE-5).
            Err(error) if has_no_room(&error) => (Stdio::null(), Err(cannot_open(&error))),
            Err(error) => return Err(Error::NotStarted(cannot_open(&error))),
        };
        let mut child = self.spawn(log).map_err(|error| self.not_spawned(&error))?;
        let Err(what) = wait(client, &mut child).await else {
            return Ok(());
        };
        let mut message = format!("the daemon {what}");
        match begin.map(|begin| last_lines(&self.log, begin)) {
            Ok(Ok(lines)) if !lines.is_empty() => {
                message.push_str(":\n");
                message.push_str(&lines);
            }
            Ok(Ok(_) | Err(_)) => {
                message.push_str(&format!("; its log {} is empty", self.log.display()));
            }
            Err(why) => {
                message.push_str(&format!("; {why}; run `crabtalk daemon run` to see why"));
            }
        }
        Err(Error::NotStarted(message))
    }

    fn not_spawned(&self, error: &io::Error) -> Error {
        Error::NotStarted(format!("cannot start {}: {error}", self.program.display()))
    }

    /// Opens the private log; returns it with the offset at which this daemon's lines begin.
    fn open_log(&self) -> io::Result<(File, u64)> {
        if let Some(folder) = self.log.parent() {
            let mut private = DirBuilder::new();
            private.recursive(true).mode(0o700).create(folder)?;
        }
        let mut open = OpenOptions::new();
        let log = open.append(true).create(true).mode(0o600).open(&self.log)?;
        let begin = log.metadata().map_or(0, |metadata| metadata.len());
        Ok((log, begin))
    }

    fn spawn(&self, log: Stdio) -> io::Result<Child> {
        let arguments = ["daemon", "run", "--detached", "--home"].map(OsString::from);
        Command::new(&self.program)
            .args(arguments)
            .arg(&self.home)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
    }
}

/// Whether the disk is full or read-only.
fn has_no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
    )
}

/// Waits until the daemon answers; the error is the end of a sentence that begins with "the daemon".
async fn wait(client: &Client, child: &mut Child) -> Result<(), String> {
    let mut deadline = Instant::now() + READY_TIMEOUT;
    let mut pause = FIRST_PAUSE;
    let mut ended = None;
    loop {
        if client.connect().await.is_ok() {
            return Ok(());
        }
        if ended.is_none()
            && let Ok(Some(status)) = child.try_wait()
        {
            // The other daemon may be about to answer.
            ended = Some(status);
            deadline = deadline.min(Instant::now() + RIVAL_TIMEOUT);
        }
        if Instant::now() >= deadline {
            return Err(match ended {
                Some(status) => format!("ended at once ({status})"),
                None => format!("did not answer within {} seconds", READY_TIMEOUT.as_secs()),
            });
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The last lines of a log after `begin`, without terminal control
/// characters.
fn last_lines(log: &Path, begin: u64) -> io::Result<String> {
    let mut file = File::open(log)?;
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(
        begin.max(end.saturating_sub(EXPLANATION_BYTES)),
    ))?;
    let mut bytes = Vec::new();
    file.take(EXPLANATION_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = crabtalk_proto::visible_prose(&text);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = lines.len().saturating_sub(EXPLANATION_LINES);
    Ok(lines[from..]
        .iter()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n"))
}

#[cfg(test)]
mod tests;
