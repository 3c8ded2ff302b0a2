//! One run's events, held once for all readers.
//!
//! What a run says is in the conversation's log as well. Where a run grows
//! beyond [`MAX_BYTES`], texts, calls and results of its earlier steps are let
//! go here and read from there when somebody wants the replay.

mod waits;

use super::entry::{Body, Entry};
use crate::Error;
use crabtalk_domain::storage::{LogPart, Position, Storage};
use crabtalk_domain::{AgentEvent, ConversationKey, End};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use tokio::sync::Notify;
pub use waits::{COMPACTION, Waits};

/// Texts of one run that are held in memory (WIRE-9): the replay of all but
/// very long runs, and little enough for a thousand conversations.
pub(super) const MAX_BYTES: usize = 4 * 1024 * 1024;

/// An event with its place in the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequenced {
    /// From 1 within the run.
    pub seq: u64,
    /// The event. Replayed deltas come merged, numbered as their last one.
    pub event: AgentEvent,
}

/// The events of one run, from its submission on.
pub struct RunLog {
    state: Mutex<State>,
    changed: Notify,
    /// Where texts that were let go are read again.
    store: OnceLock<(Arc<dyn Storage>, Arc<ConversationKey>)>,
}

impl std::fmt::Debug for RunLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunLog")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<Entry>,
    /// Seq of the last event.
    last: u64,
    /// Set once, by a refusal before Start.
    refused: Option<Arc<Error>>,
    end: Option<End>,
    run: u64,
    speaker: Arc<str>,
    /// Seq of the last event that a reader who shows events has got.
    shown: u64,
    /// Readers who show events, now.
    viewers: usize,
    /// Bytes of texts in memory.
    bytes: usize,
    /// Entries in front of this belong to answers that are in the log.
    answered: usize,
    /// Entries in front of this were looked at for letting go.
    let_go: usize,
    /// Where the answer whose calls are announced next is in the log.
    calls_at: Option<Position>,
    /// Where results are in the log that are announced later.
    results_at: HashMap<String, Position>,
    /// What the gate refused, the first ones.
    denied: Vec<String>,
    /// Its place in the queue, until it begins.
    waits: Option<Arc<Waits>>,
}

/// Refusals that are told of a run: enough to see what it lacks.
const MAX_DENIED: usize = 20;

impl Default for RunLog {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            changed: Notify::new(),
            store: OnceLock::new(),
        }
    }
}

impl RunLog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("no code panics while it holds a run's events")
    }

    /// Adds an event at the end.
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
        if state.bytes > MAX_BYTES && self.store.get().is_some() {
            state.let_go();
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Says where its texts can be read again.
    pub(crate) fn set_store(&self, storage: Arc<dyn Storage>, key: Arc<ConversationKey>) {
        // Set once, when the run starts.
        let _ = self.store.set((storage, key));
    }

    /// The answer that was streamed is in the log, up to this position.
    pub(crate) fn answer_stored(&self, at: Position) {
        let mut state = self.state();
        let from = state.answered;
        let (mut text, mut thinking) = (0, 0);
        for entry in &mut state.entries[from..] {
            if let Body::Deltas(deltas) = &mut entry.body {
                let offset = if deltas.thinking {
                    &mut thinking
                } else {
                    &mut text
                };
                deltas.offset = *offset;
                *offset += deltas.len();
                entry.stored = Some(at);
            }
        }
        state.answered = state.entries.len();
        state.calls_at = Some(at);
    }

    /// A result is in the log; it is announced later.
    pub(crate) fn result_stored(&self, call_id: &str, at: Position) {
        self.state().results_at.insert(call_id.to_owned(), at);
    }

    /// Tells every reader that the run never starts.
    pub(crate) fn refuse(&self, error: Error) {
        self.state().refused = Some(Arc::new(error));
        self.changed.notify_waiters();
    }

    /// The run's number, 0 before its Start.
    pub fn run(&self) -> u64 {
        self.state().run
    }

    /// Who speaks in the run; empty before its Start.
    pub fn speaker(&self) -> Arc<str> {
        Arc::clone(&self.state().speaker)
    }

    /// Notes that the gate refused a call, here or in a run below.
    pub(crate) fn note_denied(&self, what: String) {
        let mut state = self.state();
        if state.denied.len() < MAX_DENIED {
            state.denied.push(what);
        }
    }

    /// What the gate refused, the first ones.
    pub fn denied(&self) -> Vec<String> {
        self.state().denied.clone()
    }

    /// Why the run never started, if it was refused.
    pub(crate) fn refusal(&self) -> Option<Arc<Error>> {
        self.state().refused.clone()
    }

    /// How the run ended, once it has.
    pub fn end(&self) -> Option<End> {
        self.state().end.clone()
    }

    /// Whether anybody who could be asked something follows the run.
    pub(crate) fn is_viewed(&self) -> bool {
        self.state().viewers > 0
    }

    /// Whether somebody who follows the run has been shown this ask.
    pub(crate) fn has_shown(&self, ask_id: &str) -> bool {
        let state = self.state();
        let is_it = |entry: &&Entry| match &entry.body {
            Body::Event(event) => matches!(event, AgentEvent::AskUser(ask) if ask.id == ask_id),
            Body::Deltas(_) | Body::Calls | Body::Result { .. } => false,
        };
        let asked = state.entries.iter().rev().find(is_it);
        asked.is_some_and(|entry| entry.last() <= state.shown)
    }

    /// Bytes of texts in memory.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Reads from the event behind `after`, or from the beginning with 0.
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

    /// Reads nothing but how the run ended.
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
        } else if let AgentEvent::ToolStart(_) = &event {
            let stored = self.calls_at.take();
            self.entries.push(Entry::one(seq, event, stored));
        } else if let AgentEvent::ToolResult { call_id, .. } = &event {
            let stored = self.results_at.remove(call_id);
            self.entries.push(Entry::one(seq, event, stored));
        } else {
            self.entries.push(Entry::one(seq, event, None));
        }
    }

    fn push_delta(&mut self, seq: u64, thinking: bool, text: &str) {
        let open = self
            .entries
            .last_mut()
            .filter(|entry| entry.stored.is_none());
        if !open.is_some_and(|entry| entry.append(thinking, text)) {
            self.entries.push(Entry::delta(seq, thinking, text));
        }
    }

    /// Lets texts go that are in the log, oldest first, until half is free.
    fn let_go(&mut self) {
        while self.bytes > MAX_BYTES / 2 && self.let_go < self.answered {
            self.bytes -= self.entries[self.let_go].let_go();
            self.let_go += 1;
        }
    }
}

