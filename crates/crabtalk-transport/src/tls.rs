//! TLS over TCP (REMOTE-1), by rustls with ring.
//!
//! Invariants: TLS 1.3 and nothing older; handshakes run on a thread of their own,
//! bounded in number and time, so that a flood of them holds up nobody who is
//! connected; a client knows a daemon by the certificate that was pinned, and by
//! nothing else.

mod client;
mod handshake;
mod own;

pub use client::{TlsConnection, connect_tls, fingerprint_of};
pub use own::{OwnCertificate, make_certificate};

use crate::accept::{Accept, Accepted};
use crate::crowd::Source;
use crate::tcp::{RemoteRead, TcpListener, source_of};
use futures_util::FutureExt;
use handshake::{Handshakes, Shaken};
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The SHA-256 of a certificate, by which a client knows it again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

/// What stands before its digits.
const KIND: &str = "SHA256:";

impl Fingerprint {
    /// Of a certificate as it is sent.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Self {
        let digest = ::ring::digest::digest(&::ring::digest::SHA256, certificate);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    /// Reads what `Display` wrote; colons between the digits are allowed.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = match text.get(..KIND.len()) {
            Some(kind) if kind.eq_ignore_ascii_case(KIND) => &text[KIND.len()..],
            _ => text,
        };
        let digits: Vec<u8> = digits.bytes().filter(|b| *b != b':').collect();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let digit = |b: u8| char::from(b).to_digit(16);
            let value = digit(pair[0])? * 16 + digit(pair[1])?;
            *byte = u8::try_from(value).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KIND)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file of the configuration holds something else than PEM: check which file is named.
    #[error("the {what} is not PEM: {why}")]
    NotPem {
        /// `certificate` or `key`.
        what: &'static str,
        /// What the reader said.
        why: String,
    },
    /// Both were read, and do not belong together or are of a kind that TLS 1.3 does not take.
    #[error("the certificate cannot be used: {0}")]
    Unusable(String),
    /// The system gave no key or no randomness; it says why.
    #[error("a certificate cannot be made: {0}")]
    NotMade(String),
}

/// What a daemon shows its clients.
#[derive(Clone)]
pub struct Certificate {
    config: Arc<ServerConfig>,
    fingerprint: Fingerprint,
}

impl Certificate {
    /// From a chain and its key, both PEM.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let not_pem = |what, why: rustls::pki_types::pem::Error| CertificateError::NotPem {
            what,
            why: why.to_string(),
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|e| not_pem("certificate", e))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| not_pem("key", e))?;
        let Some(leaf) = chain.first() else {
            let why = "no certificate is in it".into();
            return Err(CertificateError::NotPem {
                what: "certificate",
                why,
            });
        };
        let fingerprint = Fingerprint::of(leaf);
        let unusable = |e: rustls::Error| CertificateError::Unusable(e.to_string());
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        // Taking up old sessions would keep memory for whoever comes once.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self {
            config: Arc::new(config),
            fingerprint,
        })
    }

    /// By what clients know it.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificate")
            .field(&self.fingerprint)
            .finish()
    }
}

/// The one provider of cryptography of this program.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// A TCP socket whose connections are encrypted before anything is read of them.
#[derive(Debug)]
pub struct TlsListener {
    tcp: TcpListener,
    certificate: Certificate,
    handshakes: Handshakes,
}

impl TlsListener {
    /// Takes the connections of a listener, and starts the thread on which their
    /// handshakes run; it ends with this.
    pub fn new(tcp: TcpListener, certificate: Certificate) -> io::Result<Self> {
        let handshakes = Handshakes::start(Arc::clone(&certificate.config))?;
        Ok(Self {
            tcp,
            certificate,
            handshakes,
        })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// A connection whose handshake is over, on this thread's runtime.
    fn take_over(&self, shaken: Shaken) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::from_std(shaken.stream)?;
        let acceptor = TlsAcceptor::from(Arc::clone(&self.certificate.config));
        let mut session = shaken.session;
        let accepted = acceptor.accept_with(stream, |fresh| std::mem::swap(fresh, &mut session));
        // Nothing is left of the handshake, so there is nothing to wait for.
        accepted
            .now_or_never()
            .unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }
}

impl Accept for TlsListener {
    type Read = RemoteRead<ReadHalf<TlsStream<TcpStream>>>;
    type Write = WriteHalf<TlsStream<TcpStream>>;
    type Peer = SocketAddr;

    async fn accept(&mut self) -> io::Result<Accepted<Self::Read, Self::Write, SocketAddr>> {
        loop {
            let shaken = self.handshakes.next(&self.tcp).await?;
            let peer = shaken.peer;
            match self.take_over(shaken) {
                Ok(stream) => {
                    let (read, write) = tokio::io::split(stream);
                    return Ok(Accepted {
                        read: RemoteRead::new(read),
                        write,
                        peer,
                    });
                }
                Err(error) => tracing::debug!(%error, "an encrypted connection was lost"),
            }
        }
    }

    fn source(peer: &SocketAddr) -> Option<Source> {
        Some(source_of(*peer))
    }
}

#[cfg(test)]
mod tests;
