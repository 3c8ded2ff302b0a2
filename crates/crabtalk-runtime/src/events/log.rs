//! The events of one run, stored once for all readers.
//!
//! Invariant: the texts of a run take at most [`MAX_BYTES`] beyond those of the current
//! step. Earlier steps are dropped; readers that need them get a notice instead, and
//! the conversation's history has them.

mod waits;

use super::entry::Entry;
use crate::Error;
use crabtalk_domain::{AgentEvent, End};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;
pub use waits::{COMPACTION, Waits};

/// Maximum bytes of one run's texts (WIRE-9): enough to replay all but very long runs,
/// and little enough for a thousand conversations.
pub(super) const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Notice in place of dropped events.
const DROPPED: &str =
    "an earlier part of this run is omitted here; the conversation's history contains it";

/// An event with its number in the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequenced {
    /// From 1 within the run.
    pub seq: u64,
    /// The event. Replayed deltas are merged under the number of the last one.
    pub event: AgentEvent,
}

/// The events of one run since its submission.
#[derive(Debug, Default)]
pub struct RunLog {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<Entry>,
    /// Number of the last event.
    last: u64,
    /// Set by a refusal before Start.
    refused: Option<Arc<Error>>,
    end: Option<End>,
    run: u64,
    speaker: Arc<str>,
    /// Number of the last event that a viewer has received.
    shown: u64,
    /// Number of readers that can show asks.
    viewers: usize,
    /// Bytes of stored texts.
    bytes: usize,
    /// Entries before this index belong to answers that the history has.
    answered: usize,
    /// Entries before this index were dropped.
    dropped: usize,
    /// The first refusals of the gate.
    denied: Vec<String>,
    /// Position in the queue until the run begins.
    waits: Option<Arc<Waits>>,
}

/// Maximum number of stored refusals: enough to see what the run lacks.
const MAX_DENIED: usize = 20;

impl RunLog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("no code panics while it holds a run's events")
    }

    /// Appends an event.
    pub(crate) fn publish(&self, event: AgentEvent) {
        let mut state = self.state();
        if state.end.is_some() {
            return;
        }
        state.last += 1;
        let seq = state.last;
        if let AgentEvent::Start { run, agent, .. } = &event {
            state.run = *run;
            state.speaker = agent.as_str().into();
        } else if let AgentEvent::End(end) = &event {
            state.end = Some(end.clone());
        }
        state.push(seq, event);
        if state.bytes > MAX_BYTES {
            state.drop_earlier();
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Records that the history has the streamed answer.
    pub(crate) fn answer_stored(&self) {
        let mut state = self.state();
        state.answered = state.entries.len();
    }

    /// Ends the log with a refusal: the run never starts.
    pub(crate) fn refuse(&self, error: Error) {
        self.state().refused = Some(Arc::new(error));
        self.changed.notify_waiters();
    }

    /// The run's number, 0 before its Start.
    pub fn run(&self) -> u64 {
        self.state().run
    }

    /// The agent that answers in the run; empty before its Start.
    pub fn speaker(&self) -> Arc<str> {
        Arc::clone(&self.state().speaker)
    }

    /// Records a refusal of the gate, in this run or a member's.
    pub(crate) fn note_denied(&self, what: String) {
        let mut state = self.state();
        if state.denied.len() < MAX_DENIED {
            state.denied.push(what);
        }
    }

    /// The first refusals of the gate.
    pub fn denied(&self) -> Vec<String> {
        self.state().denied.clone()
    }

    /// Why the run never started, if it was refused.
    pub(crate) fn refusal(&self) -> Option<Arc<Error>> {
        self.state().refused.clone()
    }

    /// The End of the run, if it has ended.
    pub fn end(&self) -> Option<End> {
        self.state().end.clone()
    }

    /// Whether a reader that can show asks follows the run.
    pub(crate) fn is_viewed(&self) -> bool {
        self.state().viewers > 0
    }

    /// Whether a reader has shown this ask.
    pub(crate) fn has_shown(&self, ask_id: &str) -> bool {
        let state = self.state();
        let asked = state
            .entries
            .iter()
            .rev()
            .find(|entry| entry.is_ask(ask_id));
        asked.is_some_and(|entry| entry.last() <= state.shown)
    }

    /// Bytes of stored texts.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Subscribes from the event after `after`; 0 means from the beginning.
    pub fn subscribe(self: &Arc<Self>, after: u64) -> Subscription {
        let mut state = self.state();
        state.viewers += 1;
        Subscription {
            log: Arc::clone(self),
            entry: 0,
            seen: after,
            replay_upto: state.last,
            views: true,
            told: None,
        }
    }

    /// Subscribes from the last event: the End once the run has ended.
    pub fn subscribe_to_end(self: &Arc<Self>) -> Subscription {
        let last = self.state().last;
        self.subscribe(last.saturating_sub(1))
    }
}

impl State {
    fn push(&mut self, seq: u64, event: AgentEvent) {
        self.bytes += Entry::weight(&event);
        if let AgentEvent::Text(text) = &event {
            self.push_delta(seq, false, text);
        } else if let AgentEvent::Thinking(text) = &event {
            self.push_delta(seq, true, text);
        } else {
            self.entries.push(Entry::one(seq, event));
        }
    }

    fn push_delta(&mut self, seq: u64, thinking: bool, text: &str) {
        let open = self.entries.last_mut();
        if !open.is_some_and(|entry| entry.append(thinking, text)) {
            self.entries.push(Entry::delta(seq, thinking, text));
        }
    }

    /// Drops events of earlier steps, oldest first, until half of the limit is free.
    fn drop_earlier(&mut self) {
        while self.bytes > MAX_BYTES / 2 && self.dropped < self.answered {
            self.bytes -= self.entries[self.dropped].drop_event();
            self.dropped += 1;
        }
    }
}

/// A reader's position in a run.
#[derive(Debug)]
pub struct Subscription {
    log: Arc<RunLog>,
    /// Index of the first entry that is not read completely.
    entry: usize,
    /// Number of the last event read.
    seen: u64,
    /// Deltas up to this number are a replay and are merged.
    replay_upto: u64,
    /// Whether the reader can show asks.
    views: bool,
    /// The last reported position in the queue.
    told: Option<Arc<Waits>>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.stop_viewing();
    }
}

