//! Runs commands on one tmux server.
//!
//! Invariants: a command ends within [`ANSWER_WAIT`] or is killed; at most
//! [`MAX_ANSWER_BYTES`] of its output are read; windows and panes are named
//! by id, since names are not unique.

pub(crate) mod keys;
pub(crate) mod look;
pub(crate) mod text;
pub(crate) mod windows;

use crate::backend::Failure;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// Timeout of one tmux command. It usually takes milliseconds, but longer on a machine
/// that swaps.
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// Longest answer: a window's whole history of wide lines.
const MAX_ANSWER_BYTES: u64 = 8 << 20;

/// Longest error message.
const MAX_REFUSAL_BYTES: u64 = 4 << 10;

/// The first version with `new-window -e` and `refresh-client -B`.
const OLDEST: (u32, u32) = (3, 2);

#[derive(Debug, Clone)]
pub(crate) struct Tmux {
    /// The socket; `None` is the user's own server.
    socket: Option<PathBuf>,
    /// The mark of the team's windows.
    team: String,
}

/// The mark of a team's windows: a hash (FNV-1a) of its folder, in letters that have no meaning
/// in tmux formats and lists.
fn mark(state: &Path) -> String {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let bytes = state.as_os_str().as_encoded_bytes();
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix))
}

impl Tmux {
    /// The server at this socket, for the team of this folder.
    pub(crate) fn new(socket: Option<PathBuf>, state: &Path) -> Self {
        let team = mark(state);
        Self { socket, team }
    }

    pub(crate) fn team(&self) -> &str {
        &self.team
    }

    /// Checks that tmux is installed and new enough.
    pub(crate) async fn check(&self) -> Result<(), Failure> {
        let said = self.run(&["-V"]).await?;
        match version(&said) {
            Some(version) if version < OLDEST => Err(Failure::Missing(format!(
                "agents in terminals need tmux 3.2 or later, and this is {:?}",
                said.trim()
            ))),
            _ => Ok(()),
        }
    }

    /// The command line with which a person reaches this server.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec!["tmux".to_owned()];
        if let Some(path) = &self.socket {
            words.extend(["-S".to_owned(), path.display().to_string()]);
        }
        words
    }

    /// A client of this server that is not nested in a window of another.
    pub(crate) fn client(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-u").env_remove("TMUX").env_remove("TMUX_PANE");
        if let Some(path) = &self.socket {
            command.arg("-S").arg(path);
        }
        command.kill_on_drop(true);
        command
    }

    /// Runs one command and returns its output.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Result<String, Failure> {
        self.run_with(arguments, None).await
    }

    /// Like [`Self::run`], with standard input.
    pub(crate) async fn run_with(
        &self,
        arguments: &[&str],
        input: Option<&[u8]>,
    ) -> Result<String, Failure> {
        let what = arguments.first().copied().unwrap_or_default();
        tokio::time::timeout(ANSWER_WAIT, self.ask(arguments, input))
            .await
            .unwrap_or_else(|_| {
                let secs = ANSWER_WAIT.as_secs();
                let text = format!("tmux did not answer `{what}` within {secs} s");
                Err(Failure::Timeout(text))
            })
    }

    async fn ask(&self, arguments: &[&str], input: Option<&[u8]>) -> Result<String, Failure> {
        let mut command = self.client();
        command
            .args(arguments)
            .stdin(input.map_or_else(Stdio::null, |_| Stdio::piped()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(no_tmux)?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                // A client that fails does not read its input; its output names the reason.
                let _ = stdin.write_all(input).await;
            }
        };
        let (mut said, mut refused) = (Vec::new(), Vec::new());
        let read = read_bounded(stdout, MAX_ANSWER_BYTES, &mut said);
        let read_refusal = read_bounded(stderr, MAX_REFUSAL_BYTES, &mut refused);
        tokio::join!(write, read, read_refusal);
        let refusal = |said: String| {
            let what = arguments.first().copied().unwrap_or_default();
            Failure::Failed(format!("tmux refused `{what}`: {said}"))
        };
        let status = child.wait().await.map_err(|e| refusal(e.to_string()))?;
        if !status.success() {
            return Err(refusal(String::from_utf8_lossy(&refused).trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&said).into_owned())
    }
}

fn no_tmux(error: std::io::Error) -> Failure {
    Failure::Missing(format!(
        "agents in terminals need tmux, and `tmux` cannot be started: {error}; install it (apt-get \
         install tmux, brew install tmux) or give the agent another backend"
    ))
}

async fn read_bounded(
    from: Option<impl tokio::io::AsyncRead + Unpin>,
    limit: u64,
    into: &mut Vec<u8>,
) {
    if let Some(from) = from {
        // After a read error, the bytes read so far are used.
        let _ = from.take(limit).read_to_end(into).await;
    }
}

/// Parses the version in `tmux 3.3a` or `tmux next-3.5`; `None` for other texts.
fn version(said: &str) -> Option<(u32, u32)> {
    let numbers = said.trim().rsplit([' ', '-']).next()?;
    let (major, minor) = numbers.split_once('.')?;
    let end = minor.find(|c: char| !c.is_ascii_digit());
    let minor = &minor[..end.unwrap_or(minor.len())];
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_are_read_with_their_letters() {
        assert_eq!(version("tmux 3.3a\n"), Some((3, 3)));
        assert_eq!(version("tmux next-3.5"), Some((3, 5)));
        assert_eq!(version("tmux openbsd"), None);
        assert!(version("tmux 2.9") < Some(super::OLDEST));
    }
}
