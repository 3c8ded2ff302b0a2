//! A path or link target of any bytes, as text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The prefix of names that are not UTF-8.
const HEX: &str = "hex:";

/// A name that is written as text where it is text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(OsString);

impl Name {
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(OsString::from_vec(bytes))
    }

    pub(super) fn as_os_str(&self) -> &OsStr {
        &self.0
    }

    pub(super) fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl From<PathBuf> for Name {
    fn from(path: PathBuf) -> Self {
        Self(path.into_os_string())
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) if !text.starts_with(HEX) => to.serialize_str(text),
            _ => {
                let bytes = self.0.as_bytes().iter();
                let hex: String = bytes.map(|byte| format!("{byte:02x}")).collect();
                to.serialize_str(&format!("{HEX}{hex}"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let Some(hex) = text.strip_prefix(HEX) else {
            return Ok(Self(text.into()));
        };
        let byte = |at: usize| {
            let digits = hex.get(at..at + 2)?;
            u8::from_str_radix(digits, 16).ok()
        };
        let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
        let bytes = bytes.ok_or_else(|| serde::de::Error::custom("not a hexadecimal name"))?;
        Ok(Self::from_bytes(bytes))
    }
}
