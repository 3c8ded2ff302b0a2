//! Read access to the runtime's state.

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

    /// Subscribes to events of all runs from now on (WIRE-8).
    pub fn watch(&self) -> HubSubscription {
        self.0.hub.subscribe()
    }

    /// Subscribes to events of all runs after this number of this life. If some of them are
    /// no longer stored, the subscription begins with their number.
    pub fn watch_after(&self, seq: u64) -> HubSubscription {
        self.0.hub.subscribe_after(seq)
    }

    /// Identifies the life of this runtime, within which events are numbered.
    pub fn life(&self) -> &str {
        self.0.hub.life()
    }

    /// The state of a conversation, if it is in memory.
    pub fn live(&self, key: &ConversationKey) -> Option<LiveInfo> {
        self.0
            .registry
            .get(key)
            .filter(|s| s.live().is_open)
            .map(|shared| shared.info())
    }

    /// The state of every conversation in memory.
    pub fn live_all(&self) -> Vec<LiveInfo> {
        self.0
            .registry
            .all()
            .iter()
            .filter(|s| s.live().is_open)
            .map(|s| s.info())
            .collect()
    }

    /// Number of conversations in memory and number of runs in flight.
    pub fn load(&self) -> (usize, u64) {
        (
            self.0.registry.len(),
            self.0.running.load(Ordering::Relaxed),
        )
    }

    /// The end of a conversation's last run, from its log.
    pub async fn last_end(&self, key: &ConversationKey) -> Result<RunRecord, Error> {
        self.ask_task(key, |reply| Command::LastEnd { reply }).await
    }

    /// The outcome of a request's run (CONV-9), from the log; waits for the run in flight.
    /// `None` for an unknown or forgotten id.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    pub async fn outcome(
        &self,
        key: &ConversationKey,
        request_id: &str,
    ) -> Result<Option<RunOutcome>, Error> {
        let request_id = request_id.into();
        self.ask_task(key, |reply| Command::Outcome { request_id, reply })
            .await
    }

    /// An agent's tools in scope with their verdicts.
    pub fn rights(&self, agent: &str) -> Result<(Arc<AgentConfig>, Vec<ToolRights>), Error> {
        let catalog = self.0.catalog.load_full();
        let agent = catalog.agent(agent)?;
        let tools = router::tools(&self.0, agent, &catalog);
        let tools = tools.all.iter().map(|spec| rights::rights(agent, spec));
        Ok((Arc::clone(agent), tools.collect()))
    }

    /// Publishes a component's change of state to watchers.
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

    /// Number of scope violations since the start (GATE-1).
    pub fn violations(&self) -> u64 {
        self.0.violations.load(Ordering::Relaxed)
    }

    /// The store, for state that is not in memory.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.0.storage
    }
}
