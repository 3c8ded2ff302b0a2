//! The socket for commands to a running NEXUS: one line of JSON each way.
//!
//! A watcher stays connected and receives an update after each change.
//!
//! Invariants: only processes of the same user that are not below a guardian are
//! served, since an agent's command could answer another agent's prompts; lines and
//! connections are bounded; a command is on disk before it is answered;
//! a slow reader delays only itself.

use crate::supervisor::Asked;
use crate::world::{Answer, Command};
use crabtalk_guardian::{Peers, Refusal};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde::Serialize;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot, watch};

/// The socket's name in NEXUS's folder.
const SOCKET: &str = "nexus.sock";

/// Longest command: a message with its JSON frame.
const MAX_LINE: u64 = 256 * 1024;

/// Longest answer that is read: a full inbox.
const MAX_ANSWER: u64 = 64 * 1024 * 1024;

/// Maximum number of connections.
const MAX_CONNECTIONS: usize = 32;

/// Changes within this time are merged into one update.
const MERGED: Duration = Duration::from_millis(50);

/// The timeout of reading a command and of writing its answer.
const WITHIN: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
    peers: Peers,
}

impl Drop for Control {
    fn drop(&mut self) {
        // The next NEXUS also removes the file.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Control {
    /// Listens in NEXUS's folder. The caller must have the lock of the log.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(SOCKET);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = listen(&path)?;
        Ok(Self {
            listener,
            path,
            peers: Peers::new(),
        })
    }

    /// Handles commands until dropped.
    pub async fn serve(&self, commands: &mpsc::Sender<Asked>, changes: &watch::Receiver<u64>) {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if open.len() < MAX_CONNECTIONS => {
                    match accepted {
                        Ok((stream, _)) if is_same_user(&stream) => {
                            let admitted = admit(&self.peers, &stream);
                            let changes = changes.clone();
                            open.push(answer(stream, admitted, commands, changes));
                        }
                        Ok(_) => {}
                        // Too many files are open; wait until some close.
                        Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                    }
                }
                // A broken connection gets no answer.
                Some(_) = open.next(), if !open.is_empty() => {}
            }
        }
    }
}

/// The folder is private, so no other user can connect before the mode is set.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn is_same_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

/// Refuses processes of agents' commands, and processes that cannot be distinguished from them.
fn admit(peers: &Peers, stream: &UnixStream) -> Result<(), Refusal> {
    let Some(pid) = stream.peer_cred().ok().and_then(|peer| peer.pid()) else {
        // The system does not identify the peer; guardians do not run on such systems.
        return Ok(());
    };
    let handle = handle_of(stream);
    let handle = handle
        .as_ref()
        .map(|handle| handle.as_ref().map(AsFd::as_fd));
    peers.judge(pid, handle)
}

