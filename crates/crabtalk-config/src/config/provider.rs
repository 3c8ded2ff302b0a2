//! `[provider.NAME]`.

use super::Named;
use super::expand::MissingVariable;
use crate::file::read_limited;
use crate::values::{positive, within};
use crate::{Error, Secret, Written};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest key file; keys have a few hundred bytes.
const MAX_KEY_BYTES: u64 = 16 * 1024;

/// The kinds of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenAI and compatible servers.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Google.
    Google,
    /// Amazon Bedrock.
    Bedrock,
    /// Azure.
    Azure,
    /// Ollama.
    Ollama,
    /// The offline model for demonstration and tests.
    Offline,
}

impl ProviderKind {
    /// Its name in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Google => "google",
            Self::Bedrock => "bedrock",
            Self::Azure => "azure",
            Self::Ollama => "ollama",
            Self::Offline => "offline",
        }
    }
}

/// A model provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// Its protocol.
    pub kind: ProviderKind,
    /// Whether the provider is used.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The address as written; the model crate normalises it (MODEL-2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<Written>,
    /// The key in the file or the environment; see [`Self::key`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
    /// The file with the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_file: Option<PathBuf>,
    /// Its models.
    #[serde(default)]
    pub models: Vec<Model>,
    /// Headers of every request; their values may be credentials.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// Retries of a transient error (MODEL-3).
    #[serde(
        default = "max_retries",
        deserialize_with = "within::<0, MAX_MAX_RETRIES, _, _>"
    )]
    pub max_retries: u32,
    /// Seconds from connecting to the first byte (MODEL-3).
    #[serde(
        default = "timeout_secs",
        deserialize_with = "within::<1, MAX_TIMEOUT_SECS, _, _>"
    )]
    pub timeout_secs: u64,
    /// An unset variable that the provider needs.
    #[serde(skip)]
    pub missing: Option<MissingVariable>,
}

/// Maximum retries; more would only load a server that is down.
const MAX_MAX_RETRIES: u64 = 20;

/// One hour: a working server sends its first byte sooner.
const MAX_TIMEOUT_SECS: u64 = 3_600;

fn yes() -> bool {
    true
}

/// The default of `max_retries` (MODEL-3).
fn max_retries() -> u32 {
    2
}

/// The default of `timeout_secs` (MODEL-3).
fn timeout_secs() -> u64 {
    30
}

impl Provider {
    /// The key: from the file or environment, or from the key file, which is read at each call
    /// so that a change takes effect. `None` if no key is configured.
    ///
    /// # Errors
    /// A variable is not set, a key file cannot be read or is empty, or the key cannot be
    /// sent. The error affects only this provider.
    pub fn key(&self) -> Result<Option<Secret>, Error> {
        if let Some(missing) = &self.missing {
            return Err(missing.to_error());
        }
        let Some(path) = &self.api_key_file else {
            let key = self.api_key.clone();
            return match key {
                Some(key) if !is_sendable(key.expose()) => Err(Error::BadKey {
                    at: format!("provider.{}.api_key", self.name),
                }),
                key => Ok(key),
            };
        };
        read_key(path, format!("provider.{}.api_key_file", self.name)).map(Some)
    }
}

/// Reads a file with one secret; `at` is the configuration key that names the file.
pub(super) fn read_key(path: &Path, at: String) -> Result<Secret, Error> {
    let text = match read_limited(path, MAX_KEY_BYTES) {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => {
            return Err(Error::KeyFile {
                at,
                source: Box::new(error),
            });
        }
    };
    match text.trim() {
        "" => Err(Error::NoKey {
            at,
            path: path.to_owned(),
        }),
        key if !is_sendable(key) => Err(Error::BadKey { at }),
        key => Ok(Secret::new(key)),
    }
}

/// Whether a header can carry a key.
fn is_sendable(key: &str) -> bool {
    !key.chars().any(|c| c.is_ascii_control())
}

/// A model of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Its name in CrabTalk.
    pub name: String,
    /// Its name at the provider.
    #[serde(default)]
    pub id: String,
    /// Tokens of its context window, if known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "positive"
    )]
    pub context: Option<u64>,
    /// Its price, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether it accepts images, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
}

/// Money per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Of the request.
    pub input: f64,
    /// Of the answer.
    pub output: f64,
}

impl Named for Provider {
    fn name(&self) -> &str {
        &self.name
    }

    fn set_name(&mut self, name: String) {
        self.name = name;
    }
}
