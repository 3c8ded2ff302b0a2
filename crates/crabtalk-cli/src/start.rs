//! Starts the daemon in the background and waits until it answers.
//!
//! Invariant: the daemon outlives its client: a session of its own, no
//! terminal, its standard error in the log.

use crate::connect::Endpoint;
use crate::error::Error;
use crate::screen::Screen;
use crate::text::clean;
use crabtalk_config::Home;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::time::Instant;

/// Until the daemon answers. It takes milliseconds; a loaded machine, or one
/// that has just woken, may need seconds.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// First pause between two attempts to reach it, doubling up to
/// [`LONGEST_PAUSE`]: short, because a person waits.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// For a rival daemon, started at the same moment, to become ready.
const RIVAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Lines of the log that explain why it did not start.
const EXPLANATION_LINES: usize = 10;

/// Bytes from the log's end in which they are looked for.
const EXPLANATION_BYTES: u64 = 16 * 1024;

/// Starts the daemon; says so once.
pub(crate) async fn start(
    home: &Home,
    endpoint: &Endpoint,
    screen: &mut Screen,
) -> Result<(), Error> {
    let home = home.create()?;
    let log = home.log_file();
    let stderr = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&log)
        .map_err(|e| Error::io(format_args!("open {}", log.display()), &e))?;
    let begin = stderr.metadata().map_or(0, |metadata| metadata.len());
    let mut child = spawn(&home, stderr)?;
    match wait(endpoint, &mut child).await {
        Ok(()) => Ok(screen.note(&format!(
            "crabtalk: started the daemon (log {})",
            log.display()
        ))?),
        Err(what) => {
            let mut message = format!("the daemon {what}");
            match last_lines(&log, begin) {
                Ok(lines) if !lines.is_empty() => {
                    message.push_str(":\n");
                    message.push_str(&lines);
                }
                _ => message.push_str(&format!("; its log {} says nothing", log.display())),
            }
            Err(Error::NoDaemon(message))
        }
    }
}

fn spawn(home: &Home, stderr: File) -> Result<Child, Error> {
    let program = std::env::current_exe().map_err(|e| Error::io("find this program", &e))?;
    Command::new(&program)
        .args(["daemon", "run", "--detached", "--home"])
        .arg(home.root())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .map_err(|e| Error::io(format_args!("start {}", program.display()), &e))
}

/// Waits until the daemon answers; the error completes "the daemon ...".
async fn wait(endpoint: &Endpoint, child: &mut Child) -> Result<(), String> {
    let mut deadline = Instant::now() + READY_TIMEOUT;
    let mut pause = FIRST_PAUSE;
    let mut ended = None;
    loop {
        if endpoint.answers().await {
            return Ok(());
        }
        if ended.is_none()
            && let Ok(Some(status)) = child.try_wait()
        {
            // It may have lost to a rival that is about to answer.
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

/// The last lines of a log behind `begin`.
fn last_lines(log: &Path, begin: u64) -> io::Result<String> {
    let mut file = File::open(log)?;
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(
        begin.max(end.saturating_sub(EXPLANATION_BYTES)),
    ))?;
    let mut bytes = Vec::new();
    file.take(EXPLANATION_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = clean(&text);
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

/// Leaves the session of whoever started this process, so that neither a
/// closing terminal nor its Ctrl-C ends the daemon, and no tool prompts there.
pub(crate) fn leave_session() {
    // It fails for a group's leader only, who has a session of its own making.
    let _ = rustix::process::setsid();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fake;
    use std::fs;

    fn child(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).spawn().unwrap()
    }

    #[tokio::test]
    async fn a_daemon_that_answers_is_ready() {
        let fake = Fake::start().await;
        let mut child = child("exit 1");
        assert_eq!(
            wait(&fake.endpoint(), &mut child).await,
            Ok(()),
            "a rival answers"
        );
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn a_daemon_that_ends_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = Endpoint::new(folder.path().join("none.sock"));
        let mut child = child("exit 7");
        child.wait().unwrap();
        tokio::time::pause();
        let error = wait(&endpoint, &mut child).await.unwrap_err();
        assert_eq!(error, "ended at once (exit status: 7)");
    }

    #[test]
    fn the_log_of_this_start_explains() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("daemon.log");
        fs::write(&log, "old\n").unwrap();
        let begin = fs::metadata(&log).unwrap().len();
        let mut text = String::from("old\n");
        for i in 0..20 {
            text.push_str(&format!("line {i}\x1b[1m\n"));
        }
        fs::write(&log, text).unwrap();
        let lines = last_lines(&log, begin).unwrap();
        assert!(
            lines.starts_with("  line 10<U+001B>[1m\n") && lines.ends_with("  line 19<U+001B>[1m"),
            "{lines}"
        );
    }
}
