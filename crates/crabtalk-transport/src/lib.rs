//! Connections between the daemon and its clients over Unix sockets, TCP and TLS.
//!
//! One accept loop ([`serve`]) and one connection loop, generic over the
//! halves of a connection.
//!
//! Invariant: a reply is pulled as fast as its client reads, without a queue (WIRE-9).

mod accept;
mod client;
mod conn;
mod crowd;
mod input;
mod tcp;
mod tls;
mod unix;

#[cfg(test)]
mod tests;

pub use accept::{Accept, serve};
pub use client::Connection;
pub use crowd::{Crowd, Source};
pub use tcp::{TcpError, TcpListener, connect_tcp};
pub use tls::{
    Certificate, CertificateError, Fingerprint, OwnCertificate, TlsListener, connect_tls,
    fingerprint_of, make_certificate,
};
pub use unix::{Error, Peer, UnixListener, connect, listen, listener};
