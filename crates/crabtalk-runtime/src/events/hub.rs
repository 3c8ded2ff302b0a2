//! Events of all runs, for those who watch the whole daemon (WIRE-8).
//!
//! Invariants: an event is held once, however many watch; a watcher that does
//! not read holds so many events and so many bytes at most, loses the oldest,
//! and is told how many; nobody waits for a watcher.

use super::entry::Entry;
use crabtalk_domain::{AgentEvent, ConversationKey};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// Events kept for a slow subscriber before it misses the oldest: some
/// seconds of a few fast streams.
const CAPACITY: usize = 1024;

/// Their texts together: a burst of long results, and little enough for every
/// client that was stopped in a terminal.
const MAX_BYTES: usize = 4 << 20;

/// An event with its conversation.
#[derive(Debug, Clone)]
pub struct HubEvent {
    /// Whose.
    pub key: Arc<ConversationKey>,
    /// The run's number.
    pub run: u64,
    /// Who speaks in it: the conversation's own agent, or a guest.
    pub speaker: Arc<str>,
    /// What happened.
    pub event: AgentEvent,
    /// RFC 3339 instant.
    pub at: String,
}

/// How many events a subscriber missed because it was slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed(pub u64);

/// What waits for one subscriber.
#[derive(Debug, Default)]
struct Inbox {
    state: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<(usize, Arc<HubEvent>)>,
    bytes: usize,
    missed: u64,
    closed: bool,
}

impl Inbox {
    fn state(&self) -> MutexGuard<'_, Waiting> {
        // What waits is whole after every line, so a panic spoils nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_in(&self, event: &Arc<HubEvent>, weight: usize) {
        let mut waiting = self.state();
        waiting.bytes += weight;
        waiting.events.push_back((weight, Arc::clone(event)));
        while waiting.events.len() > CAPACITY || waiting.bytes > MAX_BYTES {
            let Some((weight, _)) = waiting.events.pop_front() else {
                break;
            };
            waiting.bytes -= weight;
            waiting.missed += 1;
        }
        drop(waiting);
        self.changed.notify_one();
    }
}

/// Bytes that an event is counted with: its texts.
fn weight(event: &AgentEvent) -> usize {
    let texts = if let AgentEvent::UserMessage { content, .. } = event {
        content.len()
    } else if let AgentEvent::Steered(content) = event {
        content.len()
    } else if let AgentEvent::AskUser(ask) = event {
        let questions = ask.questions.iter().map(|q| q.question.len());
        ask.detail.len() + questions.sum::<usize>()
    } else if let AgentEvent::End(end) = event {
        end.error.len()
    } else {
        0
    };
    texts + Entry::weight(event)
}

/// Gives events to subscribers; costs nothing while there are none.
#[derive(Debug, Default)]
pub(crate) struct Hub(Mutex<Vec<Weak<Inbox>>>);

impl Hub {
    fn inboxes(&self) -> MutexGuard<'_, Vec<Weak<Inbox>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_watched(&self) -> bool {
        !self.inboxes().is_empty()
    }

    pub(crate) fn publish(&self, event: HubEvent) {
        let weight = weight(&event.event);
        let event = Arc::new(event);
        self.inboxes().retain(|inbox| {
            let inbox = inbox.upgrade();
            if let Some(inbox) = &inbox {
                inbox.take_in(&event, weight);
            }
            inbox.is_some()
        });
    }

    pub(crate) fn subscribe(&self) -> HubSubscription {
        let inbox = Arc::new(Inbox::default());
        let mut inboxes = self.inboxes();
        inboxes.retain(|inbox| inbox.strong_count() > 0);
        inboxes.push(Arc::downgrade(&inbox));
        drop(inboxes);
        HubSubscription(inbox)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        for inbox in self.inboxes().iter().filter_map(Weak::upgrade) {
            inbox.state().closed = true;
            inbox.changed.notify_one();
        }
    }
}

/// Reads what is published from now on.
#[derive(Debug)]
pub struct HubSubscription(Arc<Inbox>);

impl HubSubscription {
    /// The next event, or how many were missed; `None` when the runtime ends.
    pub async fn next(&mut self) -> Option<Result<Arc<HubEvent>, Missed>> {
        loop {
            {
                let mut waiting = self.0.state();
                if waiting.missed > 0 {
                    return Some(Err(Missed(std::mem::take(&mut waiting.missed))));
                }
                if let Some((weight, event)) = waiting.events.pop_front() {
                    waiting.bytes -= weight;
                    return Some(Ok(event));
                }
                if waiting.closed {
                    return None;
                }
            }
            // One who was told before it waits does not wait.
            self.0.changed.notified().await;
        }
    }
}
