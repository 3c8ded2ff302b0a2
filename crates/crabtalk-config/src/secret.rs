//! Values that must not be seen, and values that are shown as written.

use crabtalk_domain::masked_url;
use serde::{Serialize, Serializer};
use std::fmt;

/// A mask that comes back in an edit means "keep what is there" (OPS-4).
pub use crabtalk_domain::MASK;

/// A key, token or password. `Debug` and `Serialize` give [`MASK`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// A text with `${ENV}` in it. `Debug` and `Serialize` show what was written,
/// never what the environment held, and no secret of a URL.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Written {
    written: String,
    value: String,
}

impl Written {
    pub(crate) fn new(written: String, value: String) -> Self {
        Self { written, value }
    }

    /// The text with the environment's values in it.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The text as the file has it, apart from secrets in URLs.
    pub fn shown(&self) -> String {
        masked_url(&self.written)
    }
}

impl From<&str> for Written {
    fn from(text: &str) -> Self {
        Self {
            written: text.to_owned(),
            value: text.to_owned(),
        }
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.shown(), f)
    }
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let secret = Secret::new("sk-1");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
        assert_eq!(secret.expose(), "sk-1");
    }

    #[test]
    fn a_written_text_shows_neither_environment_nor_password() {
        let text = Written::new("--key=${K}".into(), "--key=hush".into());
        assert_eq!(format!("{text:?}"), "\"--key=${K}\"");
        let url = Written::from("https://me:pw@host/a@b");
        assert_eq!(
            serde_json::to_string(&url).unwrap(),
            "\"https://***@host/a@b\""
        );
        assert_eq!(Written::from("http://host/a@b").shown(), "http://host/a@b");
    }
}
