//! TCP (REMOTE-1): the way in from elsewhere, and where there are no Unix sockets.
//!
//! Invariants: nothing of it works on Unix alone; a peer that closes its
//! connection has gone, whatever it might still want to read; one that vanishes
//! without a word is noticed within minutes.

mod taken;

use crate::accept::{Accept, Accepted};
use crate::client::Connection;
use crate::crowd::Source;
use crate::half::ReadHalf;
use socket2::{SockRef, TcpKeepalive};
use std::future::{Future, pending, ready};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// How long a connection is silent before the system asks whether its peer still
/// lives: less than the five minutes after which many routers forget one.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// Between two such questions.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

/// Questions without an answer, until the peer counts as gone: two minutes from
/// its last sign of life.
const KEEPALIVE_TRIES: u32 = 4;

/// How long what was sent may go without the peer's receipt. The system's own
/// answer is a quarter of an hour.
#[cfg(target_os = "linux")]
const RECEIPT_WITHIN: Duration = Duration::from_secs(120);

/// How long connecting may take: over a slow network it needs a second or two.
pub(crate) const CONNECT_WITHIN: Duration = Duration::from_secs(15);

/// Why there is no listener, or no connection.
#[derive(Debug, thiserror::Error)]
pub enum TcpError {
    /// Somebody listens there already, perhaps another daemon.
    #[error("port {} of {} is taken{by}; stop that, or name another port", .address.port(), .address.ip())]
    Taken {
        /// Where it was to listen.
        address: SocketAddr,
        /// By whom, as far as the system tells.
        by: String,
    },
    /// The system refuses the address, which may not be this machine's, or a port below 1024.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where it was to listen.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody answered, or the name has no address: check both, and that the daemon runs.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The address as it was given.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Something answered, but without a handshake of TLS: it may be another service.
    #[error("{address} does not answer as a daemon with TLS does: {why}")]
    NoTls {
        /// The address as it was given.
        address: String,
        /// Where the handshake failed.
        why: String,
    },
    /// The pinned fingerprint does not match: pin the new one only if its owner confirms it.
    #[error(
        "the certificate of {address} is not the one that was pinned: expected {expected}, got \
         {seen}; unless its owner has made a new one, somebody is in between"
    )]
    Changed {
        /// The address as it was given.
        address: String,
        /// What was pinned.
        expected: crate::Fingerprint,
        /// What the server showed.
        seen: crate::Fingerprint,
    },
}

/// A listening TCP socket.
#[derive(Debug)]
pub struct TcpListener {
    listener: tokio::net::TcpListener,
    /// Who alone may connect; empty is everybody.
    only: Vec<IpAddr>,
}

impl TcpListener {
    /// Listens on an address. Given some, it takes connections from `only` those
    /// addresses, and closes all others without a word.
    pub async fn bind(address: SocketAddr, only: Vec<IpAddr>) -> Result<Self, TcpError> {
        match tokio::net::TcpListener::bind(address).await {
            Ok(listener) => Ok(Self { listener, only }),
            Err(source) if source.kind() == io::ErrorKind::AddrInUse => Err(TcpError::Taken {
                by: taken::by_whom(address)
                    .map(|who| format!(" by {who}"))
                    .unwrap_or_default(),
                address,
            }),
            Err(source) => Err(TcpError::Listen { address, source }),
        }
    }

    /// Where it listens, with the port that the system chose for 0.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next connection, before anything is said on it. Safe to cancel.
    pub(crate) async fn next(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            let (stream, peer) = self.listener.accept().await?;
            let from = peer.ip().to_canonical();
            if !self.only.is_empty() && !self.only.contains(&from) {
                tracing::warn!(target: "security", %from, "a connection past the proxy was closed");
                continue;
            }
            if let Err(error) = prepare(&stream) {
                // One that is gone already.
                tracing::debug!(%error, "a connection was closed before it began");
                continue;
            }
            return Ok((stream, peer));
        }
    }
}

/// By what an address is counted: a whole network of the sixth version, of which
/// one customer has as many addresses as there are.
pub(crate) fn source_of(peer: SocketAddr) -> Source {
    Source::Address(match peer.ip().to_canonical() {
        IpAddr::V6(ip) => {
            let network = ip.to_bits() >> 64 << 64;
            IpAddr::V6(network.into())
        }
        v4 @ IpAddr::V4(_) => v4,
    })
}

/// What holds for connections on both sides.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY)
        .with_retries(KEEPALIVE_TRIES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(RECEIPT_WITHIN))?;
    Ok(())
}

impl Accept for TcpListener {
    type Read = RemoteRead<OwnedReadHalf>;
    type Write = OwnedWriteHalf;
    type Peer = SocketAddr;

    async fn accept(&mut self) -> io::Result<Accepted<Self::Read, Self::Write, SocketAddr>> {
        let (stream, peer) = self.next().await?;
        let (read, write) = stream.into_split();
        Ok(Accepted {
            read: RemoteRead::new(read),
            write,
            peer,
        })
    }

    fn source(peer: &SocketAddr) -> Option<Source> {
        Some(source_of(*peer))
    }
}

/// The reading half of a connection over a network, where the end of what a peer
/// sends is all that is heard of its leaving.
#[derive(Debug)]
pub struct RemoteRead<R> {
    half: R,
    ended: bool,
}

impl<R> RemoteRead<R> {
    pub(crate) fn new(half: R) -> Self {
        Self { half, ended: false }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for RemoteRead<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.half).poll_read(cx, buffer);
        if let Poll::Ready(Ok(())) = read
            && buffer.filled().len() == before
        {
            self.ended = true;
        }
        read
    }
}

impl<R: AsyncRead + Unpin + Send> ReadHalf for RemoteRead<R> {
    type Hangup = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn hangup(&self) -> Self::Hangup {
        if self.ended {
            Box::pin(ready(()))
        } else {
            // It has sent more than is taken ahead: a write that fails tells.
            Box::pin(pending())
        }
    }
}

/// A client's connection over TCP, unencrypted.
pub type TcpConnection = Connection<OwnedReadHalf, OwnedWriteHalf>;

/// Connects to `HOST:PORT`.
pub async fn connect_tcp(address: &str) -> Result<TcpConnection, TcpError> {
    let (read, write) = open(address).await?.into_split();
    Ok(Connection::new(read, write))
}

/// A connection on which nothing was said.
pub(crate) async fn open(address: &str) -> Result<TcpStream, TcpError> {
    let failed = |source| TcpError::Connect {
        address: address.to_owned(),
        source,
    };
    let connecting = TcpStream::connect(address);
    let connected = tokio::time::timeout(CONNECT_WITHIN, connecting).await;
    let stream = connected
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(failed)?;
    prepare(&stream).map_err(failed)?;
    Ok(stream)
}

#[cfg(test)]
mod tests;
