//! `[provider.NAME]` and `[mcp.NAME]`.

use super::expand::MissingVariable;
use crate::file::read_limited;
use crate::{Error, Secret, Written};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest key file; keys have a few hundred bytes.
const MAX_KEY_BYTES: u64 = 16 * 1024;

/// The kinds of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenAI and every server that is compatible with it.
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
    /// The embedded model for demonstration and tests.
    Offline,
}

impl ProviderKind {
    /// Every kind with its name in the file.
    pub const ALL: [(&'static str, Self); 7] = [
        ("openai", Self::OpenAi),
        ("anthropic", Self::Anthropic),
        ("google", Self::Google),
        ("bedrock", Self::Bedrock),
        ("azure", Self::Azure),
        ("ollama", Self::Ollama),
        ("offline", Self::Offline),
    ];

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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Provider {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// What it speaks.
    pub kind: ProviderKind,
    /// Whether it may be used.
    pub enabled: bool,
    /// Where it is, as written; the model crate normalises it (MODEL-2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<Written>,
    /// The key in the file or its environment; see [`Self::key`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
    /// The file with the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_file: Option<PathBuf>,
    /// Its models.
    pub models: Vec<Model>,
    /// Headers of every request; their values may be credentials.
    pub headers: BTreeMap<String, Secret>,
    /// Retries of a transient error (MODEL-3).
    pub max_retries: u32,
    /// Seconds from connecting to the first byte (MODEL-3).
    pub timeout_secs: u64,
    /// A variable that is not set and without which it cannot be used.
    #[serde(skip)]
    pub missing: Option<MissingVariable>,
}

impl Provider {
    /// The key: from the file or environment, or from the key file, which is
    /// read now so that a changed key counts. `None` if none is configured.
    ///
    /// # Errors
    /// A variable that is not set, a key file that cannot be read or is empty, or
    /// a key that no request can carry. One provider's key is no other's matter,
    /// so whoever asks goes on with the rest.
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

/// Reads a file that holds one secret; `at` is the key of the configuration that names
/// the file.
fn read_key(path: &Path, at: String) -> Result<Secret, Error> {
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// Its name here.
    pub name: String,
    /// Its name at the provider.
    pub id: String,
    /// Tokens of its context window, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// What it costs, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether it takes images, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
}

/// Money for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Price {
    /// For what the model reads.
    pub input: f64,
    /// For what it writes.
    pub output: f64,
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mcp {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// How it is reached.
    #[serde(flatten)]
    pub transport: McpTransport,
    /// Whether it may be used.
    pub enabled: bool,
    /// Whether it is started again when it dies.
    pub auto_restart: bool,
    /// Seconds that a call may take without a sign of progress.
    pub timeout_secs: u64,
    /// Seconds after which a program that nobody calls is ended.
    pub idle_secs: u64,
    /// What its tools say of themselves counts for this much.
    pub trust: McpTrust,
    /// As whom a person logs in to it.
    #[serde(skip_serializing_if = "McpOauth::is_empty")]
    pub oauth: McpOauth,
    /// A variable that is not set and without which it cannot be used.
    #[serde(skip)]
    pub missing: Option<MissingVariable>,
}

/// `[mcp.NAME.oauth]`: for servers where a client is registered by hand.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct McpOauth {
    /// The client's name there; empty: it is registered on the fly.
    pub client_id: String,
    /// Its secret, if it was given one; see [`Self::secret`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// The file with the secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    /// Who logs in.
    pub grant: McpGrant,
    /// What is asked for; empty: what the server says.
    pub scopes: Vec<String>,
}

/// Who logs in to an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum McpGrant {
    /// A person, in a browser.
    #[default]
    AuthorizationCode,
    /// The client itself, by its secret, without a person.
    ClientCredentials,
}

impl McpGrant {
    /// The words of the file.
    pub const ALL: [(&'static str, Self); 2] = [
        ("authorization_code", Self::AuthorizationCode),
        ("client_credentials", Self::ClientCredentials),
    ];
}

impl McpOauth {
    /// The secret: from the file or environment, or from its own file, which is read
    /// now so that a changed one counts. `None` if there is none. `name` is the
    /// server's.
    ///
    /// # Errors
    /// A file that cannot be read or is empty.
    pub fn secret(&self, name: &str) -> Result<Option<Secret>, Error> {
        let Some(path) = &self.client_secret_file else {
            return Ok(self.client_secret.clone());
        };
        read_key(path, format!("mcp.{name}.oauth.client_secret_file")).map(Some)
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What annotations of a server's tools count for (COMP-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum McpTrust {
    /// Nothing.
    #[default]
    None,
    /// A tool that says it only reads needs no question for owners.
    Annotations,
}

impl McpTrust {
    /// The words of the file.
    pub const ALL: [(&'static str, Self); 2] =
        [("none", Self::None), ("annotations", Self::Annotations)];

    /// The word of the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Annotations => "annotations",
        }
    }
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum McpTransport {
    /// A program, over its standard streams.
    Stdio {
        /// The program.
        command: Written,
        /// Its arguments.
        args: Vec<Written>,
        /// Its environment beside the allowed one; values may be credentials.
        env: BTreeMap<String, Secret>,
    },
    /// A server, over HTTP.
    Http {
        /// Where it is.
        url: Written,
        /// Headers of every request; their values may be credentials.
        headers: BTreeMap<String, Secret>,
    },
}

/// Something that the file names by its table.
pub(super) trait Named: Serialize {
    fn name(&self) -> &str;
}

impl Named for Provider {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Mcp {
    fn name(&self) -> &str {
        &self.name
    }
}

/// Shows a list as the tables that the file has.
pub(super) fn by_name<S: Serializer, T: Named>(
    items: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(items.len()))?;
    for item in items {
        map.serialize_entry(item.name(), item)?;
    }
    map.end()
}
