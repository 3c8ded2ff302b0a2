//! `config/fetch.toml`: limits and allowed networks.

use ipnet::IpNet;
use serde::Deserialize;
use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest settings file.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Networks that may be reached although they are not public:
    /// `["10.1.0.0/16", "127.0.0.1"]`.
    #[serde(deserialize_with = "networks")]
    pub allow: Vec<IpNet>,
    /// Maximum bytes read of a response.
    pub max_bytes: usize,
    /// Maximum characters returned by one call of the tool.
    pub max_chars: usize,
    /// Timeout in seconds, including redirects.
    pub timeout_secs: u64,
    /// Maximum number of redirects.
    pub max_redirects: u32,
    /// A PEM file with certificates that are trusted in addition to the machine's.
    pub ca_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            max_bytes: 5 * 1024 * 1024,
            // About ten thousand tokens.
            max_chars: 40_000,
            timeout_secs: 30,
            max_redirects: 5,
            ca_file: None,
        }
    }
}

/// The reason why the settings are invalid.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {}: {why}", path.display())]
pub struct SettingsError {
    path: PathBuf,
    why: String,
}

impl Settings {
    /// Reads a file; a missing file means the defaults.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let failed = |why: String| SettingsError {
            path: path.to_owned(),
            why,
        };
        let file = match std::fs::File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(failed(e.to_string())),
        };
        let mut text = String::new();
        let read = file.take(MAX_FILE_BYTES).read_to_string(&mut text);
        read.map_err(|e| failed(e.to_string()))?;
        toml::from_str(&text).map_err(|e| failed(e.to_string()))
    }

    /// Whether an address is allowed although it is not public. A mapped
    /// address is judged by the embedded one.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allow.iter().any(|network| network.contains(&address))
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_secs)
    }
}

/// Parses networks or single addresses.
fn networks<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parse = |text: &String| {
        let network = text.parse().ok();
        let single = || text.parse::<IpAddr>().ok().map(IpNet::from);
        network.or_else(single).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "`{text}` is neither a network such as 10.0.0.0/8 nor an address"
            ))
        })
    };
    texts.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_addresses_are_read_and_nonsense_is_named() {
        let settings: Settings =
            toml::from_str("allow = [\"10.0.0.0/8\", \"::1\"]\nmax_bytes = 9").expect("read");
        assert_eq!(settings.max_bytes, 9);
        for (address, allowed) in [
            ("10.9.8.7", true),
            ("::ffff:10.9.8.7", true),
            ("::1", true),
            ("11.0.0.1", false),
            ("::2", false),
        ] {
            assert_eq!(settings.allows(address.parse().expect("one")), allowed);
        }
        for text in ["allow = [\"home\"]", "max_bites = 1"] {
            assert!(toml::from_str::<Settings>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn without_a_file_the_defaults_hold() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fetch.toml");
        assert_eq!(Settings::read(&path).expect("none"), Settings::default());
        std::fs::write(&path, "max_chars = \"many\"").expect("written");
        let error = Settings::read(&path).expect_err("no number").to_string();
        assert!(
            error.contains("fetch.toml") && error.contains("max_chars"),
            "{error}"
        );
    }
}
