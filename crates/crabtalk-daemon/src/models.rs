//! The models of a node: the configured ones, or else one that the first run detects
//! (MODEL-6).
//!
//! Invariants: detection starts with the first run, and never if a provider is
//! configured; its result is reported once.

use crabtalk_domain::model::{Chunk, Error, ErrorKind, Model, Request};
use crabtalk_domain::{BoxStream, Usage};
use crabtalk_model::detect::{self, Options};
use crabtalk_model::{Kind, ModelInfo, ProviderConfig, Proxies, Registry};
use futures_util::{FutureExt, StreamExt};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::OnceCell;

/// The models of the configuration.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    /// Enabled providers.
    pub(crate) providers: Vec<ProviderConfig>,
    /// The default model; `None` for the first one.
    pub(crate) active: Option<String>,
    /// Whether no provider is configured, not even a disabled one.
    pub(crate) detect: bool,
}

impl Chosen {
    /// Checks whether a registry accepts the models.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.detect {
            return Ok(());
        }
        let registry = Registry::new(self.providers.clone(), self.active.clone());
        registry.map(drop).map_err(|e| e.to_string())
    }
}

/// A detection, which happens once.
struct Search {
    options: Options,
    active: Option<String>,
    found: OnceCell<ProviderConfig>,
}

#[derive(Default)]
struct State {
    /// Set while no provider is configured.
    search: Option<Arc<Search>>,
    /// The notice for the next client.
    notice: Option<String>,
    /// The latest notice.
    said: String,
}

/// Models and their detection.
pub(crate) struct Models {
    registry: Registry,
    options: Options,
    state: Mutex<State>,
}

impl Models {
    pub(crate) fn new(chosen: Chosen, options: Options) -> Result<Arc<Self>, String> {
        let proxies = Proxies::from_variables(|name| options.env.get(name).cloned());
        let registry = Registry::with_proxies(Vec::new(), None, proxies);
        let models = Self {
            registry: registry.map_err(|e| e.to_string())?,
            options,
            state: Mutex::default(),
        };
        models.replace(chosen)?;
        Ok(Arc::new(models))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under it")
    }

    /// Applies another configuration. Answers in flight are unaffected.
    pub(crate) fn replace(&self, chosen: Chosen) -> Result<(), String> {
        let mut state = self.state();
        let Chosen {
            providers,
            active,
            detect,
        } = chosen;
        let failed = |e: crabtalk_model::Error| e.to_string();
        if !detect {
            self.registry.replace(providers, active).map_err(failed)?;
            state.search = None;
            return Ok(());
        }
        // Keep a detected model, but not the offline model: a server may have started since.
        let found = state.search.as_ref().and_then(|s| s.found.get().cloned());
        let found = found.filter(|provider| provider.kind != Kind::Offline);
        let (providers, known) = match &found {
            Some(provider) => (vec![provider.clone()], active.clone()),
            None => (Vec::new(), None),
        };
        self.registry.replace(providers, known).map_err(failed)?;
        state.search = Some(Arc::new(Search {
            options: self.options.clone(),
            active,
            found: OnceCell::new_with(found),
        }));
        Ok(())
    }

    /// The pending detection, if there is one.
    fn open_search(&self) -> Option<Arc<Search>> {
        let search = self.state().search.clone();
        search.filter(|search| !search.found.initialized())
    }

    /// Detects a model if none is configured and none was detected. A failure is reported
    /// by the run.
    pub(crate) async fn find(&self) -> Result<(), Error> {
        match self.open_search() {
            None => Ok(()),
            // Boxed to keep the future of every run small.
            Some(search) => Box::pin(self.look(search)).await,
        }
    }

    async fn look(&self, search: Arc<Search>) -> Result<(), Error> {
        let look = || async {
            let failed = |message| Error::new(ErrorKind::NotConfigured, message);
            let found = detect::find(&search.options)
                .await
                .map_err(|e| failed(e.to_string()))?;
            self.take(&search, &found).map_err(failed)?;
            Ok(found.provider)
        };
        search.found.get_or_try_init(look).await.map(drop)
    }

    fn take(&self, search: &Arc<Search>, found: &detect::Detected) -> Result<(), String> {
        let mut state = self.state();
        // A reload may have configured a provider.
        if !state
            .search
            .as_ref()
            .is_some_and(|now| Arc::ptr_eq(now, search))
        {
            return Ok(());
        }
        let providers = vec![found.provider.clone()];
        self.registry
            .replace(providers, search.active.clone())
            .map_err(|e| e.to_string())?;
        tracing::info!(provider = %found.provider.name, why = %found.why, "no provider is configured");
        if state.said != found.why {
            let why = &found.why;
            let more = match found.provider.kind == Kind::Offline {
                true => "; `crabtalk init` sets one up",
                false => "",
            };
            state.notice = Some(format!("no provider is configured: {why}{more}"));
            state.said.clone_from(&found.why);
        }
        Ok(())
    }

    /// Takes the notice about the detected model, for the first client.
    pub(crate) fn take_notice(&self) -> Option<String> {
        self.state().notice.take()
    }

    /// The reason for choosing the detected model; empty if one is configured.
    pub(crate) fn why(&self) -> String {
        let state = self.state();
        match state.search {
            Some(_) => state.said.clone(),
            None => String::new(),
        }
    }

    /// Detects all available providers, regardless of the configuration.
    pub(crate) async fn could_be(&self) -> Vec<detect::Detected> {
        detect::all(&self.options).await
    }

    /// The detected provider.
    pub(crate) fn detected(&self) -> Option<ProviderConfig> {
        let search = self.state().search.clone()?;
        search.found.get().cloned()
    }

    /// The default model; empty if none is known yet.
    pub(crate) fn active(&self) -> String {
        self.registry.active_model()
    }

    /// The available models.
    pub(crate) fn list(&self) -> Vec<ModelInfo> {
        self.registry.models()
    }

    /// The cost of an answer, if the model's price is known.
    pub(crate) fn cost(&self, model: &str, usage: &Usage) -> Option<f64> {
        let price = self.registry.price(model)?;
        Some(crabtalk_model::cost(usage, &price))
    }
}

/// Implements the runtime's port.
pub(crate) struct Asked(pub(crate) Arc<Models>);

impl Model for Asked {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Chunk, Error>> {
        if self.0.open_search().is_none() {
            return self.0.registry.stream(request);
        }
        let models = Arc::clone(&self.0);
        let found = async move {
            match models.find().await {
                Ok(()) => models.registry.stream(request),
                Err(error) => futures_util::stream::once(async { Err(error) }).boxed(),
            }
        };
        found.into_stream().flatten().boxed()
    }

    fn context_limit(&self, model: &str) -> Option<u64> {
        self.0.registry.context_limit(model)
    }

    fn active_model(&self) -> String {
        self.0.registry.active_model()
    }

    /// Prepares a connection. Only a run starts the detection.
    fn expect(&self, model: &str) {
        self.0.registry.expect(model);
    }
}

#[cfg(test)]
mod tests;