/// What a reader finds at its place.
enum Look {
    Ready(Result<Option<Sequenced>, Arc<Error>>),
    /// Nothing new yet.
    Wait,
    /// A text that is in the conversation's log only, up to this position.
    Stored(Position),
}

/// A reader's place in a run.
#[derive(Debug)]
pub struct Subscription {
    log: Arc<RunLog>,
    /// Index of the first entry that is not wholly read.
    entry: usize,
    /// Seq of the last event read.
    seen: u64,
    /// Deltas up to here are a replay and come merged.
    replay_upto: u64,
    /// Whether what it reads is shown to anybody.
    views: bool,
    /// The place in the queue that it was told last.
    told: Option<Arc<Waits>>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.close_eyes();
    }
}

impl Subscription {
    /// Reads on for nobody who could be asked something.
    pub(super) fn close_eyes(&mut self) {
        if std::mem::take(&mut self.views) {
            self.log.state().viewers -= 1;
        }
    }

    /// The next event; `None` after the End. An error means that the run was
    /// refused and never started.
    pub async fn next(&mut self) -> Result<Option<Sequenced>, Arc<Error>> {
        loop {
            let log = Arc::clone(&self.log);
            let changed = log.changed.notified();
            tokio::pin!(changed);
            let mut look = self.look();
            if let Look::Wait = look {
                // Registered before the second look, so that no event falls
                // between.
                changed.as_mut().enable();
                look = self.look();
            }
            match look {
                Look::Ready(ready) => return ready,
                Look::Wait => changed.await,
                Look::Stored(at) => {
                    // Boxed, since hardly any reader gets there, and every event
                    // would move the room for it.
                    if let Some(read) = Box::pin(self.read_stored(at)).await {
                        return Ok(Some(read));
                    }
                }
            }
        }
    }

    /// The next event if it is there already.
    pub fn try_next(&mut self) -> Option<Result<Option<Sequenced>, Arc<Error>>> {
        match self.look() {
            Look::Ready(ready) => Some(ready),
            Look::Wait | Look::Stored(_) => None,
        }
    }

    fn look(&mut self) -> Look {
        let mut state = self.log.state();
        if let Some(error) = &state.refused {
            return Look::Ready(Err(Arc::clone(error)));
        }
        while let Some(entry) = state.entries.get(self.entry) {
            if entry.last() <= self.seen {
                // A text that may still grow is looked at again.
                if self.entry + 1 == state.entries.len() && state.end.is_none() {
                    return Look::Wait;
                }
                self.entry += 1;
                continue;
            }
            let upto = entry.upto(self.seen, self.replay_upto);
            let Some(event) = entry.event(self.seen, upto) else {
                return entry.stored.map_or(Look::Wait, Look::Stored);
            };
            self.seen = upto;
            if self.views {
                state.shown = state.shown.max(upto);
            }
            return Look::Ready(Ok(Some(Sequenced { seq: upto, event })));
        }
        if state.end.is_some() {
            Look::Ready(Ok(None))
        } else {
            Look::Wait
        }
    }

    /// Reads the entry at its place from the conversation's log. `None`: it
    /// cannot be read, and is passed over.
    async fn read_stored(&mut self, at: Position) -> Option<Sequenced> {
        let (storage, key) = self.log.store.get()?;
        let source = LogPart::Conversation((**key).clone());
        let page = storage.page(&source, Some(at.0), 1).await;
        let page = page.map_err(|error| tracing::warn!(%key, %error, "a replay has a gap"));
        let state = self.log.state();
        let entry = state.entries.get(self.entry)?;
        let upto = entry.upto(self.seen, self.replay_upto);
        // A page holds whole groups of results, in the order of their calls.
        let mut messages = page.unwrap_or_default().entries.into_iter().rev();
        let message = messages.find(|found| entry.is_of(&found.message));
        let event = message.and_then(|found| entry.event_of(&found.message, self.seen, upto));
        self.seen = upto;
        event.map(|event| Sequenced { seq: upto, event })
    }

    /// The log that it reads.
    pub fn log(&self) -> &Arc<RunLog> {
        &self.log
    }
}