/// Opens a pidfd of the peer, if the kernel supports it.
fn handle_of(stream: &UnixStream) -> io::Result<Option<OwnedFd>> {
    use nix::errno::Errno;
    use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
    match getsockopt(stream, PeerPidfd) {
        Ok(handle) => Ok(Some(handle)),
        Err(Errno::ENOPROTOOPT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Answers one command, or sends updates until the watcher disconnects.
async fn answer(
    stream: UnixStream,
    admitted: Result<(), Refusal>,
    commands: &mpsc::Sender<Asked>,
    changes: watch::Receiver<u64>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let command = tokio::time::timeout(WITHIN, read_command(&mut stream)).await??;
    if let Err(refusal) = admitted {
        let why = refusal.to_string();
        return tokio::time::timeout(WITHIN, write(&mut stream, &Answer::Refused { why })).await?;
    }
    let answer = match command {
        Err(error) => Answer::Refused {
            why: format!("unknown command: {error}"),
        },
        Ok(Command::Watch) => return tell(&mut stream, commands, changes).await,
        Ok(command) => tokio::time::timeout(WITHIN, ask(commands, command)).await??,
    };
    tokio::time::timeout(WITHIN, write(&mut stream, &answer)).await?
}

async fn read_command(
    stream: &mut BufReader<UnixStream>,
) -> io::Result<Result<Command, serde_json::Error>> {
    let mut line = String::new();
    stream.take(MAX_LINE).read_line(&mut line).await?;
    Ok(serde_json::from_str(&line))
}

async fn ask(commands: &mpsc::Sender<Asked>, command: Command) -> io::Result<Answer> {
    let gone = || io::Error::other("NEXUS ends");
    let (reply, answered) = oneshot::channel();
    commands.send((command, reply)).await.map_err(|_| gone())?;
    answered.await.map_err(|_| gone())
}

async fn write(stream: &mut BufReader<UnixStream>, answer: &Answer) -> io::Result<()> {
    stream.get_mut().write_all(&line(answer)?).await
}

fn line(said: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(said)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Sends the board after each change.
async fn tell(
    stream: &mut BufReader<UnixStream>,
    commands: &mpsc::Sender<Asked>,
    mut changes: watch::Receiver<u64>,
) -> io::Result<()> {
    let mut after = 0;
    loop {
        changes.mark_unchanged();
        let board = ask(commands, Command::Board { after }).await?;
        if let Answer::Board { seen, .. } = &board {
            after = *seen;
        }
        // A watcher that does not read in time is dropped.
        tokio::time::timeout(WITHIN, write(stream, &board)).await??;
        tokio::select! {
            changed = changes.changed() => changed.map_err(io::Error::other)?,
            // A watcher sends nothing, so this is the end of the connection.
            _ = stream.read_u8() => return Ok(()),
        }
        tokio::time::sleep(MERGED).await;
    }
}

/// The updates of a NEXUS.
#[derive(Debug)]
pub struct Watching {
    stream: BufReader<UnixStream>,
    /// The part of the next answer that was read.
    line: Vec<u8>,
}

impl Watching {
    /// Watches the NEXUS of a folder. `None` if none runs there.
    pub async fn begin(folder: &Path) -> io::Result<Option<Self>> {
        let Some(mut stream) = connect(folder).await? else {
            return Ok(None);
        };
        stream.get_mut().write_all(&line(&Command::Watch)?).await?;
        let line = Vec::new();
        Ok(Some(Self { stream, line }))
    }

    /// Returns the next update; `None` when NEXUS ended. Cancel safe.
    pub async fn next(&mut self) -> io::Result<Option<Answer>> {
        let room = MAX_ANSWER.saturating_sub(self.line.len() as u64);
        let mut bounded = (&mut self.stream).take(room);
        bounded.read_until(b'\n', &mut self.line).await?;
        if self.line.last() != Some(&b'\n') {
            return Ok(None);
        }
        let answer = serde_json::from_slice(&self.line);
        self.line.clear();
        Ok(Some(answer?))
    }
}

async fn connect(folder: &Path) -> io::Result<Option<BufReader<UnixStream>>> {
    match UnixStream::connect(folder.join(SOCKET)).await {
        Ok(stream) => Ok(Some(BufReader::new(stream))),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Sends a command to the NEXUS of a folder. `None` if none runs there.
pub async fn say(folder: &Path, command: &Command) -> io::Result<Option<Answer>> {
    let Some(mut stream) = connect(folder).await? else {
        return Ok(None);
    };
    let bytes = line(command)?;
    if bytes.len() as u64 > MAX_LINE {
        let why = format!("a command of more than {MAX_LINE} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    stream.get_mut().write_all(&bytes).await?;
    let line = Vec::new();
    let answer = Watching { stream, line }.next().await?;
    let ended = || io::Error::other("NEXUS ended before it answered");
    answer.map(Some).ok_or_else(ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: &str = "CRABTALK_TEST_PART";
    const FOLDER: &str = "CRABTALK_TEST_FOLDER";

    /// Starts this test program again in another role.
    fn play(part: &str, folder: &Path) -> std::process::Child {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "control::tests::plays_its_part", "--nocapture"])
            .env(PART, part)
            .env(FOLDER, folder)
            .spawn()
            .unwrap()
    }

    /// Does nothing unless started in a role.
    #[tokio::test]
    async fn plays_its_part() {
        let Ok(part) = std::env::var(PART) else {
            return;
        };
        let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
        if part == "client" {
            // The mark that a guardian sets on its processes.
            use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
            let own = getrlimit(Resource::Locks).maximum.unwrap_or(1 << 40);
            let lower = Rlimit {
                current: Some(own - 1),
                maximum: Some(own - 1),
            };
            setrlimit(Resource::Locks, lower).unwrap();
            let answer = say(&folder, &Command::Status).await.unwrap();
            assert!(
                matches!(&answer, Some(Answer::Refused { why }) if why.contains("agent")),
                "{answer:?}"
            );
            return;
        }
        let (tell, mut asked) = mpsc::channel::<Asked>(1);
        let (_happens, changes) = watch::channel(0);
        let control = Control::open(&folder).unwrap();
        let answers = async {
            while let Some((_, reply)) = asked.recv().await {
                let said = "yes".to_owned();
                reply.send(Answer::Done { said }).unwrap();
            }
        };
        tokio::join!(control.serve(&tell, &changes), answers);
    }

    #[tokio::test]
    async fn process_below_a_guardian_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut nexus = play("nexus", folder.path());
        let answer = loop {
            if let Ok(Some(answer)) = say(folder.path(), &Command::Status).await {
                break answer;
            }
            tokio::task::yield_now().await;
        };
        assert!(matches!(answer, Answer::Done { .. }), "{answer:?}");
        let refused = play("client", folder.path()).wait().unwrap().success();
        nexus.kill().unwrap();
        nexus.wait().unwrap();
        assert!(refused);
    }
}
