//! Secrets, and texts with variables.

use crabtalk_domain::masked_url;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// In an edit, the mask keeps the existing secret (OPS-4).
pub use crabtalk_domain::MASK;

/// A key, token or password. `Debug` and `Serialize` show [`MASK`].
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, to be sent.
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

/// A text with `${ENV}`. `Debug` and `Serialize` show the text as written, without values of
/// the environment and without the secrets of a URL.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "String")]
pub struct Written {
    written: String,
    value: String,
}

impl Written {
    /// Sets the text with the environment's values.
    pub(crate) fn set_value(&mut self, value: String) {
        self.value = value;
    }

    /// The text with the environment's values.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The text as written, with secrets of URLs masked.
    pub fn shown(&self) -> String {
        masked_url(&self.written)
    }
}

impl From<String> for Written {
    fn from(text: String) -> Self {
        Self {
            written: text.clone(),
            value: text,
        }
    }
}

impl From<&str> for Written {
    fn from(text: &str) -> Self {
        text.to_owned().into()
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
    fn secret_shows_a_mask() {
        let secret = Secret::new("sk-1");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
        assert_eq!(secret.expose(), "sk-1");
    }

    #[test]
    fn written_text_hides_environment_and_password() {
        let mut text = Written::from("--key=${K}");
        text.set_value("--key=hush".into());
        assert_eq!(format!("{text:?}"), "\"--key=${K}\"");
        let url = Written::from("https://me:pw@host/a@b");
        assert_eq!(
            serde_json::to_string(&url).unwrap(),
            "\"https://***@host/a@b\""
        );
        assert_eq!(Written::from("http://host/a@b").shown(), "http://host/a@b");
    }
}
