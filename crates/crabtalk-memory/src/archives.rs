//! The index of archived turns.
//!
//! Invariants: archives are not kept in memory (STORE-3). The index is derived: texts
//! stay in the log, and each hit is compared with the log before it is returned; missing
//! or mismatching parts are reindexed. One task at a time writes the index, in bounded
//! steps. Only messages of people and agents are indexed: no tool results or arguments, no
//! injected or recalled text, and no summaries, whose turns are already indexed.

mod build;
mod sample;
mod turn;

pub(crate) use sample::Sample;
pub(crate) use turn::{Turn, text_hash, without_recalled};

use crate::index::Query;
use crabtalk_domain::ConversationKey;
use crabtalk_domain::records::{Candidates, PassageQuery, Passages};
use crabtalk_domain::storage::Storage;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Pause between background steps, so that runs are not delayed.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of conversations in the queue. A conversation that finds no room is
/// queued again with its next turn.
const MAX_WAITING: usize = 1_024;

/// Maximum conversations to remember as indexed; above it, they are checked again.
const MAX_CHECKED: usize = 4_096;

/// The index of all archives. Cheap to clone.
#[derive(Clone)]
pub struct ArchiveIndex(Arc<Inner>);

struct Inner {
    passages: Arc<dyn Passages>,
    storage: Arc<dyn Storage>,
    state: Mutex<State>,
    wake: Notify,
    /// Locked during a step.
    building: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// Conversations that may not be indexed.
    waiting: VecDeque<ConversationKey>,
    checked: HashSet<ConversationKey>,
    /// Conversations whose index does not match the log.
    wrong: HashSet<ConversationKey>,
}

impl ArchiveIndex {
    /// Creates an index over a port.
    pub fn new(passages: Arc<dyn Passages>, storage: Arc<dyn Storage>) -> Self {
        Self(Arc::new(Inner {
            passages,
            storage,
            state: Mutex::default(),
            wake: Notify::new(),
            building: tokio::sync::Mutex::default(),
        }))
    }

    /// Queues a conversation before all others, since it has a new archive.
    pub fn note(&self, key: &ConversationKey) {
        let mut state = self.0.state();
        state.waiting.retain(|waiting| waiting != key);
        state.waiting.push_front(key.clone());
        self.0.wake.notify_one();
    }

    /// Queues a conversation, unless it is known to be indexed.
    pub(crate) fn meet(&self, key: &ConversationKey) {
        let mut state = self.0.state();
        let known = state.checked.contains(key) || state.waiting.contains(key);
        if !known && state.waiting.len() < MAX_WAITING {
            state.waiting.push_back(key.clone());
            self.0.wake.notify_one();
        }
    }

    /// Reindexes a conversation whose log contradicts the index.
    pub(crate) fn discard(&self, key: &ConversationKey) {
        tracing::warn!(conversation = %key, "rebuilding the index of archives, which contradicts \
                                             the log");
        let mut state = self.0.state();
        state.wrong.insert(key.clone());
        state.checked.remove(key);
        drop(state);
        self.meet(key);
    }

    /// Removes a conversation from the index.
    pub async fn forget(&self, key: &ConversationKey) {
        let _building = self.0.building.lock().await;
        self.0.state().checked.remove(key);
        if let Err(error) = self.0.passages.clear(key).await {
            tracing::warn!(conversation = %key, %error, "cannot remove the index of a removed conversation");
        }
    }

    /// Conversations of an agent with indexed archives.
    pub(crate) async fn conversations(&self, agent: &str, limit: usize) -> Vec<ConversationKey> {
        let found = self.0.passages.conversations(Some(agent), limit).await;
        found.unwrap_or_else(|error| {
            tracing::warn!(agent, %error, "recall skips other conversations: cannot read the index");
            Vec::new()
        })
    }

    /// Queues the latest conversations if nothing is indexed, as with a new index.
    pub async fn begin(&self) {
        let known = self.0.passages.conversations(None, 1).await;
        if known.is_ok_and(|known| !known.is_empty()) {
            return;
        }
        let latest = self.0.storage.latest(None, None, MAX_WAITING).await;
        for summary in latest.unwrap_or_default() {
            self.meet(&summary.key);
        }
    }

    /// Waits until a conversation is queued, and indexes all that are queued.
    pub async fn fill(&self) {
        while self.0.state().waiting.is_empty() {
            self.0.wake.notified().await;
        }
        while let Some(key) = self.0.next() {
            while self.steps_left(&key).await {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Runs a step, and returns whether more are needed.
    async fn steps_left(&self, key: &ConversationKey) -> bool {
        self.step(key).await.unwrap_or_else(|error| {
            tracing::warn!(conversation = %key, %error, "cannot index archives");
            // A recall by the tool tries again, a recall for a turn does not.
            self.0.checked(key);
            false
        })
    }

    /// Indexes the missing parts of a conversation, newest first, until a time, and returns
    /// whether nothing is missing.
    pub(crate) async fn catch_up(&self, key: &ConversationKey, until: Instant) -> bool {
        loop {
            match self.step(key).await {
                Ok(true) if Instant::now() < until => {}
                Ok(true) => {
                    self.note(key);
                    return false;
                }
                Ok(false) => return true,
                Err(error) => {
                    tracing::warn!(conversation = %key, %error, "recall skips archives: cannot index them");
                    return false;
                }
            }
        }
    }

    /// Finds the indexed passages of conversations to rank.
    pub(crate) async fn find(&self, keys: &[ConversationKey], query: &Query) -> Candidates {
        if keys.is_empty() {
            return Candidates::default();
        }
        let wanted = PassageQuery {
            keys: keys.to_vec(),
            terms: query.searched(),
            days: query.days(),
        };
        self.0.passages.find(wanted).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "recall skips archives: cannot search the index");
            // The index may have to be rebuilt.
            self.0.state().checked.clear();
            Candidates::default()
        })
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<ConversationKey> {
        self.state().waiting.pop_front()
    }

    fn checked(&self, key: &ConversationKey) {
        let mut state = self.state();
        if state.checked.len() >= MAX_CHECKED {
            state.checked.clear();
        }
        state.checked.insert(key.clone());
    }
}
