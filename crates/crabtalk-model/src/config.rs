//! The configuration of providers, as values.
//! Invariant: a [`Secret`] leaves this crate only in a request's header.

use crate::price::Price;
use std::fmt;
use std::time::Duration;

/// Attempts after the first one unless the provider says otherwise (MODEL-3).
const DEFAULT_RETRIES: u32 = 2;
/// Connect to first byte unless the provider says otherwise (MODEL-3).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Silence within a stream unless the provider says otherwise (MODEL-3).
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// A key. Nothing prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a key; white space around it, as a file's last line has it, goes.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into().trim().to_owned())
    }

    /// The key itself, for the header that carries it.
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

/// Which format a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// OpenAI's chat completions, also of every compatible server.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Google,
    /// Amazon Bedrock's `ConverseStream`.
    Bedrock,
    /// OpenAI's format at a deployment's address, with Azure's key header.
    Azure,
    /// OpenAI's format at a local Ollama, without a key.
    Ollama,
    /// The embedded demonstration (MODEL-6).
    Offline,
}

impl Kind {
    /// Every kind that is built.
    pub const ALL: [Self; 7] = [
        Self::OpenAi,
        Self::Anthropic,
        Self::Google,
        Self::Bedrock,
        Self::Azure,
        Self::Ollama,
        Self::Offline,
    ];

    /// Its name in `config.toml`.
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

    /// The kind of a name in `config.toml`.
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
    /// What agents and people call it; unique on the node.
    pub name: String,
    /// Its name at the provider.
    pub id: String,
    /// Tokens that it reads; `None` asks the built-in table.
    pub context: Option<u64>,
    /// Its price; `None` uses the built-in table.
    pub price: Option<Price>,
    /// Whether it takes images; `None` asks the built-in table.
    pub images: Option<bool>,
}

impl ModelConfig {
    /// A model that the provider knows by the same name.
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
    /// The name of its section; unique on the node.
    pub name: String,
    /// Its format.
    pub kind: Kind,
    /// Where it is; `None` is the kind's own address.
    pub base_url: Option<String>,
    /// Its key; for Bedrock a Bedrock key, or an access key written as
    /// `id:secret` or `id:secret:session token`.
    pub api_key: Option<Secret>,
    /// The reason why the configured key is missing, for instance "the
    /// environment variable X is not set". Calls then fail with this reason.
    pub key_problem: Option<String>,
    /// Its models.
    pub models: Vec<ModelConfig>,
    /// Headers added to every request; their values are kept as secret as keys.
    pub headers: Vec<(String, String)>,
    /// Attempts after the first one.
    pub max_retries: u32,
    /// From connect to the first byte of the answer.
    pub timeout: Duration,
    /// Between two bytes of an answer.
    pub idle_timeout: Duration,
}

impl ProviderConfig {
    /// A provider at its kind's own address, with the default limits.
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

    /// The embedded demonstration, with one model called `offline`.
    pub fn offline() -> Self {
        let mut provider = Self::new("offline", Kind::Offline);
        provider.models.push(ModelConfig::new("offline"));
        provider
    }

    /// Why it cannot be called for want of a key; `None` when it can.
    pub(crate) fn missing_key(&self) -> Option<String> {
        if let Some(problem) = &self.key_problem {
            return Some(problem.clone());
        }
        let has_key = self
            .api_key
            .as_ref()
            .is_some_and(|key| !key.expose().is_empty());
        // A server of one's own may need none; the public ones always do.
        let needs_key = match self.kind {
            Kind::OpenAi | Kind::Anthropic | Kind::Google => {
                self.base_url.is_none() && self.headers.is_empty()
            }
            // Amazon's endpoints have many names, but none is free.
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

/// An address as logs and errors may show it: no user, password, key or query.
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
