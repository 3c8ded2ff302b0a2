//! The TLS certificate that clients pin: the owner's, or one created on first use.

use crabtalk_config::{Home, TcpTls, read_limited, write_atomic};
use crabtalk_transport::{Certificate, make_certificate};
use std::path::{Path, PathBuf};

/// Largest certificate or key file; chains have a few kilobytes.
const MAX_PEM_BYTES: u64 = 256 * 1024;

/// The folder of the daemon's generated certificate.
pub(crate) fn folder(home: &Home) -> PathBuf {
    home.state_dir().join("tls")
}

/// Reads or creates the certificate. Blocks.
pub(super) fn load(home: &Home, tls: &TcpTls) -> Result<Option<Certificate>, String> {
    let (chain, key) = match tls {
        TcpTls::Off => return Ok(None),
        TcpTls::Files { cert, key } => (cert.clone(), key.clone()),
        TcpTls::Own => own(home)?,
    };
    let read = |path: &Path| match read_limited(path, MAX_PEM_BYTES) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(format!("{} does not exist", path.display())),
        Err(error) => Err(error.with_causes()),
    };
    let certificate = Certificate::from_pem(read(&chain)?.as_bytes(), read(&key)?.as_bytes());
    let loaded = certificate.map_err(|e| format!("{}: {e}", chain.display()))?;
    Ok(Some(loaded))
}

/// The files of the generated certificate, created if absent. The key is written first,
/// so that a later start overwrites the key after a crash.
fn own(home: &Home) -> Result<(PathBuf, PathBuf), String> {
    let folder = folder(home);
    let (chain, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    if !chain.exists() {
        let made = make_certificate().map_err(|e| e.to_string())?;
        let make = |path: &Path, text: &str| {
            crabtalk_files::create_folder(&folder)
                .map_err(|e| format!("{}: {e}", folder.display()))?;
            write_atomic(path, text).map_err(|e| e.with_causes())
        };
        make(&key, &made.key)?;
        make(&chain, &made.certificate)?;
    }
    Ok((chain, key))
}
