//! The Unix socket (WIRE-2).
//!
//! Invariants: the socket file appears with mode 0600 and already listening; a socket with a
//! live listener is never replaced; only our own file is removed; only our own user
//! and root get a connection.

use crate::accept::Accept;
use crate::client::Connection;
use crate::crowd::Source;
use std::fs;
use std::future::{Ready, ready};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixSocket, UnixStream};

/// Longest socket path in bytes: `sun_path` without its terminating zero.
const MAX_PATH: usize = 107;

/// Random characters in the temporary name of a new socket, such as `.abcd`, which must not be
/// longer than `daemon.sock`.
const TEMPORARY_CHARS: usize = 4;

/// Length of the accept queue: the default connection limit.
const BACKLOG: u32 = 4096;

/// A failure to listen or to connect.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is too long for a socket address (STORE-6).
    #[error(
        "the socket path {} is too long: {} bytes, the limit is {MAX_PATH}; choose a shorter \
         CRABTALK_HOME", .0.display(), .0.as_os_str().len()
    )]
    PathTooLong(PathBuf),
    /// A daemon answers on the socket.
    #[error("another daemon listens on {}; stop it first", .0.display())]
    InUse(PathBuf),
    /// The path is an existing file that is not a socket. It is not removed.
    #[error("{} exists and is not a socket; move it away", .0.display())]
    NotASocket(PathBuf),
    /// The socket is missing, or a dead daemon left it.
    #[error("no daemon listens on {}; start one with `crabtalk daemon run`", .0.display())]
    NotListening(PathBuf),
    /// The system refuses to create the socket, as in a read-only folder.
    #[error("cannot listen on {}", path.display())]
    Listen {
        /// The path of the socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// This user may not use the socket, or the system is out of descriptors.
    #[error("cannot connect to {}: {source}", path.display())]
    Connect {
        /// The path of the socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The peer as the kernel reports it.
#[derive(Debug)]
pub struct Peer {
    /// User id.
    pub uid: u32,
    /// Process id, if the kernel reports it.
    pub pid: Option<i32>,
    /// A pidfd of that process, since process ids are reused; `None` on Linux before 6.5.
    pub handle: io::Result<Option<OwnedFd>>,
}

/// A listening socket; its file is removed when this is dropped.
#[derive(Debug)]
pub struct UnixListener {
    listener: tokio::net::UnixListener,
    own_uid: u32,
    path: PathBuf,
    /// Device and inode of our socket, to detect that another daemon replaced it.
    identity: (u64, u64),
}

impl Drop for UnixListener {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the socket");
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Opens a pidfd of the peer.
fn handle_of(stream: &UnixStream) -> io::Result<Option<OwnedFd>> {
    use nix::errno::Errno;
    use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
    match getsockopt(stream, PeerPidfd) {
        Ok(handle) => Ok(Some(handle)),
        Err(Errno::ENOPROTOOPT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the peer closed without sending a byte, as a check for a running daemon does.
fn has_closed(stream: &UnixStream) -> bool {
    use rustix::net::{RecvFlags, recv};
    let look = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(recv(stream, &mut [0; 1], look), Ok((0, _)))
}

/// Listens on `path`, whose folder must exist. A stale socket is replaced.
///
/// The lock of the home excludes two daemons that start at the same moment (STORE-6).
pub async fn listen(path: &Path) -> Result<UnixListener, Error> {
    check_length(path)?;
    check_vacant(path).await?;
    let failed = cannot_listen(path);
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let temporary = tempfile::Builder::new()
        .prefix(".")
        .rand_bytes(TEMPORARY_CHARS)
        .make_in(folder, |temporary| {
            let socket = UnixSocket::new_stream()?;
            socket.bind(temporary).map(|()| socket)
        });
    let (socket, temporary) = temporary.map_err(failed)?.into_parts();
    // Permissions are set before `listen`; a umask would apply to the whole process.
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    let listener = socket.listen(BACKLOG).map_err(failed)?;
    temporary.persist(path).map_err(|e| failed(e.error))?;
    Ok(UnixListener {
        listener,
        own_uid: rustix::process::geteuid().as_raw(),
        path: path.to_owned(),
        identity: identity(path).map_err(failed)?,
    })
}

fn cannot_listen(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
    move |source| Error::Listen {
        path: path.to_owned(),
        source,
    }
}

/// Connects to the daemon that listens on `path`.
pub async fn connect(path: &Path) -> Result<Connection, Error> {
    let (read, write) = open(path).await?.into_split();
    Ok(Connection::new(read, write))
}

/// The process that listens on `path`, as reported by the kernel.
pub async fn listener(path: &Path) -> Option<i32> {
    open(path).await.ok()?.peer_cred().ok()?.pid()
}

async fn open(path: &Path) -> Result<UnixStream, Error> {
    check_length(path)?;
    match UnixStream::connect(path).await {
        Ok(stream) => Ok(stream),
        Err(error) if is_unanswered(&error) => Err(Error::NotListening(path.to_owned())),
        Err(source) => Err(Error::Connect {
            path: path.to_owned(),
            source,
        }),
    }
}

fn check_length(path: &Path) -> Result<(), Error> {
    // The conversion also refuses paths with a zero byte.
    if path.as_os_str().len() > MAX_PATH || SocketAddr::from_pathname(path).is_err() {
        return Err(Error::PathTooLong(path.to_owned()));
    }
    Ok(())
}

async fn check_vacant(path: &Path) -> Result<(), Error> {
    let failed = cannot_listen(path);
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
        // A full backlog proves a listener.
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

/// Mode 0600 excludes other users; the credentials also exclude a user who got the
/// descriptor in another way. Root can read everything anyway.
fn may_connect(uid: u32, own_uid: u32) -> bool {
    uid == own_uid || uid == 0
}

impl Accept for UnixListener {
    type Read = OwnedReadHalf;
    type Write = OwnedWriteHalf;
    type Peer = Peer;
    type Opening = Ready<io::Result<(OwnedReadHalf, OwnedWriteHalf)>>;

    async fn accept(&mut self) -> io::Result<(Self::Opening, Peer)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            if has_closed(&stream) {
                continue;
            }
            let credentials = match stream.peer_cred() {
                Ok(credentials) => credentials,
                Err(error) => {
                    tracing::debug!(%error, "connection closed: its credentials cannot be read");
                    continue;
                }
            };
            let peer = Peer {
                uid: credentials.uid(),
                pid: credentials.pid(),
                handle: handle_of(&stream),
            };
            if may_connect(peer.uid, self.own_uid) {
                return Ok((ready(Ok(stream.into_split())), peer));
            }
            tracing::warn!(
                uid = peer.uid,
                pid = peer.pid,
                "closed a connection of another user"
            );
        }
    }

    fn source(peer: &Peer) -> Option<Source> {
        peer.pid.map(Source::Process)
    }
}

#[cfg(test)]
mod tests;
