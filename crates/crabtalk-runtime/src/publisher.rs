//! Sends the events of a run to hooks, watchers and readers.

use crate::events::{Hub, HubEvent, RunLog};
use crate::spending::Tally;
use crate::turns::CommandTurns;
use crabtalk_domain::{AgentEvent, Clock, ConversationKey, Hook, stamp};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The destinations of a run's events: hooks, watchers of the daemon, readers of the run.
pub(crate) struct Publisher {
    hook: Arc<dyn Hook>,
    hub: Arc<Hub>,
    clock: Arc<dyn Clock>,
    key: Arc<ConversationKey>,
    run: u64,
    speaker: Arc<str>,
    request_id: Arc<str>,
    log: Arc<RunLog>,
    /// The root run; `None` unless the run is a delegate's.
    root: Option<(Arc<ConversationKey>, u64)>,
    /// The run's model calls.
    tally: Arc<Tally>,
    /// Orders the commands of the run and its members.
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
            root: None,
            tally: Arc::default(),
            commands: CommandTurns::default(),
        }
    }

    /// Sets the root run, if there is one, and the account of the run's model calls.
    pub(crate) fn with_run(mut self, audience: Option<&Self>, tally: &Arc<Tally>) -> Self {
        self.root = audience.map(|root| (Arc::clone(&root.key), root.run));
        self.tally = Arc::clone(tally);
        self
    }

    /// Orders the commands of the run and its members.
    pub(crate) fn commands(&self) -> &CommandTurns {
        &self.commands
    }

    /// The log for the run's readers.
    pub(crate) fn log(&self) -> &Arc<RunLog> {
        &self.log
    }

    /// The conversation of the run.
    pub(crate) fn key(&self) -> &ConversationKey {
        &self.key
    }

    /// Records that the history has the streamed answer.
    pub(crate) fn answer_stored(&self) {
        self.log.answer_stored();
    }

    pub(crate) fn publish(&self, event: AgentEvent) {
        self.publish_to_watchers(&event);
        self.log.publish(event);
    }

    /// Publishes to the readers of the run only.
    pub(crate) fn publish_to_readers(&self, event: AgentEvent) {
        self.log.publish(event);
    }

    /// Publishes to hooks and watchers, not to the readers of the run (GATE-4).
    pub(crate) fn publish_to_watchers(&self, event: &AgentEvent) {
        // A panic in a hook must not end the run.
        let hook = || self.hook.on_event(&self.key, event);
        if catch_unwind(AssertUnwindSafe(hook)).is_err() {
            tracing::error!(conversation = %self.key, "a hook panicked in its event handler");
        }
        self.hub.publish(HubEvent {
            seq: 0,
            key: Some(Arc::clone(&self.key)),
            run: self.run,
            speaker: Arc::clone(&self.speaker),
            request_id: Arc::clone(&self.request_id),
            root: self.root.clone(),
            tokens: self.tally.total().usage.total_tokens(),
            event: event.clone().without_images(),
            at: stamp(self.clock.now()),
        });
    }
}
