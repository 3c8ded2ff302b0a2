//! The models of a node by name.
//! Invariants: a change swaps in a new table, so that running streams are not
//! affected; model names are unique.

use crate::config::{Kind, ModelConfig, ProviderConfig};
use crate::http::{Client, Proxies, Tls};
use crate::known;
use crate::price::Price;
use crate::provider::{ConfigError, Provider, Shared};
use crate::retry::{Candidate, Plan, reply};
use crate::sight::takes_images;
use arc_swap::ArcSwap;
use crabtalk_domain::BoxStream;
use crabtalk_domain::model::{self, Chunk, ErrorKind, Model, Request};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of names listed in an error.
const MAX_LISTED: usize = 20;

/// Maximum length of a name that is compared with others; no model name is longer.
const MAX_NAME_CHARS: usize = 200;

/// A rejected change, which had no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two providers have the same name.
    #[error("there are two providers named {0:?}; rename one")]
    DuplicateProvider(String),
    /// Two providers have a model of the same name.
    #[error(
        "the model name {model:?} is used twice, by the providers {first:?} and {second:?}; rename one"
    )]
    DuplicateModel {
        /// The name.
        model: String,
        /// The provider that already has it.
        first: String,
        /// The other provider.
        second: String,
    },
    /// No provider has the model; the message lists the models and the nearest name.
    #[error("{0}")]
    UnknownModel(String),
    /// A provider cannot be used; the source names the error in its configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A model in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// The configured name.
    pub name: String,
    /// The provider's name for it.
    pub id: String,
    /// The name of the provider.
    pub provider: String,
    /// The kind of the provider.
    pub kind: Kind,
    /// The context size in tokens, if known.
    pub context: Option<u64>,
    /// The price, if configured or known.
    pub price: Option<Price>,
    /// Whether the price is a built-in figure, which may be out of date.
    pub price_is_approximate: bool,
    /// Whether the model accepts images.
    pub images: bool,
    /// Whether the model is used if none is named.
    pub active: bool,
}

/// A snapshot of the registry.
struct Table {
    providers: Vec<Arc<Provider>>,
    models: HashMap<String, Candidate>,
    /// Names in the order of the configuration.
    names: Vec<String>,
    active: String,
}

impl Table {
    fn new(providers: Vec<Arc<Provider>>, active: Option<&str>) -> Result<Self, Error> {
        let mut models: HashMap<String, Candidate> = HashMap::new();
        let mut names = Vec::new();
        for (at, provider) in providers.iter().enumerate() {
            let name = &provider.config.name;
            if providers[..at]
                .iter()
                .any(|earlier| earlier.config.name == *name)
            {
                return Err(Error::DuplicateProvider(name.clone()));
            }
            for model in &provider.config.models {
                let (provider, model) = (provider.clone(), Arc::new(model.clone()));
                let key = model.name.clone();
                names.push(key.clone());
                if let Some(taken) = models.insert(key.clone(), Candidate { provider, model }) {
                    let first = taken.provider.config.name.clone();
                    return Err(Error::DuplicateModel {
                        model: key,
                        first,
                        second: name.clone(),
                    });
                }
            }
        }
        let first = names.first().cloned().unwrap_or_default();
        let active = active
            .filter(|name| !name.is_empty())
            .map_or(first, str::to_owned);
        let table = Self {
            providers,
            models,
            names,
            active,
        };
        if !table.active.is_empty() && !table.models.contains_key(&table.active) {
            return Err(Error::UnknownModel(table.unknown(&table.active).message));
        }
        Ok(table)
    }

    fn find(&self, name: &str) -> Result<Candidate, model::Error> {
        let name = if name.is_empty() { &self.active } else { name };
        if name.is_empty() {
            let message =
                "no model is configured; add a [provider.NAME] with models to config.toml";
            return Err(model::Error::new(ErrorKind::NotConfigured, message));
        }
        self.models
            .get(name)
            .cloned()
            .ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> model::Error {
        let shown: String = name.chars().take(100).collect();
        let nearest = nearest(name, &self.names);
        let hint = nearest.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        let message = format!(
            "the model {shown:?} is unknown; known models: {}{hint}",
            self.known()
        );
        model::Error::new(ErrorKind::UnknownModel, message)
    }

    fn known(&self) -> String {
        listed(self.names.iter().map(String::as_str))
    }

    fn plan(&self, request: Request, shared: Arc<Shared>) -> Plan {
        let mut tried = vec![request.model.as_str()];
        for name in &request.fallback {
            if !tried.contains(&name.as_str()) {
                tried.push(name);
            }
        }
        let candidates = tried.into_iter().map(|name| self.find(name)).collect();
        Plan {
            candidates,
            known: self.known(),
            request,
            shared,
        }
    }
}

/// The models of a node; a [`Model`] that forwards each request to the named model.
pub struct Registry {
    table: ArcSwap<Table>,
    /// Serializes changes; readers do not wait for them.
    changing: Mutex<()>,
    shared: Arc<Shared>,
}

impl Registry {
    /// Creates a registry of configured providers. The default active model is the first.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn new(providers: Vec<ProviderConfig>, active: Option<String>) -> Result<Self, Error> {
        Self::with_proxies(providers, active, Proxies::default())
    }

