//! Connections between CrabTalk and its clients: listen, accept, answer,
//! connect.
//!
//! One accept loop ([`serve`]) and one connection loop, generic over the
//! halves of a connection; the Unix socket, where there are such, TCP and TLS
//! fill them in.
//! Absent on purpose: what a request means, and any queue between a reply and
//! its connection: a reply is pulled as fast as its client reads (WIRE-9).

mod accept;
mod client;
mod conn;
mod crowd;
mod half;
mod tcp;
mod tls;
mod unix;

#[cfg(test)]
mod tests;

pub use accept::{Accept, Accepted, serve};
pub use client::Connection;
pub use crowd::{Crowd, Limits, Source};
pub use half::ReadHalf;
pub use tcp::{RemoteRead, TcpConnection, TcpError, TcpListener, connect_tcp};
pub use tls::{
    Certificate, CertificateError, Fingerprint, OwnCertificate, TlsConnection, TlsListener,
    connect_tls, fingerprint_of, make_certificate,
};
pub use unix::{Error, Peer, UnixConnection, UnixListener, connect, listen, listener};
