//! The way of commands to a NEXUS that runs: a socket of its own, one line of
//! JSON there, one back.
//!
//! Invariants: only the same user is heard; a line has a bound, and so has the
//! number of those who wait; a command is on disk before it is answered.

use crate::supervisor::Asked;
use crate::world::{Answer, Command};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

/// The socket's name in NEXUS's folder.
const SOCKET: &str = "nexus.sock";

/// Longest command: a message with its frame.
const MAX_LINE: u64 = 256 * 1024;

/// Longest answer that is read: an inbox nobody read for long.
const MAX_ANSWER: u64 = 64 * 1024 * 1024;

/// Connections at once: a person has a few.
const MAX_CONNECTIONS: usize = 32;

/// Until a connection says what it wants, and until it is answered.
const WITHIN: Duration = Duration::from_secs(60);

/// Where commands are taken.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Control {
    fn drop(&mut self) {
        // Whoever comes next removes it too.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Control {
    /// Listens in NEXUS's folder. Whoever does has the lock of its log.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(SOCKET);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        // Its folder is the user's alone, so nobody comes before the mode.
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, path })
    }

    /// Takes commands until it is dropped.
    pub async fn serve(&self, commands: &mpsc::Sender<Asked>) {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if open.len() < MAX_CONNECTIONS => {
                    match accepted {
                        Ok((stream, _)) if is_same_user(&stream) => {
                            open.push(tokio::time::timeout(WITHIN, answer(stream, commands)));
                        }
                        Ok(_) => {}
                        // Too many files are open: some close soon.
                        Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                    }
                }
                // A connection that broke has nobody to tell.
                Some(_) = open.next(), if !open.is_empty() => {}
            }
        }
    }
}

fn is_same_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

async fn answer(stream: UnixStream, commands: &mpsc::Sender<Asked>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    (&mut stream).take(MAX_LINE).read_line(&mut line).await?;
    let answer = match serde_json::from_str::<Command>(&line) {
        Err(error) => Answer::Refused {
            why: format!("NEXUS does not know this command: {error}"),
        },
        Ok(command) => {
            let (reply, answered) = oneshot::channel();
            let gone = || io::Error::other("NEXUS ends");
            commands.send((command, reply)).await.map_err(|_| gone())?;
            answered.await.map_err(|_| gone())?
        }
    };
    let mut bytes = serde_json::to_vec(&answer)?;
    bytes.push(b'\n');
    stream.get_mut().write_all(&bytes).await
}

/// Says a command to the NEXUS of a folder. `None` if none runs there.
pub async fn say(folder: &Path, command: &Command) -> io::Result<Option<Answer>> {
    let stream = match UnixStream::connect(folder.join(SOCKET)).await {
        Ok(stream) => stream,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut stream = BufReader::new(stream);
    let mut bytes = serde_json::to_vec(command)?;
    bytes.push(b'\n');
    if bytes.len() as u64 > MAX_LINE {
        let why = format!("a command of more than {MAX_LINE} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    stream.get_mut().write_all(&bytes).await?;
    let mut line = String::new();
    (&mut stream).take(MAX_ANSWER).read_line(&mut line).await?;
    if line.is_empty() {
        return Err(io::Error::other("NEXUS ended before it answered"));
    }
    Ok(Some(serde_json::from_str(&line)?))
}
