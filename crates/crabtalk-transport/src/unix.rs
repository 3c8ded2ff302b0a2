//! The Unix socket (WIRE-2).
//!
//! Invariants: the socket's file appears with mode 0600 and already
//! listening; a socket that somebody answers on is never replaced; only our
//! own file is removed, and one that was removed is made again; only our own
//! user (and root) gets a connection.

mod file;
mod spare;

use crate::accept::{Accept, Accepted};
use crate::client::Connection;
use crate::crowd::Source;
use crate::half::ReadHalf;
use file::SocketFile;
use std::fs;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixSocket, UnixStream};
use tokio::time::{Instant, sleep_until};

/// Longest socket path in bytes: `sun_path` less its terminating zero.
const MAX_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// Random characters of the name under which a socket is made ready. Few, so
/// that `.abcd` is no longer than `daemon.sock` and costs no path length.
const BORN_CHARS: usize = 4;

/// How long a client waits for a place in the queue of a daemon that many
/// connect to.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Connections that wait to be accepted. Whoever comes next waits behind all
/// of them, so a flood costs others the time of so many: few milliseconds.
const BACKLOG: u32 = 256;

/// How long after a failed attempt a lost socket is made again: its folder may
/// be back by then, and a foreign file gone.
const MAKE_AGAIN_EVERY: Duration = Duration::from_secs(10);

