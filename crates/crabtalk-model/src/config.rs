//! The configuration of providers.
//! Invariant: a [`Secret`] leaves this crate only in a request's header.

use crate::price::Price;
use std::fmt;
use std::time::Duration;

/// Default number of retries (MODEL-3).
const DEFAULT_RETRIES: u32 = 2;
/// Default time from connect to first byte (MODEL-3).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Default limit of silence within a stream (MODEL-3).
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// A key, which `Debug` does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key without the white space around it, such as a file's line end.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into().trim().to_owned())
    }

    /// Returns the key, for a request header.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// OpenAI's Chat Completions API, also on compatible servers.
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Google,
    /// Amazon Bedrock's `ConverseStream` API.
    Bedrock,
    /// OpenAI's format at an Azure deployment, with Azure's key header.
    Azure,
    /// OpenAI's format at a local Ollama server, without a key.
    Ollama,
    /// The embedded offline model (MODEL-6).
    Offline,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::OpenAi,
        Self::Anthropic,
        Self::Google,
        Self::Bedrock,
        Self::Azure,
        Self::Ollama,
        Self::Offline,
    ];

    /// The name in `config.toml`.
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

    /// Parses a name from `config.toml`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A model of a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// The name used by agents and people; unique on the node.
    pub name: String,
    /// The provider's name for it.
    pub id: String,
    /// The context size in tokens; `None` uses the built-in table.
    pub context: Option<u64>,
    /// The price; `None` uses the built-in table.
    pub price: Option<Price>,
    /// Whether the model accepts images; `None` uses the built-in table.
    pub images: Option<bool>,
}

impl ModelConfig {
    /// A model with the same name here and at the provider.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            id: name.clone(),
            name,
            context: None,
            price: None,
            images: None,
        }
    }
}

/// A configured provider.
#[derive(Clone, PartialEq)]
pub struct ProviderConfig {
    /// The name of the configuration section; unique on the node.
    pub name: String,
    /// The protocol.
    pub kind: Kind,
    /// The address; `None` uses the kind's default address.
    pub base_url: Option<String>,
    /// The key; for Bedrock a Bedrock API key, or an access key written as
    /// `id:secret` or `id:secret:session token`.
    pub api_key: Option<Secret>,
    /// The reason why the configured key is missing, such as "the
    /// environment variable X is not set". Calls fail with this reason.
    pub key_problem: Option<String>,
    /// The models of the provider.
    pub models: Vec<ModelConfig>,
    /// Headers added to every request; their values are as secret as keys.
    pub headers: Vec<(String, String)>,
    /// Number of retries.
    pub max_retries: u32,
    /// Time from connect to the first byte of the answer.
    pub timeout: Duration,
    /// Longest time between two bytes of an answer.
    pub idle_timeout: Duration,
}

impl ProviderConfig {
    /// A provider at the kind's default address, with the default limits.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            base_url: None,
            api_key: None,
            key_problem: None,
            models: Vec::new(),
            headers: Vec::new(),
            max_retries: DEFAULT_RETRIES,
            timeout: DEFAULT_TIMEOUT,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
        }
    }

    /// The embedded offline provider, with one model called `offline`.
    pub fn offline() -> Self {
        let mut provider = Self::new("offline", Kind::Offline);
        provider.models.push(ModelConfig::new("offline"));
        provider
    }

    /// Why a call would fail for lack of a key; `None` if the key is not missing.
    pub(crate) fn missing_key(&self) -> Option<String> {
        if let Some(problem) = &self.key_problem {
            return Some(problem.clone());
        }
        let has_key = self
            .api_key
            .as_ref()
            .is_some_and(|key| !key.expose().is_empty());
        // A private server may need no key; public ones always do.
        let needs_key = match self.kind {
            Kind::OpenAi | Kind::Anthropic | Kind::Google => {
                self.base_url.is_none() && self.headers.is_empty()
            }
            // Amazon's endpoints have many names, but all need a key.
            Kind::Azure | Kind::Bedrock => self.headers.is_empty(),
            Kind::Ollama | Kind::Offline => false,
        };
        (needs_key && !has_key).then(|| "no api_key is configured".to_owned())
    }
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("ProviderConfig")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("base_url", &self.base_url.as_deref().map(without_secrets))
            .field("api_key", &self.api_key)
            .field("models", &self.models)
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

/// An address for logs and errors: without user, password, key or query.
pub(crate) fn without_secrets(url: &str) -> String {
    crabtalk_domain::masked_url(url.split(['?', '#']).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_keys() {
        let mut provider = ProviderConfig::new("p", Kind::OpenAi);
        provider.api_key = Some(Secret::new("sk-planted\n"));
        provider
            .headers
            .push(("x-key".into(), "planted-header".into()));
        provider.base_url = Some("https://me:planted@host/sk-planted/v1?key=planted".into());
        let shown = format!(
            "{provider:?} {:?} {}",
            provider.api_key,
            Secret::new("planted")
        );
        assert!(!shown.contains("planted"), "{shown}");
        assert_eq!(provider.api_key.expect("set").expose(), "sk-planted");
    }

    #[test]
    fn missing_key_depends_on_the_kind() {
        for (kind, base_url, missing) in [
            (Kind::OpenAi, None, true),
            (Kind::OpenAi, Some("http://127.0.0.1:8080"), false),
            (Kind::Anthropic, None, true),
            (Kind::Google, None, true),
            (Kind::Google, Some("http://127.0.0.1:8080"), false),
            (Kind::Bedrock, None, true),
            (Kind::Azure, Some("https://x.openai.azure.com"), true),
            (Kind::Ollama, None, false),
            (Kind::Offline, None, false),
        ] {
            let mut provider = ProviderConfig::new("p", kind);
            provider.base_url = base_url.map(str::to_owned);
            assert_eq!(
                provider.missing_key().is_some(),
                missing,
                "{kind} {base_url:?}"
            );
            provider.api_key = Some(Secret::new("k"));
            assert_eq!(provider.missing_key(), None, "{kind}");
            provider.key_problem = Some("X is not set".into());
            assert_eq!(
                provider.missing_key().as_deref(),
                Some("X is not set"),
                "{kind}"
            );
        }
    }

    #[test]
    fn kinds_have_names() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(Kind::parse("gemini"), None);
    }
}
