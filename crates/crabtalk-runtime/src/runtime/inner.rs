//! What all clones of a runtime share.

use crate::asks::AskDesk;
use crate::catalog::Catalog;
use crate::events::Hub;
use crate::gate::{Violation, scope};
use crate::interned::Interned;
use crate::listen::Listener;
use crate::registry::Registry;
use crate::router::{DelegateNumbers, Router, Toolset};
use crate::run::Ends;
use arc_swap::ArcSwap;
use crabtalk_domain::model::{Model, Request};
use crabtalk_domain::storage::Storage;
use crabtalk_domain::{AgentConfig, Clock, Hook, Ledger, Origin, stamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) struct Inner {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) router: Router,
    pub(crate) hook: Arc<dyn Hook>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) ends: Ends,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) catalog: ArcSwap<Catalog>,
    pub(crate) registry: Registry,
    pub(crate) hub: Hub,
    pub(crate) asks: Arc<AskDesk>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) violations: AtomicU64,
    pub(crate) running: AtomicU64,
    pub(crate) begun: AtomicU64,
    pub(crate) delegates: Arc<dyn DelegateNumbers>,
    /// Agents as hooks composed them, and their system prompts.
    pub(super) composed: Interned<AgentConfig>,
    pub(crate) prompts: Interned<str>,
    pub(super) tasks: TaskTracker,
}

impl Inner {
    /// Now, as logs and lists write it.
    pub(crate) fn now(&self) -> String {
        stamp(self.clock.now())
    }

    /// The tools in an agent's scope, in a stable order: the runtime's, the
    /// providers', and the hook's; those of servers by name if they are many.
    pub(crate) fn tools(&self, agent: &AgentConfig, catalog: &Catalog) -> Arc<Toolset> {
        let specs = Router::specs(agent, catalog, &self.router.offered());
        Arc::new(Toolset::new(specs, catalog.limits.tool_schema_bytes))
    }

    /// An agent as its runs know it: composed by the hooks, told of its scope
    /// (0082).
    pub(crate) async fn build_agent(
        &self,
        hook: &dyn Hook,
        agent: &AgentConfig,
    ) -> Arc<AgentConfig> {
        self.router.ask_for_tools(&*self.hook).await;
        let mut agent = hook.on_build_agent(agent.clone()).await;
        let block = scope::prompt_block(&agent.scope);
        if !block.is_empty() && !agent.as_guest {
            if !agent.prompt.is_empty() {
                agent.prompt.push_str("\n\n");
            }
            agent.prompt.push_str(&block);
        }
        let name = agent.name.clone();
        self.composed.share(&name, agent)
    }

    /// The model that a name means; an empty one is the one in use.
    pub(crate) fn model_named(&self, name: &str) -> String {
        match name {
            "" => self.model.active_model(),
            name => name.to_owned(),
        }
    }

    /// Calls the model. Nothing else calls it, so that every answer is bounded.
    pub(crate) fn listen(&self, request: Request) -> Listener {
        Listener::new(self.model.stream(request), &self.catalog.load().limits)
    }

    /// Counts and logs an attempt to reach what is out of scope (GATE-1).
    pub(crate) fn violation(&self, violation: &Violation, origin: &Origin) {
        self.violations.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            target: "security",
            agent = %violation.agent,
            sender = %violation.sender,
            origin = %origin,
            kind = %violation.kind,
            name = %violation.name,
            "scope violation"
        );
    }
}
