//! Finds a model for a node that configures none (MODEL-6).
//! Invariants: the environment is passed as values; probes connect only to loopback,
//! take [`PROBE_TIME`] in total, and check the shape of answers, since
//! other programs may listen on those ports.

use crate::config::{Kind, ModelConfig, ProviderConfig, Secret};
use crate::http::{Client, Proxies, RequestBody, Tls};
use futures_util::future::join3;
use http::header::{HOST, HeaderValue};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Timeout of all probes together.
pub const PROBE_TIME: Duration = Duration::from_millis(200);

/// Largest list of models that is read.
const MAX_LIST_BYTES: usize = 1 << 20;
/// Models taken from a server.
const MAX_MODELS: usize = 100;

/// Known API keys: variable, variable of the
/// address, kind, and the models offered, the active one first.
const KEYS: [(&str, &str, Kind, &[&str]); 4] = [
    (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        Kind::OpenAi,
        &["gpt-5", "gpt-5-mini"],
    ),
    (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        Kind::Anthropic,
        &["claude-sonnet-4-6", "claude-opus-4-6", "claude-haiku-4-5"],
    ),
    // Google's own programs read both names.
    (
        "GEMINI_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        Kind::Google,
        GEMINIS,
    ),
    (
        "GOOGLE_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        Kind::Google,
        GEMINIS,
    ),
];

/// Google's aliases of the current models.
const GEMINIS: &[&str] = &["gemini-flash-latest", "gemini-pro-latest"];

/// A key whose models depend on account and region. Access keys of AWS accounts serve
/// many purposes and are ignored.
const BEDROCK_KEY: &str = "AWS_BEARER_TOKEN_BEDROCK";

/// Ports of local model servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// Ollama.
    pub ollama: u16,
    /// llama.cpp.
    pub llama_cpp: u16,
    /// LM Studio.
    pub lm_studio: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self {
            ollama: 11434,
            llama_cpp: 8080,
            lm_studio: 1234,
        }
    }
}

/// The options of the detection.
#[derive(Clone, Default)]
pub struct Options {
    /// The environment, or the part of it that may contain keys.
    pub env: BTreeMap<String, String>,
    /// Whether to probe for local servers (`runs.detect`).
    pub probe: bool,
    /// The ports of local servers.
    pub ports: Ports,
}

/// A provider that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Detected {
    /// The provider; its first model is to be the active one.
    pub provider: ProviderConfig,
    /// The choice and its reason, in words.
    pub why: String,
    /// The environment variable with the key; `None` for a local
    /// server.
    pub variable: Option<&'static str>,
}

/// A key that does not determine a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{variable} is set, but the models of the kind {kind:?} that its account may use are unknown; \
     name one in a [provider.NAME] of config.toml, or unset the variable"
)]
pub struct Error {
    /// The environment variable of the key.
    pub variable: String,
    /// The kind of the key.
    pub kind: String,
}

/// Finds a key, else a local server, else returns the offline
/// model.
///
/// # Errors
/// [`Error`] names the variable of a key that is not sufficient.
pub async fn find(options: &Options) -> Result<Detected, Error> {
    if let Some(found) = keyed(options).next() {
        return Ok(found);
    }
    if options.key(BEDROCK_KEY).is_some() {
        return Err(Error {
            variable: BEDROCK_KEY.into(),
            kind: Kind::Bedrock.as_str().into(),
        });
    }
    if !options.probe {
        return Ok(offline(format!(
            "{NO_KEY} and the search for local model servers is off"
        )));
    }
    let ports = options.ports;
    let Servers { found, empty } = local(ports).await;
    let Some(mut found) = found.into_iter().next() else {
        return Ok(offline(format!(
            "{NO_KEY} and no model server on loopback (Ollama {}, llama.cpp {}, LM Studio {}){empty}",
            ports.ollama, ports.llama_cpp, ports.lm_studio
        )));
    };
    found.why.push_str(&empty);
    Ok(found)
}

/// All available providers, in the order in which [`find`] prefers them.
pub async fn all(options: &Options) -> Vec<Detected> {
    let mut all: Vec<Detected> = keyed(options).collect();
    if options.probe {
        all.extend(local(options.ports).await.found);
    }
    let mut names = BTreeSet::new();
    all.retain(|one| names.insert(one.provider.name.clone()));
    all
}

impl Options {
    /// The value of a variable, unless it is empty.
    fn key(&self, name: &str) -> Option<&String> {
        self.env.get(name).filter(|value| !value.trim().is_empty())
    }
}

/// The reason for using the offline model.
const NO_KEY: &str = "using the offline demonstration, because there is no key in the environment \
    (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY)";

