//! The client's side: a connection to the daemon with the pinned certificate.
//!
//! Invariant: only the pinned certificate is trusted, and only with proof of its key; names and
//! certificate authorities are ignored.

use super::{Fingerprint, provider};
use crate::client::Connection;
use crate::tcp::{self, CONNECT_WITHIN, TcpError};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, OnceLock};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Connects to `HOST:PORT`, whose certificate must have this fingerprint.
pub async fn connect_tls(address: &str, pin: Fingerprint) -> Result<Connection, TcpError> {
    let verifier = Arc::new(Pinned::new(Some(pin)));
    let stream = shake(address, &verifier).await?;
    let (read, write) = tokio::io::split(stream);
    Ok(Connection::new(read, write))
}

/// Reads the fingerprint of the certificate at `HOST:PORT`, for a person to compare.
pub async fn fingerprint_of(address: &str) -> Result<Fingerprint, TcpError> {
    let verifier = Arc::new(Pinned::new(None));
    shake(address, &verifier).await?;
    let seen = verifier.seen.get().copied();
    seen.ok_or_else(|| TcpError::NoTls {
        address: address.to_owned(),
        why: "the server sent no certificate".into(),
    })
}

async fn shake(address: &str, verifier: &Arc<Pinned>) -> Result<TlsStream<TcpStream>, TcpError> {
    let stream = tcp::open(address).await?;
    let no_tls = |why: String| TcpError::NoTls {
        address: address.to_owned(),
        why,
    };
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| no_tls(e.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(verifier) as Arc<dyn ServerCertVerifier>)
        .with_no_client_auth();
    // SNI would show the name on the network.
    config.enable_sni = false;
    config.resumption = rustls::client::Resumption::disabled();
    // The verifier ignores the name.
    let name = ServerName::from(IpAddr::from(Ipv4Addr::LOCALHOST));
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let connected = tokio::time::timeout(CONNECT_WITHIN, connecting).await;
    connected
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(|error| match (verifier.pin, verifier.seen.get()) {
            (Some(expected), Some(&seen)) if seen != expected => TcpError::Changed {
                address: address.to_owned(),
                expected,
                seen,
            },
            _ => no_tls(error.to_string()),
        })
}

/// Accepts the certificate with one fingerprint, or any certificate if there is none.
#[derive(Debug)]
struct Pinned {
    pin: Option<Fingerprint>,
    seen: OnceLock<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn new(pin: Option<Fingerprint>) -> Self {
        Self {
            pin,
            seen: OnceLock::new(),
            provider: provider(),
        }
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let seen = *self.seen.get_or_init(|| Fingerprint::of(end_entity));
        match self.pin {
            Some(pin) if pin != seen => Err(Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            )),
            Some(_) | None => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
