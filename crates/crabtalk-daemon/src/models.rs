//! The models of a node: those configured, else what is found at the first
//! run (MODEL-6).
//!
//! Invariants: nothing is probed before somebody runs an agent, and never when
//! a provider is configured; what was found is said once.

use crabtalk_domain::model::{Chunk, Error, ErrorKind, Model, Request};
use crabtalk_domain::{BoxStream, Usage};
use crabtalk_model::detect::{self, Options};
use crabtalk_model::{Kind, ModelInfo, ProviderConfig, Proxies, Registry};
use futures_util::{FutureExt, StreamExt};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::OnceCell;

/// What the configuration says of models.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    /// Those that are switched on.
    pub(crate) providers: Vec<ProviderConfig>,
    /// The name that an empty one means; `None` for the first.
    pub(crate) active: Option<String>,
    /// Whether nothing is configured, not even something switched off.
    pub(crate) detect: bool,
}

impl Chosen {
    /// Whether a registry takes it.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.detect {
            return Ok(());
        }
        let registry = Registry::new(self.providers.clone(), self.active.clone());
        registry.map(drop).map_err(|e| e.to_string())
    }
}

/// A search for a model, made once.
struct Search {
    options: Options,
    active: Option<String>,
    found: OnceCell<ProviderConfig>,
}

#[derive(Default)]
struct State {
    /// There while no provider is configured.
    search: Option<Arc<Search>>,
    /// What somebody is to be told.
    notice: Option<String>,
    /// What somebody was told last.
    said: String,
}

/// What the runtime calls.
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

    /// Takes another configuration; answers in flight are not disturbed.
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
        // What was found stays, unless it was but a demonstration: somebody
        // may have started a server since.
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

    /// The search that is still to be made, if any.
    fn open_search(&self) -> Option<Arc<Search>> {
        let search = self.state().search.clone();
        search.filter(|search| !search.found.initialized())
    }

    /// Looks for a model if none is configured and nobody has looked yet. A
    /// failure is the run's to tell.
    pub(crate) async fn find(&self) -> Result<(), Error> {
        match self.open_search() {
            None => Ok(()),
            // Boxed, since every run asks and hardly any has to look: it would
            // make room for all that looking takes.
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
        // A reload may have configured something meanwhile.
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

    /// What was found and why, for the first who asks.
    pub(crate) fn take_notice(&self) -> Option<String> {
        self.state().notice.take()
    }

    /// Why the model that is in use was chosen; empty where it is configured.
    pub(crate) fn why(&self) -> String {
        let state = self.state();
        match state.search {
            Some(_) => state.said.clone(),
            None => String::new(),
        }
    }

    /// What could answer, whatever is configured. It is looked for anew.
    pub(crate) async fn could_be(&self) -> Vec<detect::Detected> {
        detect::all(&self.options).await
    }

    /// The provider that was found rather than configured.
    pub(crate) fn detected(&self) -> Option<ProviderConfig> {
        let search = self.state().search.clone()?;
        search.found.get().cloned()
    }

    /// The model that an empty name means; empty before any is known.
    pub(crate) fn active(&self) -> String {
        self.registry.active_model()
    }

    /// The models that can be asked now.
    pub(crate) fn list(&self) -> Vec<ModelInfo> {
        self.registry.models()
    }

    /// What an answer of a model costs, where its price is known.
    pub(crate) fn cost(&self, model: &str, usage: &Usage) -> Option<f64> {
        let price = self.registry.price(model)?;
        Some(crabtalk_model::cost(usage, &price))
    }
}

/// The models as the runtime has them.
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

    /// Servers of this machine are looked for by a run only; they are near.
    fn expect(&self, model: &str) {
        self.0.registry.expect(model);
    }
}

#[cfg(test)]
mod tests;