fn offline(why: String) -> Detected {
    Detected {
        provider: ProviderConfig::offline(),
        why,
        variable: None,
    }
}

/// The providers of keys in the environment.
fn keyed(options: &Options) -> impl Iterator<Item = Detected> {
    KEYS.into_iter()
        .filter_map(|(variable, address, kind, models)| {
            let mut provider = ProviderConfig::new(kind.as_str(), kind);
            provider.api_key = Some(Secret::new(options.key(variable)?));
            // A key for another address must not be sent to the default one.
            provider.base_url = options.key(address).cloned();
            provider.models = models
                .iter()
                .map(|model| ModelConfig::new(*model))
                .collect();
            let why = format!("using {} ({}) because {variable} is set", kind, models[0]);
            Some(Detected {
                provider,
                why,
                variable: Some(variable),
            })
        })
}

/// Local servers that answered.
struct Servers {
    /// Servers with a model.
    found: Vec<Detected>,
    /// A note about servers without a model.
    empty: String,
}

async fn local(ports: Ports) -> Servers {
    let (ollama, llama_cpp, lm_studio) = join3(
        probe(ports.ollama, "/api/tags", "models", "name"),
        probe(ports.llama_cpp, "/v1/models", "data", "id"),
        probe(ports.lm_studio, "/v1/models", "data", "id"),
    )
    .await;
    let servers = [
        ("ollama", "Ollama", Kind::Ollama, ports.ollama, ollama),
        (
            "llama_cpp",
            "llama.cpp",
            Kind::OpenAi,
            ports.llama_cpp,
            llama_cpp,
        ),
        (
            "lm_studio",
            "LM Studio",
            Kind::OpenAi,
            ports.lm_studio,
            lm_studio,
        ),
    ];
    let (mut found, mut empty) = (Vec::new(), String::new());
    for (name, title, kind, port, listed) in servers {
        let Some(models) = listed else { continue };
        let Some(first) = models.first() else {
            empty.push_str(&format!("; {title} runs on port {port}, but has no model"));
            continue;
        };
        let why = format!(
            "using {:?} of the {title} server on port {port}",
            first.name
        );
        let mut provider = ProviderConfig::new(name, kind);
        provider.base_url = Some(format!("http://127.0.0.1:{port}/v1"));
        provider.models = models;
        found.push(Detected {
            provider,
            why,
            variable: None,
        });
    }
    Servers { found, empty }
}

/// The chat models that a server lists, under short names; `None` if the
/// answer has another form.
async fn probe(port: u16, path: &str, list: &str, id: &str) -> Option<Vec<ModelConfig>> {
    let asked = async {
        let host = format!("127.0.0.1:{port}");
        let mut request = http::Request::new(RequestBody::default());
        *request.uri_mut() = format!("http://{host}{path}").parse().ok()?;
        let host = HeaderValue::from_str(&host).ok()?;
        request.headers_mut().insert(HOST, host);
        let client = Client::new(Proxies::default(), Tls::default());
        let response = client.call(PROBE_TIME, request).await.ok()?;
        if !response.status.is_success() {
            return None;
        }
        let body = response.body.collect(MAX_LIST_BYTES).await.ok()??;
        let json: Value = serde_json::from_slice(&body).ok()?;
        let mut models: Vec<ModelConfig> = Vec::new();
        for entry in json.get(list)?.as_array()?.iter().take(MAX_MODELS) {
            let id = entry.get(id)?.as_str()?;
            // llama.cpp lists a file path.
            let file = id.rsplit(['/', '\\']).next();
            let name = file.and_then(|file| file.strip_suffix(".gguf"));
            let name = name.unwrap_or(id);
            let chats = !id.is_empty() && !id.to_ascii_lowercase().contains("embed");
            if !chats || models.iter().any(|known| known.name == name) {
                continue;
            }
            // A field of llama.cpp.
            let context = entry.pointer("/meta/n_ctx").and_then(Value::as_u64);
            models.push(ModelConfig {
                id: id.to_owned(),
                context: context.filter(|tokens| *tokens > 0),
                images: takes_images(&json, id),
                ..ModelConfig::new(name)
            });
        }
        Some(models)
    };
    tokio::time::timeout(PROBE_TIME, asked).await.ok().flatten()
}

/// Whether llama.cpp was started with a vision projector, which a second list
/// reports.
fn takes_images(json: &Value, id: &str) -> Option<bool> {
    let mut models = json.get("models")?.as_array()?.iter();
    let model = models.find(|model| model.get("name").is_some_and(|name| name == id))?;
    let capabilities = model.get("capabilities")?.as_array()?;
    Some(capabilities.iter().any(|found| found == "multimodal"))
}
