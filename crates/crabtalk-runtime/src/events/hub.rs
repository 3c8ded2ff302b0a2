//! Broadcasts the events of all runs to watchers (WIRE-8).
//!
//! Invariants: every event has a number within the runtime's life; all watchers share
//! one copy of an event; at most [`MAX_BYTES`] of the latest events are stored; a slow
//! watcher learns how many events it lost; a run never waits for a watcher.

use super::entry::Entry;
use crabtalk_domain::{AgentEvent, AskOutcome, ConversationKey};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Maximum bytes of stored events: some seconds of many fast streams.
const MAX_BYTES: usize = 4 << 20;

/// An event with its conversation.
#[derive(Debug, Clone)]
pub struct HubEvent {
    /// Number within the runtime's life, from 1; assigned by the hub.
    pub seq: u64,
    /// The conversation; `None` for events that belong to none.
    pub key: Option<Arc<ConversationKey>>,
    /// The run's number.
    pub run: u64,
    /// The agent that answers: the conversation's own, or a guest.
    pub speaker: Arc<str>,
    /// The client's id of the request that started the run; empty if it gave none.
    pub request_id: Arc<str>,
    /// The root run; `None` unless the run is a delegate's.
    pub root: Option<(Arc<ConversationKey>, u64)>,
    /// Tokens of the run's model calls so far.
    pub tokens: u64,
    /// The event.
    pub event: AgentEvent,
    /// RFC 3339 instant.
    pub at: String,
}

/// How many events a slow or disconnected subscriber lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed(pub u64);

/// The latest events.
#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<(usize, Arc<HubEvent>)>,
    bytes: usize,
    /// Number of the latest event; 0 before the first.
    last: u64,
    closed: bool,
}

impl Ring {
    /// Number of the last dropped event.
    fn lost(&self) -> u64 {
        self.last - self.events.len() as u64
    }

    fn push(&mut self, weight: usize, mut event: HubEvent) {
        self.last += 1;
        event.seq = self.last;
        self.bytes += weight;
        self.events.push_back((weight, Arc::new(event)));
        while self.bytes > MAX_BYTES
            && let Some((weight, _)) = self.events.pop_front()
        {
            self.bytes -= weight;
        }
    }
}

/// Bytes of an event, its texts included.
fn weight(event: &HubEvent) -> usize {
    let texts = if let AgentEvent::UserMessage { content, .. } = &event.event {
        content.len()
    } else if let AgentEvent::Steered(content) = &event.event {
        content.len()
    } else if let AgentEvent::AskUser(ask) = &event.event {
        let questions = ask.questions.iter().map(|q| q.question.len());
        let preview = ask.preview.as_ref().map_or(0, |preview| preview.text.len());
        ask.detail.len() + preview + questions.sum::<usize>()
    } else if let AgentEvent::AskSettled { outcome, .. } = &event.event
        && let AskOutcome::Answered { answer, .. } = outcome
    {
        answer.len()
    } else if let AgentEvent::End(end) = &event.event {
        end.error.len()
    } else {
        0
    };
    size_of::<HubEvent>() + event.at.len() + texts + Entry::weight(&event.event)
}

#[derive(Debug, Default)]
struct Shared {
    ring: Mutex<Ring>,
    changed: Notify,
}

impl Shared {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        // Each change is one statement, so a panic leaves it consistent.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends events to subscribers.
#[derive(Debug)]
pub(crate) struct Hub {
    shared: Arc<Shared>,
    life: String,
}

impl Hub {
    /// Creates a hub with a unique life, even if the clock restarts with the machine.
    pub(crate) fn new(era_ms: i64) -> Self {
        let differs = RandomState::new().hash_one(era_ms) as u32;
        Self {
            shared: Arc::default(),
            life: format!("{era_ms:x}-{differs:08x}"),
        }
    }

    pub(crate) fn life(&self) -> &str {
        &self.life
    }

    /// Assigns the next number to an event and stores it.
    pub(crate) fn publish(&self, event: HubEvent) {
        let weight = weight(&event);
        self.shared.ring().push(weight, event);
        self.shared.changed.notify_waiters();
    }

    pub(crate) fn subscribe(&self) -> HubSubscription {
        self.subscribe_after(u64::MAX)
    }

    /// Subscribes to the events after a number; a number in the future means from now on.
    pub(crate) fn subscribe_after(&self, seq: u64) -> HubSubscription {
        HubSubscription {
            shared: Arc::clone(&self.shared),
            seen: seq.min(self.shared.ring().last),
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.shared.ring().closed = true;
        self.shared.changed.notify_waiters();
    }
}

/// A watcher's position in the events.
#[derive(Debug)]
pub struct HubSubscription {
    shared: Arc<Shared>,
    /// Number of the last event that was read or lost.
    seen: u64,
}

impl HubSubscription {
    /// The number of the event after which it continues.
    pub fn position(&self) -> u64 {
        self.seen
    }

    /// Skips dropped events and returns their number, so that `next` does not report
    /// them.
    pub fn take_missed(&mut self) -> Option<Missed> {
        let lost = self.shared.ring().lost();
        let missed = lost.checked_sub(self.seen).filter(|missed| *missed > 0)?;
        self.seen = lost;
        Some(Missed(missed))
    }

    /// The next event, or the number of lost ones; `None` when the runtime ends.
    pub async fn next(&mut self) -> Option<Result<Arc<HubEvent>, Missed>> {
        let shared = Arc::clone(&self.shared);
        loop {
            let mut changed = std::pin::pin!(shared.changed.notified());
            // Registered before the check, so that no event is missed.
            changed.as_mut().enable();
            if let Some(missed) = self.take_missed() {
                return Some(Err(missed));
            }
            if let Some(next) = self.look() {
                return next.map(Ok);
            }
            changed.await;
        }
    }

    /// The event at the current position; `Some(None)` at the end, `None` if it is not there
    /// yet.
    fn look(&mut self) -> Option<Option<Arc<HubEvent>>> {
        let ring = self.shared.ring();
        let at = usize::try_from(self.seen.checked_sub(ring.lost())?).ok()?;
        let Some((_, event)) = ring.events.get(at) else {
            return ring.closed.then_some(None);
        };
        self.seen += 1;
        Some(Some(Arc::clone(event)))
    }
}