    /// Like [`Self::new`], with calls through proxies.
    pub fn with_proxies(
        providers: Vec<ProviderConfig>,
        active: Option<String>,
        proxies: Proxies,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            client: Client::new(proxies, Tls::default()),
        });
        let providers = build(providers, &[], &shared)?;
        Ok(Self {
            table: ArcSwap::from_pointee(Table::new(providers, active.as_deref())?),
            changing: Mutex::new(()),
            shared,
        })
    }

    /// Replaces the configuration. Connections stay open.
    pub fn replace(
        &self,
        providers: Vec<ProviderConfig>,
        active: Option<String>,
    ) -> Result<(), Error> {
        self.change(|table| {
            let providers = build(providers, &table.providers, &self.shared)?;
            Table::new(providers, active.as_deref())
        })
    }

    /// All models, in the order of the configuration.
    pub fn models(&self) -> Vec<ModelInfo> {
        let table = self.table.load();
        let info = |name: &String| {
            let Candidate { provider, model } = table.models.get(name)?;
            Some(ModelInfo {
                name: model.name.clone(),
                id: model.id.clone(),
                provider: provider.config.name.clone(),
                kind: provider.config.kind,
                context: context(provider, model),
                price: price(provider, model),
                price_is_approximate: model.price.is_none() && price(provider, model).is_some(),
                images: takes_images(provider.config.kind, model),
                active: model.name == table.active,
            })
        };
        table.names.iter().filter_map(info).collect()
    }

    /// The price of a model: the configured one, else approximately the list price.
    /// `None` if unknown, and for servers on this machine.
    pub fn price(&self, model: &str) -> Option<Price> {
        let found = self.table.load().find(model).ok()?;
        price(&found.provider, &found.model)
    }

    fn change(&self, next: impl FnOnce(&Table) -> Result<Table, Error>) -> Result<(), Error> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let table = next(&self.table.load())?;
        self.table.store(Arc::new(table));
        Ok(())
    }
}

impl Model for Registry {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Chunk, model::Error>> {
        reply(self.table.load().plan(request, self.shared.clone()))
    }

    fn context_limit(&self, model: &str) -> Option<u64> {
        let found = self.table.load().find(model).ok()?;
        context(&found.provider, &found.model)
    }

    fn active_model(&self) -> String {
        self.table.load().active.clone()
    }

    fn expect(&self, model: &str) {
        if let Ok(found) = self.table.load().find(model) {
            found.provider.expect(&self.shared);
        }
    }
}

/// Builds providers, and reuses those that did not change.
fn build(
    configs: Vec<ProviderConfig>,
    kept: &[Arc<Provider>],
    shared: &Shared,
) -> Result<Vec<Arc<Provider>>, Error> {
    configs
        .into_iter()
        .map(
            |config| match kept.iter().find(|provider| provider.config == config) {
                Some(provider) => Ok(provider.clone()),
                None => Ok(Arc::new(Provider::new(config, shared)?)),
            },
        )
        .collect()
}

fn context(provider: &Provider, model: &ModelConfig) -> Option<u64> {
    model.context.or_else(|| match provider.config.kind {
        Kind::OpenAi | Kind::Anthropic | Kind::Google | Kind::Bedrock | Kind::Azure => {
            known::context(&model.id)
        }
        // A local server may use a smaller context than the model supports, without reporting it.
        Kind::Ollama | Kind::Offline => None,
    })
}

fn price(provider: &Provider, model: &ModelConfig) -> Option<Price> {
    let known = known::price(&model.id);
    match model.price {
        Some(price) => Some(price.with_rebate_of(known)),
        None => known.filter(|_| !provider.is_local()),
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return "none".into();
    }
    let shown: Vec<_> = names
        .iter()
        .take(MAX_LISTED)
        .map(|name| format!("{name:?}"))
        .collect();
    let rest = names.len().saturating_sub(MAX_LISTED);
    let more = if rest > 0 {
        format!(" and {rest} more")
    } else {
        String::new()
    };
    format!("{}{more}", shown.join(", "))
}

/// The most similar name, regardless of case.
fn nearest<'a>(name: &str, names: &'a [String]) -> Option<&'a str> {
    let name: String = name.to_lowercase().chars().take(MAX_NAME_CHARS).collect();
    let near = names
        .iter()
        .map(|known| (strsim::levenshtein(&name, &known.to_lowercase()), known))
        .min()?;
    let (distance, known) = near;
    (distance <= known.chars().count().max(3) / 3).then_some(known.as_str())
}
