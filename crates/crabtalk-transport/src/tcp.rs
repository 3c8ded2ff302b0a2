//! TCP (REMOTE-1).
//!
//! Invariant: a peer that vanishes is detected within two minutes.

use crate::accept::Accept;
use crate::client::Connection;
use crate::crowd::Source;
use socket2::{SockRef, TcpKeepalive};
use std::future::{Ready, ready};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Idle time before the first keepalive probe. Many routers drop a connection after five
/// minutes.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// Time between two keepalive probes.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

/// Unanswered probes after which the peer counts as gone, two minutes after its last packet.
const KEEPALIVE_TRIES: u32 = 4;

/// Time for the peer to acknowledge sent data. The system's default is a quarter of an hour.
const RECEIPT_WITHIN: Duration = Duration::from_secs(120);

/// Timeout of a connection attempt; a slow network needs a second or two.
pub(crate) const CONNECT_WITHIN: Duration = Duration::from_secs(15);

/// A failure to listen or to connect.
#[derive(Debug, thiserror::Error)]
pub enum TcpError {
    /// Another process listens on the port, perhaps another daemon.
    #[error("port {} of {} is taken; stop that process, or name another port", .0.port(), .0.ip())]
    Taken(SocketAddr),
    /// The system refuses the address, which may not be this machine's, or a port below 1024.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address to listen on.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The server does not answer, or its name has no address: check both, and that the daemon runs.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The given address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The server does not speak TLS: it may be another service.
    #[error("the TLS handshake with {address} failed: {why}")]
    NoTls {
        /// The given address.
        address: String,
        /// The reason.
        why: String,
    },
    /// The pinned fingerprint does not match: pin the new one only if its owner confirms it.
    #[error(
        "the certificate of {address} is not the pinned one: expected {expected}, got {seen}; \
         unless its owner created a new one, someone intercepts the connection"
    )]
    Changed {
        /// The given address.
        address: String,
        /// The pinned fingerprint.
        expected: crate::Fingerprint,
        /// The server's fingerprint.
        seen: crate::Fingerprint,
    },
}

/// A listening TCP socket.
#[derive(Debug)]
pub struct TcpListener {
    listener: tokio::net::TcpListener,
    /// The addresses that may connect; an empty list allows all.
    only: Vec<IpAddr>,
}

impl TcpListener {
    /// Listens on an address. Unless `only` is empty, connections from other addresses are closed
    /// without a reply.
    pub async fn bind(address: SocketAddr, only: Vec<IpAddr>) -> Result<Self, TcpError> {
        match tokio::net::TcpListener::bind(address).await {
            Ok(listener) => Ok(Self { listener, only }),
            Err(source) if source.kind() == io::ErrorKind::AddrInUse => {
                Err(TcpError::Taken(address))
            }
            Err(source) => Err(TcpError::Listen { address, source }),
        }
    }

    /// The address of the listener, with the port that the system chose for 0.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Accepts the next connection. Safe to cancel.
    pub(crate) async fn next(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            let (stream, peer) = self.listener.accept().await?;
            let from = peer.ip().to_canonical();
            if !self.only.is_empty() && !self.only.contains(&from) {
                tracing::warn!(target: "security", %from, "connection closed: its source is not a configured proxy");
                continue;
            }
            if let Err(error) = prepare(&stream) {
                tracing::debug!(%error, "connection closed before it was accepted");
                continue;
            }
            return Ok((stream, peer));
        }
    }
}

/// The source of an address. An IPv6 /64 network counts as one source, since one customer has all its addresses.
pub(crate) fn source_of(peer: SocketAddr) -> Source {
    Source::Address(match peer.ip().to_canonical() {
        IpAddr::V6(ip) => {
            let network = ip.to_bits() >> 64 << 64;
            IpAddr::V6(network.into())
        }
        v4 @ IpAddr::V4(_) => v4,
    })
}

/// Sets the socket options of both sides.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY)
        .with_retries(KEEPALIVE_TRIES);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(RECEIPT_WITHIN))?;
    Ok(())
}

impl Accept for TcpListener {
    type Read = OwnedReadHalf;
    type Write = OwnedWriteHalf;
    type Peer = SocketAddr;
    type Opening = Ready<io::Result<(Self::Read, Self::Write)>>;

    async fn accept(&mut self) -> io::Result<(Self::Opening, SocketAddr)> {
        let (stream, peer) = self.next().await?;
        Ok((ready(Ok(stream.into_split())), peer))
    }

    fn source(peer: &SocketAddr) -> Option<Source> {
        Some(source_of(*peer))
    }
}

/// Connects to `HOST:PORT`, unencrypted.
pub async fn connect_tcp(address: &str) -> Result<Connection, TcpError> {
    let (read, write) = open(address).await?.into_split();
    Ok(Connection::new(read, write))
}

/// Opens a TCP stream without sending data.
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
