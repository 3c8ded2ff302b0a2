//! Tells clients what happens, never before it is safe (STORE-4).

use crate::events::{HubEvent, RunLog};
use crate::runtime::Inner;
use crabtalk_domain::storage::Position;
use crabtalk_domain::{AgentEvent, BoxFuture, ConversationKey, storage};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Where a run's events go: hooks, watchers of the daemon, the run's readers.
pub(crate) struct Publisher {
    rt: Arc<Inner>,
    key: Arc<ConversationKey>,
    run: u64,
    speaker: Arc<str>,
    log: Arc<RunLog>,
}

impl Publisher {
    pub(crate) fn new(
        rt: Arc<Inner>,
        key: Arc<ConversationKey>,
        run: u64,
        speaker: &str,
        log: Arc<RunLog>,
    ) -> Self {
        Self {
            rt,
            key,
            run,
            speaker: speaker.into(),
            log,
        }
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
    pub(super) fn answer_stored(&self, at: Position) {
        self.log.answer_stored(at);
    }

    /// A result is in the log, to be announced later.
    pub(super) fn result_stored(&self, call_id: &str, at: Position) {
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
        let hook = || self.rt.hook.on_event(&self.key, event);
        if catch_unwind(AssertUnwindSafe(hook)).is_err() {
            tracing::error!(conversation = %self.key, "a hook panicked at an event");
        }
        self.rt.hub.publish(|| HubEvent {
            seq: 0,
            key: Some(Arc::clone(&self.key)),
            run: self.run,
            speaker: Arc::clone(&self.speaker),
            event: event.clone().without_images(),
            at: self.rt.now(),
        });
    }
}

type Synced = BoxFuture<'static, Result<(), storage::Error>>;

/// Events that wait for the disk, in order, while the run goes on.
pub(super) struct Announcer {
    publisher: Arc<Publisher>,
    waiting: VecDeque<(Option<Synced>, Vec<AgentEvent>)>,
}

impl Announcer {
    pub(super) fn new(publisher: Arc<Publisher>) -> Self {
        Self {
            publisher,
            waiting: VecDeque::new(),
        }
    }

    /// Publishes the events once the disk has what they announce.
    pub(super) fn after(&mut self, synced: Synced, events: Vec<AgentEvent>) {
        self.waiting.push_back((Some(synced), events));
    }

    /// Publishes the events behind those that wait.
    pub(super) fn next(&mut self, events: Vec<AgentEvent>) {
        self.waiting.push_back((None, events));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Publishes everything that waits. Dropped half-way, it goes on where it
    /// stopped.
    pub(super) async fn flush(&mut self) -> Result<(), storage::Error> {
        while let Some((synced, _)) = self.waiting.front_mut() {
            if let Some(synced) = synced {
                let outcome = synced.as_mut().await;
                if let Some((synced, _)) = self.waiting.front_mut() {
                    *synced = None;
                }
                if outcome.is_err() {
                    // Nobody is told of what may not be there.
                    self.waiting.clear();
                }
                outcome?;
            }
            let (_, events) = self.waiting.pop_front().unwrap_or_default();
            for event in events {
                self.publisher.publish(event);
            }
        }
        Ok(())
    }
}
