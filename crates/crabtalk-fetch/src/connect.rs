//! Resolves a name once, judges all its addresses, and connects to one of them.
//!
//! Invariant: connections go only to judged addresses. A name is resolved once per
//! connection, so that a name server cannot answer differently afterwards.

use crate::address::is_public;
use crate::error::Error;
use crate::settings::Settings;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

/// Maximum addresses of a name that are tried.
const MAX_TRIED: usize = 4;

/// The future of a lookup.
pub type Resolved = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves names.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of this name.
    fn resolve(&self, name: &str) -> Resolved;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Resolve for System {
    fn resolve(&self, name: &str) -> Resolved {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A plain or encrypted connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens connections to judged addresses.
pub(crate) struct Connector {
    resolve: Box<dyn Resolve>,
    tls: OnceCell<Arc<ClientConfig>>,
}

impl Connector {
    pub(crate) fn new(resolve: impl Resolve) -> Self {
        Self {
            resolve: Box::new(resolve),
            tls: OnceCell::new(),
        }
    }

    /// Connects to the server of a page.
    pub(crate) async fn open(
        &self,
        url: &Url,
        settings: &Settings,
    ) -> Result<Box<dyn Stream>, Error> {
        let port = url.port_or_known_default().unwrap_or(80);
        let stream = self.dial(url, port, settings).await?;
        let _ = stream.set_nodelay(true);
        if url.scheme() != "https" {
            return Ok(Box::new(stream));
        }
        let failed = |why: String| Error::Tls {
            host: url.host_str().unwrap_or_default().to_owned(),
            why,
        };
        let config = self.tls.get_or_try_init(|| load(settings)).await;
        let config = config.map_err(&failed)?.clone();
        let name = match url.host() {
            Some(Host::Domain(name)) => ServerName::try_from(name.to_owned()).ok(),
            Some(Host::Ipv4(v4)) => Some(ServerName::from(IpAddr::from(v4))),
            Some(Host::Ipv6(v6)) => Some(ServerName::from(IpAddr::from(v6))),
            None => None,
        };
        let name = name.ok_or_else(|| failed("it is not a valid server name".into()))?;
        let secured = TlsConnector::from(config).connect(name, stream).await;
        secured
            .map(|stream| Box::new(stream) as Box<dyn Stream>)
            .map_err(|e| failed(e.to_string()))
    }

    async fn dial(&self, url: &Url, port: u16, settings: &Settings) -> Result<TcpStream, Error> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let addresses = match url.host() {
            Some(Host::Ipv4(v4)) => vec![IpAddr::from(v4)],
            Some(Host::Ipv6(v6)) => vec![IpAddr::from(v6)],
            Some(Host::Domain(name)) => {
                let found = self.resolve.resolve(name).await;
                found.map_err(|source| Error::Resolve {
                    host: host.clone(),
                    source,
                })?
            }
            None => Vec::new(),
        };
        // One private address among public ones is enough to refuse, since names that attack
        // private networks mix them.
        for address in &addresses {
            if !is_public(*address) && !settings.allows(*address) {
                let address = *address;
                return Err(Error::Forbidden { host, address });
            }
        }
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in addresses.into_iter().take(MAX_TRIED) {
            match TcpStream::connect(SocketAddr::new(address, port)).await {
                Ok(stream) => return Ok(stream),
                Err(e) => last = e,
            }
        }
        Err(Error::Connect { host, source: last })
    }
}

/// Loads the configuration of TLS.
async fn load(settings: &Settings) -> Result<Arc<ClientConfig>, String> {
    let own = settings.ca_file.clone();
    let read = tokio::task::spawn_blocking(move || {
        let mut certificates = rustls_native_certs::load_native_certs().certs;
        if let Some(path) = own {
            let failed = |e: &dyn std::fmt::Display| format!("cannot read {}: {e}", path.display());
            let pem = CertificateDer::pem_file_iter(&path).map_err(|e| failed(&e))?;
            for certificate in pem {
                certificates.push(certificate.map_err(|e| failed(&e))?);
            }
        }
        Ok::<_, String>(certificates)
    });
    let certificates = read.await.map_err(|e| e.to_string())??;
    let mut roots = RootCertStore::empty();
    // Certificates that cannot be parsed are ignored.
    let (usable, _) = roots.add_parsable_certificates(certificates);
    if usable == 0 {
        return Err("this machine has no CA certificates; install the package \
             ca-certificates or set SSL_CERT_FILE"
            .to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
