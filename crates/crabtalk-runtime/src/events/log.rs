//! One run's events, held once for all readers.

use crate::Error;
use crabtalk_domain::{AgentEvent, End};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

/// An event with its place in the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequenced {
    /// From 1 within the run.
    pub seq: u64,
    /// The event. Replayed deltas come merged, numbered as their last one.
    pub event: AgentEvent,
}

/// The events of one run, from its submission on.
#[derive(Debug)]
pub struct RunLog {
    state: Mutex<State>,
    changed: Notify,
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
}

#[derive(Debug)]
enum Entry {
    One { seq: u64, event: AgentEvent },
    Deltas(Deltas),
}

/// Consecutive pieces of one text, kept as the whole text and the place where
/// each piece ends.
#[derive(Debug)]
struct Deltas {
    first: u64,
    thinking: bool,
    text: String,
    ends: Vec<u32>,
}

impl Deltas {
    fn last(&self) -> u64 {
        self.first + self.ends.len() as u64 - 1
    }

    /// The pieces after `seen` up to `upto`, merged.
    fn piece(&self, seen: u64, upto: u64) -> AgentEvent {
        let offset = |seq: u64| match seq.checked_sub(self.first) {
            Some(at) => self.ends[at as usize] as usize,
            None => 0,
        };
        let text = self.text[offset(seen)..offset(upto)].to_owned();
        if self.thinking {
            AgentEvent::Thinking(text)
        } else {
            AgentEvent::Text(text)
        }
    }
}

impl Entry {
    fn last(&self) -> u64 {
        match self {
            Self::One { seq, .. } => *seq,
            Self::Deltas(deltas) => deltas.last(),
        }
    }
}

impl Default for RunLog {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            changed: Notify::new(),
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
        if let AgentEvent::Start { run, .. } = &event {
            state.run = *run;
        } else if let AgentEvent::End(end) = &event {
            state.end = Some(end.clone());
        }
        if let AgentEvent::Text(text) = &event {
            state.push_delta(seq, false, text);
        } else if let AgentEvent::Thinking(text) = &event {
            state.push_delta(seq, true, text);
        } else {
            state.entries.push(Entry::One { seq, event });
        }
        drop(state);
        self.changed.notify_waiters();
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

    /// How the run ended, once it has.
    pub fn end(&self) -> Option<End> {
        self.state().end.clone()
    }

    /// Reads from the event behind `after`, or from the beginning with 0.
    pub fn subscribe(self: &Arc<Self>, after: u64) -> Subscription {
        let replay_upto = self.state().last;
        Subscription {
            log: Arc::clone(self),
            entry: 0,
            seen: after,
            replay_upto,
        }
    }

    /// Reads nothing but how the run ended.
    pub fn subscribe_to_end(self: &Arc<Self>) -> Subscription {
        let last = self.state().last;
        self.subscribe(last.saturating_sub(1))
    }
}

impl State {
    fn push_delta(&mut self, seq: u64, thinking: bool, text: &str) {
        let open = match self.entries.last_mut() {
            Some(Entry::Deltas(deltas)) if deltas.thinking == thinking => {
                // Past 4 GiB of one text the offsets would not fit: begin anew.
                u32::try_from(deltas.text.len() + text.len())
                    .is_ok()
                    .then_some(deltas)
            }
            Some(_) | None => None,
        };
        match open {
            Some(deltas) => {
                deltas.text.push_str(text);
                deltas.ends.push(deltas.text.len() as u32);
            }
            None => self.entries.push(Entry::Deltas(Deltas {
                first: seq,
                thinking,
                text: text.to_owned(),
                ends: vec![text.len() as u32],
            })),
        }
    }
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
}

impl Subscription {
    /// The next event; `None` after the End. An error means that the run was
    /// refused and never started.
    pub async fn next(&mut self) -> Result<Option<Sequenced>, Arc<Error>> {
        loop {
            let log = Arc::clone(&self.log);
            let changed = log.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that no event falls between.
            if let Some(ready) = self.try_next() {
                return ready;
            }
            changed.as_mut().enable();
            if let Some(ready) = self.try_next() {
                return ready;
            }
            changed.await;
        }
    }

    /// The next event if it is there already.
    pub fn try_next(&mut self) -> Option<Result<Option<Sequenced>, Arc<Error>>> {
        let state = self.log.state();
        if let Some(error) = &state.refused {
            return Some(Err(Arc::clone(error)));
        }
        while let Some(entry) = state.entries.get(self.entry) {
            if entry.last() <= self.seen {
                // A delta block that may still grow is looked at again.
                if self.entry + 1 == state.entries.len() && state.end.is_none() {
                    return None;
                }
                self.entry += 1;
                continue;
            }
            let (seq, event) = match entry {
                Entry::One { seq, event } => (*seq, event.clone()),
                Entry::Deltas(deltas) => {
                    let upto = deltas.last().min(self.replay_upto).max(self.seen + 1);
                    let upto = upto.max(deltas.first);
                    (upto, deltas.piece(self.seen, upto))
                }
            };
            self.seen = seq;
            return Some(Ok(Some(Sequenced { seq, event })));
        }
        state.end.is_some().then_some(Ok(None))
    }

    /// The log that it reads.
    pub fn log(&self) -> &Arc<RunLog> {
        &self.log
    }
}
