//! The self-signed certificate of a daemon.

use super::CertificateError;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

/// The common name of the certificate. Clients check only the fingerprint.
const NAME: &str = "CrabTalk daemon";

/// A self-signed certificate and its key, both PEM.
#[derive(Clone)]
pub struct OwnCertificate {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl std::fmt::Debug for OwnCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnCertificate")
    }
}

/// Generates a key and a self-signed certificate without expiry: clients pin it.
pub fn make_certificate() -> Result<OwnCertificate, CertificateError> {
    let failed = |e: rcgen::Error| CertificateError::NotMade(e.to_string());
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::new(vec!["crabtalk".to_owned()]).map_err(failed)?;
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, NAME);
    params.distinguished_name = name;
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok(OwnCertificate {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}