impl Subscription {
    /// Continues as a reader that cannot show asks.
    pub(super) fn stop_viewing(&mut self) {
        if std::mem::take(&mut self.views) {
            self.log.state().viewers -= 1;
        }
    }

    /// The next event; `None` after the End. An error means that the run was refused
    /// before Start.
    pub async fn next(&mut self) -> Result<Option<Sequenced>, Arc<Error>> {
        loop {
            let log = Arc::clone(&self.log);
            let changed = log.changed.notified();
            tokio::pin!(changed);
            let mut next = self.try_next();
            if next.is_none() {
                // Registered before the second attempt, so that no event is missed.
                changed.as_mut().enable();
                next = self.try_next();
            }
            match next {
                Some(next) => return next,
                None => changed.await,
            }
        }
    }

    /// The next event, if it has been published.
    pub fn try_next(&mut self) -> Option<Result<Option<Sequenced>, Arc<Error>>> {
        let mut state = self.log.state();
        if let Some(error) = &state.refused {
            return Some(Err(Arc::clone(error)));
        }
        let mut dropped = false;
        while let Some(entry) = state.entries.get(self.entry) {
            if entry.last() <= self.seen {
                // More of the last text may follow.
                if self.entry + 1 == state.entries.len() && state.end.is_none() {
                    return None;
                }
                self.entry += 1;
                continue;
            }
            let upto = entry.upto(self.seen, self.replay_upto);
            let event = match entry.event(self.seen, upto) {
                Some(_) if dropped => AgentEvent::Notice(DROPPED.into()),
                Some(event) => {
                    self.seen = upto;
                    event
                }
                None => {
                    (self.seen, dropped) = (entry.last(), true);
                    continue;
                }
            };
            if self.views {
                state.shown = state.shown.max(self.seen);
            }
            let seq = self.seen;
            return Some(Ok(Some(Sequenced { seq, event })));
        }
        state.end.is_some().then_some(Ok(None))
    }

    /// The log of the run.
    pub fn log(&self) -> &Arc<RunLog> {
        &self.log
    }
}
