//! Read access to a runtime.

use super::Runtime;
use crate::Error;
use crate::catalog::Catalog;
use crate::command::Command;
use crate::events::{HubEvent, HubSubscription};
use crate::registry::LiveInfo;
use crate::router;
use crabtalk_domain::storage::{RunRecord, Storage};
use crabtalk_domain::{AgentConfig, AgentEvent, ComponentNews, ConversationKey, RunOutcome};
use crabtalk_gate::{ToolRights, rights};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Runtime {
    /// The current snapshot of the configuration.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog.load_full()
    }

    /// Events of all runs from now on (WIRE-8).
    pub fn watch(&self) -> HubSubscription {
        self.0.hub.subscribe()
    }

    /// Events of all runs behind this one of this life; where some of them are
    /// not kept any more, the subscription begins by saying how many.
    pub fn watch_after(&self, seq: u64) -> HubSubscription {
        self.0.hub.subscribe_after(seq)
    }

    /// Names the life of this runtime, within which events are numbered.
    pub fn life(&self) -> &str {
        self.0.hub.life()
    }

    /// The live state of a conversation, if it is in memory.
    pub fn live(&self, key: &ConversationKey) -> Option<LiveInfo> {
        self.0
            .registry
            .get(key)
            .filter(|s| s.live().is_open)
            .map(|shared| shared.info())
    }

    /// Everything that is in memory.
    pub fn live_all(&self) -> Vec<LiveInfo> {
        self.0
            .registry
            .all()
            .iter()
            .filter(|s| s.live().is_open)
            .map(|s| s.info())
            .collect()
    }

    /// Conversations in memory and runs in flight.
    pub fn load(&self) -> (usize, u64) {
        (
            self.0.registry.len(),
            self.0.running.load(Ordering::Relaxed),
        )
    }

    /// How the last run of a conversation ended, from its log.
    pub async fn last_end(&self, key: &ConversationKey) -> Result<RunRecord, Error> {
        self.ask_task(key, |reply| Command::LastEnd { reply }).await
    }

    /// How the run of a request ended (CONV-9), by its log; waits for the run
    /// in flight. `None` for an unknown or forgotten id.
    ///
    /// # Errors
    ///
    /// A log that cannot be read.
    pub async fn outcome(
        &self,
        key: &ConversationKey,
        request_id: &str,
    ) -> Result<Option<RunOutcome>, Error> {
        let request_id = request_id.into();
        self.ask_task(key, |reply| Command::Outcome { request_id, reply })
            .await
    }

    /// An agent's tools in scope with the gate's verdicts on each.
    pub fn rights(&self, agent: &str) -> Result<(Arc<AgentConfig>, Vec<ToolRights>), Error> {
        let catalog = self.0.catalog.load_full();
        let agent = catalog.agent(agent)?;
        let tools = router::tools(&self.0, agent, &catalog);
        let tools = tools.all.iter().map(|spec| rights::rights(agent, spec));
        Ok((Arc::clone(agent), tools.collect()))
    }

    /// Publishes the state of a component to watchers.
    pub fn tell_of_component(&self, news: ComponentNews) {
        self.0.hub.publish(HubEvent {
            seq: 0,
            key: None,
            run: 0,
            speaker: Arc::default(),
            request_id: Arc::default(),
            root: None,
            tokens: 0,
            event: AgentEvent::Component(Arc::new(news)),
            at: self.0.now(),
        });
    }

    /// Scope violations since the start (GATE-1).
    pub fn violations(&self) -> u64 {
        self.0.violations.load(Ordering::Relaxed)
    }

    /// The store, for reading what is not in memory.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.0.storage
    }
}
