//! The models of a node: those configured, else what is found at the first
//! run (MODEL-6).
//!
//! Invariant: nothing is probed before somebody runs an agent, and never when
//! a provider is configured.

use crabtalk_domain::model::{Chunk, Error, Model, Request};
use crabtalk_domain::{BoxStream, model};
use crabtalk_model::detect::{self, Options};
use crabtalk_model::{ProviderConfig, Registry};
use futures_util::{FutureExt, StreamExt};
use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;

type Search = Arc<OnceCell<()>>;

/// What the runtime calls.
pub(crate) struct Models {
    registry: Arc<Registry>,
    options: Options,
    /// There while no provider is configured.
    search: Mutex<Option<Search>>,
}

impl Models {
    pub(crate) fn new(
        providers: Vec<ProviderConfig>,
        active: Option<String>,
        options: Options,
    ) -> Result<Self, String> {
        let search = providers.is_empty().then(Search::default);
        let registry = Registry::new(providers, active).map_err(|e| e.to_string())?;
        Ok(Self {
            registry: Arc::new(registry),
            options,
            search: Mutex::new(search),
        })
    }

    /// Takes another configuration; answers in flight are not disturbed.
    pub(crate) fn replace(
        &self,
        providers: Vec<ProviderConfig>,
        active: Option<String>,
    ) -> Result<(), String> {
        let search = providers.is_empty().then(Search::default);
        self.registry
            .replace(providers, active)
            .map_err(|e| e.to_string())?;
        *self.search.lock().expect("nothing panics under it") = search;
        Ok(())
    }
}

async fn find(registry: Arc<Registry>, options: Options) -> Result<(), Error> {
    let failed = |message| Error::new(model::ErrorKind::NotConfigured, message);
    let found = detect::find(&options)
        .await
        .map_err(|e| failed(e.to_string()))?;
    tracing::info!(provider = %found.provider.name, why = %found.why, "no provider is configured");
    registry
        .replace(vec![found.provider], None)
        .map_err(|e| failed(e.to_string()))
}

impl Model for Models {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Chunk, Error>> {
        let search = self.search.lock().expect("nothing panics under it").clone();
        let Some(search) = search.filter(|search| !search.initialized()) else {
            return self.registry.stream(request);
        };
        let (registry, options) = (Arc::clone(&self.registry), self.options.clone());
        let found = async move {
            let find = || find(Arc::clone(&registry), options);
            match search.get_or_try_init(find).await {
                Ok(()) => registry.stream(request),
                Err(error) => futures_util::stream::once(async { Err(error) }).boxed(),
            }
        };
        found.into_stream().flatten().boxed()
    }

    fn context_limit(&self, model: &str) -> Option<u64> {
        self.registry.context_limit(model)
    }

    fn active_model(&self) -> String {
        self.registry.active_model()
    }
}