/// Why there is no socket, or no connection to one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system cannot name such a socket (STORE-6).
    #[error(
        "the socket path {} is too long: {} bytes, the limit is {MAX_PATH}; choose a shorter \
         CRABTALK_HOME", .0.display(), .0.as_os_str().len()
    )]
    PathTooLong(PathBuf),
    /// A daemon answered on it, so the socket was left to that one.
    #[error("another daemon listens on {}; stop it first", .0.display())]
    InUse(PathBuf),
    /// A file of somebody else's has the name, and is not removed.
    #[error("{} exists and is no socket; move it away", .0.display())]
    NotASocket(PathBuf),
    /// No socket is there, or one that a dead daemon has left.
    #[error("no daemon listens on {}; start one with `crabtalk daemon run`", .0.display())]
    NotListening(PathBuf),
    /// The system refuses the socket, as in a folder that may not be written.
    #[error("cannot listen on {}", path.display())]
    Listen {
        /// The path of the socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is a socket, and this user may not use it, or the system is out of descriptors.
    #[error("cannot connect to {}", path.display())]
    Connect {
        /// The path of the socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Who connects, as the kernel says it.
#[derive(Debug)]
pub struct Peer {
    /// User id.
    pub uid: u32,
    /// Process id, where the system tells.
    pub pid: Option<i32>,
    /// A pidfd of that very process, which its number may not be for long:
    /// `None` where the system gives none (Linux before 6.5).
    pub handle: io::Result<Option<OwnedFd>>,
}

/// A listening socket; its file goes when this is dropped.
#[derive(Debug)]
pub struct UnixListener {
    listener: tokio::net::UnixListener,
    own_uid: u32,
    file: SocketFile,
    /// When the lost socket is made again.
    again_at: Option<Instant>,
}

impl UnixListener {
    /// Somebody removed the socket: nobody could reach this daemon, and no
    /// other may start in its home. Safe to cancel.
    async fn make_again(&mut self) {
        if let Some(at) = self.again_at {
            sleep_until(at).await;
        }
        match bind(self.file.path()).await {
            Ok((listener, file)) => {
                tracing::warn!(path = %file.path().display(), "the socket was gone and has been made again");
                // Nobody waits on the old one: it was looked at just before.
                (self.listener, self.file, self.again_at) = (listener, file, None);
            }
            Err(error) => {
                tracing::warn!(%error, retry_in = ?MAKE_AGAIN_EVERY, "the socket is gone and cannot be made again");
                self.again_at = Some(Instant::now() + MAKE_AGAIN_EVERY);
            }
        }
    }
}

/// A pidfd of whoever connected.
#[cfg(target_os = "linux")]
fn handle_of(stream: &UnixStream) -> io::Result<Option<OwnedFd>> {
    use nix::errno::Errno;
    use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
    match getsockopt(stream, PeerPidfd) {
        Ok(handle) => Ok(Some(handle)),
        Err(Errno::ENOPROTOOPT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn handle_of(_: &UnixStream) -> io::Result<Option<OwnedFd>> {
    Ok(None)
}

/// Whether whoever connected has left without a word. Programs look in this way
/// whether a daemon listens.
fn has_left(stream: &UnixStream) -> bool {
    use rustix::net::{RecvFlags, recv};
    let look = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(recv(stream, &mut [0; 1], look), Ok((0, _)))
}

/// A client's connection over the Unix socket.
pub type UnixConnection = Connection<OwnedReadHalf, OwnedWriteHalf>;

/// Listens on `path`, whose folder must exist. A stale socket is replaced.
///
/// Two daemons that start at the same moment are kept apart by the lock of
/// their home (STORE-6), not by this.
pub async fn listen(path: &Path) -> Result<UnixListener, Error> {
    let (listener, file) = match bind(path).await {
        Err(Error::Listen { source, .. }) if spare::would_help(&source) => {
            let spare = spare::make(path).map_err(unheard(path))?;
            tracing::warn!(
                error = %source,
                path = %spare.display(),
                "the socket cannot be made where it belongs; clients of this user find it here"
            );
            bind(&spare).await?
        }
        bound => bound?,
    };
    Ok(UnixListener {
        listener,
        own_uid: rustix::process::geteuid().as_raw(),
        file,
        again_at: None,
    })
}

/// Why a path is not listened on.
fn unheard(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
    move |source| Error::Listen {
        path: path.to_owned(),
        source,
    }
}

async fn bind(path: &Path) -> Result<(tokio::net::UnixListener, SocketFile), Error> {
    check_length(path, path)?;
    check_vacant(path).await?;
    let failed = unheard(path);
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    sweep(folder);
    let born = tempfile::Builder::new()
        .prefix(".")
        .rand_bytes(BORN_CHARS)
        .make_in(folder, |born| {
            let socket = UnixSocket::new_stream()?;
            socket.bind(born).map(|()| socket)
        });
    let (socket, born) = born.map_err(failed)?.into_parts();
    // It has the rights of the process's umask, which is not ours to change: they
    // are set before it listens, and nobody connects to one that does not.
    fs::set_permissions(&born, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    let listener = socket.listen(BACKLOG).map_err(failed)?;
    born.persist(path).map_err(|e| failed(e.error))?;
    let file = SocketFile::of(path).map_err(failed)?;
    Ok((listener, file))
}

/// Removes the sockets that daemons which were killed were making ready.
fn sweep(folder: &Path) {
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = item.file_name();
        let letters = name.to_str().and_then(|name| name.strip_prefix('.'));
        let is_born = |letters: &str| {
            letters.len() == BORN_CHARS && letters.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        if letters.is_some_and(is_born) && item.file_type().is_ok_and(|kind| kind.is_socket()) {
            // It stays where it cannot be removed, and is in nobody's way.
            let _ = fs::remove_file(item.path());
        }
    }
}

/// Connects to the daemon that listens on `path`.
pub async fn connect(path: &Path) -> Result<UnixConnection, Error> {
    let (read, write) = open(path).await?.into_split();
    Ok(Connection::new(read, write))
}

/// Which process a client that connects to `path` talks to, as the kernel knows
/// it.
pub async fn listener(path: &Path) -> Option<i32> {
    open(path).await.ok()?.peer_cred().ok()?.pid()
}

/// A stream to whoever listens on `path`, or in its spare place.
async fn open(path: &Path) -> Result<UnixStream, Error> {
    check_length(path, path)?;
    let mut connected = match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let path = path.to_owned();
            let waited = tokio::task::spawn_blocking(move || wait_in_line(&path)).await;
            waited
                .unwrap_or_else(|gone| Err(io::Error::other(gone)))
                .and_then(UnixStream::from_std)
        }
        connected => connected,
    };
    if connected.as_ref().is_err_and(is_unanswered)
        && let Some(spare) = spare::find(path)
        && let Ok(stream) = UnixStream::connect(spare).await
    {
        connected = Ok(stream);
    }
    match connected {
        Ok(stream) => Ok(stream),
        Err(error) if is_unanswered(&error) => Err(Error::NotListening(path.to_owned())),
        Err(source) => Err(Error::Connect {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Connects to a daemon that others connect to faster than it accepts. The
/// system lets who waits in one after the other; who only tries again and again
/// finds the place taken.
fn wait_in_line(path: &Path) -> io::Result<std::os::unix::net::UnixStream> {
    use rustix::net::sockopt::{Timeout, set_socket_timeout};
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    set_socket_timeout(&socket, Timeout::Send, Some(CONNECT_WITHIN))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = std::os::unix::net::UnixStream::from(socket);
    stream.set_write_timeout(None)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

fn check_length(bound: &Path, wanted: &Path) -> Result<(), Error> {
    // The system's own check has the last word on paths with a zero byte.
    if bound.as_os_str().len() > MAX_PATH || SocketAddr::from_pathname(bound).is_err() {
        return Err(Error::PathTooLong(wanted.to_owned()));
    }
    Ok(())
}

async fn check_vacant(path: &Path) -> Result<(), Error> {
    let failed = unheard(path);
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(Error::NotASocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        Err(error) if is_unanswered(&error) => Ok(()),
        // A full backlog is a listener too.
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(failed(error)),
        Ok(_) | Err(_) => Err(Error::InUse(path.to_owned())),
    }
}

fn is_unanswered(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

/// Mode 0600 keeps other users out; the credentials keep out whoever got the
/// descriptor some other way. Root reads everything anyway.
fn may_connect(uid: u32, own_uid: u32) -> bool {
    uid == own_uid || uid == 0
}

impl Accept for UnixListener {
    type Read = OwnedReadHalf;
    type Write = OwnedWriteHalf;
    type Peer = Peer;

    async fn accept(&mut self) -> io::Result<Accepted<OwnedReadHalf, OwnedWriteHalf, Peer>> {
        loop {
            let (stream, _) = tokio::select! {
                biased;
                accepted = self.listener.accept() => accepted?,
                () = self.file.lost() => {
                    self.make_again().await;
                    continue;
                }
            };
            // Nobody is there who could be judged, or who wants an answer.
            if has_left(&stream) {
                continue;
            }
            let credentials = match stream.peer_cred() {
                Ok(credentials) => credentials,
                // One that is gone already; the next one may be alive.
                Err(error) => {
                    tracing::debug!(%error, "a peer without credentials was closed");
                    continue;
                }
            };
            let peer = Peer {
                uid: credentials.uid(),
                pid: credentials.pid(),
                handle: handle_of(&stream),
            };
            if may_connect(peer.uid, self.own_uid) {
                let (read, write) = stream.into_split();
                return Ok(Accepted { read, write, peer });
            }
            tracing::warn!(
                uid = peer.uid,
                pid = peer.pid,
                "another user's connection was closed"
            );
        }
    }

    fn source(peer: &Peer) -> Option<Source> {
        peer.pid.map(Source::Process)
    }
}

impl ReadHalf for OwnedReadHalf {
    type Hangup = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn hangup(&self) -> Self::Hangup {
        // A second descriptor, because waiting for a hangup clears readiness
        // that the writing half relies on.
        let watch = rustix::io::fcntl_dupfd_cloexec(self.as_ref(), 0)
            .map_err(io::Error::from)
            .and_then(|fd| UnixStream::from_std(fd.into()));
        match watch {
            Ok(watch) => Box::pin(hung_up(watch)),
            Err(error) => {
                // Then a write that fails is what tells.
                tracing::debug!(%error, "a connection cannot be watched for its end");
                Box::pin(std::future::pending())
            }
        }
    }
}

/// Waits until both directions are shut.
async fn hung_up(watch: UnixStream) {
    while let Ok(ready) = watch.ready(Interest::WRITABLE).await
        && !ready.is_write_closed()
    {
        // Clears what is ready, so that only a change wakes again.
        let _ = watch.try_io(Interest::WRITABLE, || {
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
    }
}

#[cfg(test)]
mod tests;
