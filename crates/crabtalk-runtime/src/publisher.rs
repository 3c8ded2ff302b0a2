//! Where the events of a run go.

use crate::events::{Hub, HubEvent, RunLog};
use crate::turns::CommandTurns;
use crabtalk_domain::storage::Position;
use crabtalk_domain::{AgentEvent, Clock, ConversationKey, Hook, stamp};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Where a run's events go: hooks, watchers of the daemon, the run's readers.
pub(crate) struct Publisher {
    hook: Arc<dyn Hook>,
    hub: Arc<Hub>,
    clock: Arc<dyn Clock>,
    key: Arc<ConversationKey>,
    run: u64,
    speaker: Arc<str>,
    request_id: Arc<str>,
    log: Arc<RunLog>,
    /// Orders the commands of the run and of the runs below it.
    commands: CommandTurns,
}

impl Publisher {
    pub(crate) fn new(
        told: (Arc<dyn Hook>, Arc<Hub>, Arc<dyn Clock>),
        key: Arc<ConversationKey>,
        run: u64,
        speaker: &str,
        request_id: &str,
        log: Arc<RunLog>,
    ) -> Self {
        let (hook, hub, clock) = told;
        Self {
            hook,
            hub,
            clock,
            key,
            run,
            speaker: speaker.into(),
            request_id: request_id.into(),
            log,
            commands: CommandTurns::default(),
        }
    }

    /// Orders the commands of the run and of the runs below it.
    pub(crate) fn commands(&self) -> &CommandTurns {
        &self.commands
    }

    /// The run that it tells of, for its readers.
    pub(crate) fn log(&self) -> &Arc<RunLog> {
        &self.log
    }

    /// Whose conversation it tells of.
    pub(crate) fn key(&self) -> &ConversationKey {
        &self.key
    }

    /// What was streamed last is in the log.
    pub(crate) fn answer_stored(&self, at: Position) {
        self.log.answer_stored(at);
    }

    /// A result is in the log, to be announced later.
    pub(crate) fn result_stored(&self, call_id: &str, at: Position) {
        self.log.result_stored(call_id, at);
    }

    pub(crate) fn publish(&self, event: AgentEvent) {
        self.publish_to_watchers(&event);
        self.log.publish(event);
    }

    /// Tells the run's own readers alone.
    pub(crate) fn publish_to_readers(&self, event: AgentEvent) {
        self.log.publish(event);
    }

    /// Tells hooks and watchers alone, not the run's own readers (GATE-4).
    pub(crate) fn publish_to_watchers(&self, event: &AgentEvent) {
        // A hook that fails to look on harms nobody else.
        let hook = || self.hook.on_event(&self.key, event);
        if catch_unwind(AssertUnwindSafe(hook)).is_err() {
            tracing::error!(conversation = %self.key, "a hook panicked at an event");
        }
        self.hub.publish(|| HubEvent {
            seq: 0,
            key: Some(Arc::clone(&self.key)),
            run: self.run,
            speaker: Arc::clone(&self.speaker),
            request_id: Arc::clone(&self.request_id),
            event: event.clone().without_images(),
            at: stamp(self.clock.now()),
        });
    }
}
