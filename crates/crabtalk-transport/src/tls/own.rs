//! A certificate of the daemon's own making.

use super::CertificateError;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

/// What the certificate says of its owner. Clients do not read it: they know the
/// whole by its fingerprint.
const NAME: &str = "CrabTalk daemon";

/// Both PEM.
#[derive(Clone)]
pub struct OwnCertificate {
    /// The certificate.
    pub certificate: String,
    /// Its key, which nobody else may read.
    pub key: String,
}

impl std::fmt::Debug for OwnCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnCertificate")
    }
}

/// Makes a key and a certificate that it signs itself. It has no end: what makes it
/// trusted is that a client pinned it, and what ends that is removing it.
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
