//! Connections between the daemon and its clients over Unix sockets, TCP and TLS.
//!
//! The accept loop ([`serve`]) and the connection loop are generic over the halves of a
//! connection.
//!
//! Invariant: no queue lies between a reply and its client; the client's reading sets the pace (WIRE-9).

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
