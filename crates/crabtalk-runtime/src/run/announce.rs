//! Publishes events once their records are durable (STORE-4).

use crate::publisher::Publisher;
use crabtalk_domain::{AgentEvent, BoxFuture, storage};
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) type Synced = BoxFuture<'static, Result<(), storage::Error>>;

/// Events that wait for the disk, in order, while the run continues.
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

    /// Queues events until the sync of their records completes.
    pub(super) fn after(&mut self, synced: Synced, events: Vec<AgentEvent>) {
        self.waiting.push_back((Some(synced), events));
    }

    /// Queues events behind those that wait.
    pub(super) fn next(&mut self, events: Vec<AgentEvent>) {
        self.waiting.push_back((None, events));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Publishes all queued events. If the future is dropped, the next call continues.
    pub(super) async fn flush(&mut self) -> Result<(), storage::Error> {
        while let Some((synced, _)) = self.waiting.front_mut() {
            if let Some(synced) = synced {
                let outcome = synced.as_mut().await;
                if let Some((synced, _)) = self.waiting.front_mut() {
                    *synced = None;
                }
                if outcome.is_err() {
                    // Do not publish events whose records may be
                    // lost.
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
