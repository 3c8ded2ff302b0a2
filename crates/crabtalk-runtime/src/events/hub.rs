//! Events of all runs, for those who watch the whole daemon (WIRE-8).

use crabtalk_domain::{AgentEvent, ConversationKey};
use std::sync::Arc;
use tokio::sync::broadcast;

/// Events kept for a slow subscriber before it misses the oldest: some
/// seconds of a few fast streams, a few hundred KiB at most.
const CAPACITY: usize = 1024;

/// An event with its conversation.
#[derive(Debug, Clone)]
pub struct HubEvent {
    /// Whose.
    pub key: Arc<ConversationKey>,
    /// The run's number.
    pub run: u64,
    /// What happened.
    pub event: AgentEvent,
    /// RFC 3339 instant.
    pub at: String,
}

/// How many events a subscriber missed because it was slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed(pub u64);

/// Broadcasts to subscribers; costs nothing while there are none.
#[derive(Debug)]
pub(crate) struct Hub(broadcast::Sender<Arc<HubEvent>>);

impl Hub {
    pub(crate) fn new() -> Self {
        Self(broadcast::channel(CAPACITY).0)
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub(crate) fn publish(&self, event: HubEvent) {
        // Nobody listening is fine.
        let _ = self.0.send(Arc::new(event));
    }

    pub(crate) fn subscribe(&self) -> HubSubscription {
        HubSubscription(self.0.subscribe())
    }
}

/// Reads what is broadcast from now on.
#[derive(Debug)]
pub struct HubSubscription(broadcast::Receiver<Arc<HubEvent>>);

impl HubSubscription {
    /// The next event, or how many were missed; `None` when the runtime ends.
    pub async fn next(&mut self) -> Option<Result<Arc<HubEvent>, Missed>> {
        match self.0.recv().await {
            Ok(event) => Some(Ok(event)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Err(Missed(missed))),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
