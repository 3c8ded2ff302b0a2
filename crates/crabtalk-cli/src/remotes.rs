//! Remote daemons of this machine: `state/remotes.toml`.
//!
//! Invariants: the file is private, since it contains tokens; certificates are changed only by
//! hand or by `remote add`.

use crate::error::Error;
use crabtalk_client::{Address, Endpoint, Fingerprint, Remote};
use crabtalk_config::{Home, read_limited, write_atomic};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Maximum file size.
const MAX_BYTES: u64 = 1024 * 1024;

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) address: String,
    pub(crate) token: String,
    /// The pinned fingerprint; `None` for local addresses without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Remotes {
    #[serde(default)]
    pub(crate) remote: BTreeMap<String, Known>,
}

fn file(home: &Home) -> PathBuf {
    home.state_dir().join("remotes.toml")
}

impl Remotes {
    pub(crate) fn load(home: &Home) -> Result<Self, Error> {
        let path = file(home);
        let text = read_limited(&path, MAX_BYTES)?.unwrap_or_default();
        toml::from_str(&text).map_err(|error| {
            // The parser's message would show the token.
            let at = error.span().map(|span| text[..span.start].lines().count());
            let at = at
                .map(|line| format!(":{}", line.max(1)))
                .unwrap_or_default();
            Error::Failed(format!("{}{at}: {}", path.display(), error.message()))
        })
    }

    pub(crate) fn save(&self, home: &Home) -> Result<(), Error> {
        let home = home.create()?;
        let text = toml::to_string(self)
            .map_err(|error| Error::Failed(format!("cannot write the remotes: {error}")))?;
        Ok(write_atomic(&file(&home), &text)?)
    }
}

impl Known {
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Error> {
        let address = Address::parse(&self.address).map_err(Error::Usage)?;
        let remote = match &self.fingerprint {
            Some(text) => Remote::pinned(address, &self.token, fingerprint(text)?),
            None => Remote::plain(address, &self.token)?,
        };
        Ok(remote.into())
    }
}

pub(crate) fn fingerprint(text: &str) -> Result<Fingerprint, Error> {
    Fingerprint::parse(text).ok_or_else(|| {
        Error::Usage(format!(
            "{text:?} is not a fingerprint: expected SHA256: and 64 hexadecimal digits"
        ))
    })
}

/// The remote daemon of `--connect NAME`.
pub(crate) fn endpoint(home: &Home, name: &str) -> Result<Endpoint, Error> {
    let remotes = Remotes::load(home)?;
    let known = remotes.remote.get(name).ok_or_else(|| {
        let names: Vec<&str> = remotes.remote.keys().map(String::as_str).collect();
        Error::Usage(format!(
            "--connect {name}: unknown remote; there are: {}. Add one with `crabtalk remote add NAME \
             tcp://HOST:PORT`",
            match names.as_slice() {
                [] => "none".to_owned(),
                names => names.join(", "),
            }
        ))
    })?;
    known.endpoint()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(&folder.path().join("h"), None).unwrap();
        (folder, home)
    }

    fn known(address: &str, fingerprint: Option<String>) -> Known {
        Known {
            address: address.into(),
            token: "ctk_1".into(),
            fingerprint,
        }
    }

    #[test]
    fn remote_is_found_by_name_in_a_private_file() {
        let (_folder, home) = home();
        let pin = format!("SHA256:{}", "ab".repeat(32));
        let mut remotes = Remotes::default();
        let far = known("tcp://10.0.0.1:6688", Some(pin.clone()));
        remotes.remote.insert("far".into(), far);
        remotes.save(&home).unwrap();
        assert!(!endpoint(&home, "far").unwrap().is_local());
        let error = endpoint(&home, "near").unwrap_err().to_string();
        assert!(error.contains("unknown remote; there are: far."), "{error}");
        let mode = file(&home).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn address_without_a_certificate_is_of_this_machine() {
        known("tcp://127.0.0.1:1", None).endpoint().unwrap();
        let error = known("tcp://10.0.0.1", None).endpoint().unwrap_err();
        assert!(error.to_string().contains("pinned certificate"), "{error}");
    }

    #[test]
    fn broken_file_is_reported_without_tokens() {
        let (_folder, home) = home();
        home.create().unwrap();
        let text = "[remote.a]\naddress = \"x\"\ntoken = ctk_secret\n";
        std::fs::write(file(&home), text).unwrap();
        let error = Remotes::load(&home).err().unwrap().to_string();
        assert!(error.contains("remotes.toml:"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
