//! TLS over TCP (REMOTE-1), by rustls with ring.
//!
//! Invariants: TLS 1.3 only; a handshake runs in its connection's task, within a timeout;
//! a client trusts exactly the pinned certificate.

mod client;
mod own;

pub use client::{connect_tls, fingerprint_of};
pub use own::{OwnCertificate, make_certificate};

use crate::accept::Accept;
use crate::crowd::Source;
use crate::tcp::{TcpListener, source_of};
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The SHA-256 of a certificate, which a client pins.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

/// The prefix of the text form.
const KIND: &str = "SHA256:";

impl Fingerprint {
    /// Hashes a certificate in DER.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Self {
        let digest = ::ring::digest::digest(&::ring::digest::SHA256, certificate);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    /// Parses the format of `Display`; colons between the digits are allowed.
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
    /// A configured file is not PEM: check the named file.
    #[error("the {what} is not PEM: {why}")]
    NotPem {
        /// `certificate` or `key`.
        what: &'static str,
        /// The parser's reason.
        why: String,
    },
    /// Certificate and key do not match, or TLS 1.3 does not support their kind.
    #[error("the certificate cannot be used: {0}")]
    Unusable(String),
    /// The key or the certificate could not be generated.
    #[error("cannot create a certificate: {0}")]
    NotMade(String),
}

/// The certificate of a daemon.
#[derive(Clone)]
pub struct Certificate {
    config: Arc<ServerConfig>,
    fingerprint: Fingerprint,
}

impl Certificate {
    /// Loads a PEM chain and its PEM key.
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
            let why = "it contains no certificate".into();
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
        // Session resumption would keep memory for clients that connect once.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self {
            config: Arc::new(config),
            fingerprint,
        })
    }

    /// The fingerprint that clients pin.
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

/// The cryptography provider of this program.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// A TCP listener whose connections are encrypted.
#[derive(Debug)]
pub struct TlsListener {
    tcp: TcpListener,
    certificate: Certificate,
}

impl TlsListener {
    /// Wraps a TCP listener.
    pub fn new(tcp: TcpListener, certificate: Certificate) -> Self {
        Self { tcp, certificate }
    }

    /// The address of the listener.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

type Encrypted = (
    ReadHalf<TlsStream<TcpStream>>,
    WriteHalf<TlsStream<TcpStream>>,
);

impl Accept for TlsListener {
    type Read = ReadHalf<TlsStream<TcpStream>>;
    type Write = WriteHalf<TlsStream<TcpStream>>;
    type Peer = SocketAddr;
    type Opening = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    async fn accept(&mut self) -> io::Result<(Self::Opening, SocketAddr)> {
        let (stream, peer) = self.tcp.next().await?;
        let acceptor = TlsAcceptor::from(Arc::clone(&self.certificate.config));
        let opening = async move { Ok(tokio::io::split(acceptor.accept(stream).await?)) };
        Ok((Box::pin(opening), peer))
    }

    fn source(peer: &SocketAddr) -> Option<Source> {
        Some(source_of(*peer))
    }
}

#[cfg(test)]
mod tests;
