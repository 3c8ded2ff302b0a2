//! TLS settings, created at the first https call: a daemon that talks only
//! to a local server never reads the machine's certificates.

use super::Failure;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Settings of every https connection.
#[derive(Default)]
pub(crate) struct Tls {
    config: OnceCell<Arc<ClientConfig>>,
    /// Replaces the machine's certificates in tests.
    #[cfg(test)]
    roots: Vec<CertificateDer<'static>>,
}

impl Tls {
    /// Trusts these certificates instead of the machine's.
    #[cfg(test)]
    pub(super) fn trusting(roots: Vec<CertificateDer<'static>>) -> Self {
        Self {
            config: OnceCell::new(),
            roots,
        }
    }

    pub(super) async fn config(&self) -> Result<Arc<ClientConfig>, Failure> {
        self.config.get_or_try_init(|| self.load()).await.cloned()
    }

    async fn load(&self) -> Result<Arc<ClientConfig>, Failure> {
        let certificates = self.certificates().await?;
        let mut roots = RootCertStore::empty();
        // An unreadable certificate among hundreds is ignored.
        let (usable, _) = roots.add_parsable_certificates(certificates);
        if usable == 0 {
            return Err(Failure::Tls(
                "this machine has no CA certificates; install the package ca-certificates or set \
                 SSL_CERT_FILE"
                    .into(),
            ));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Failure::Tls(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }

    async fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, Failure> {
        #[cfg(test)]
        if !self.roots.is_empty() {
            return Ok(self.roots.clone());
        }
        // Reading the files takes some milliseconds.
        tokio::task::spawn_blocking(|| rustls_native_certs::load_native_certs().certs)
            .await
            .map_err(|error| Failure::Tls(error.to_string()))
    }
}
