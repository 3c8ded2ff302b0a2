//! Reports the end of each run once to the listeners (ledger, bus, cron).
//!
//! Invariants: no end is lost, and each is reported by the conversation's task; a
//! panic of one listener does not affect the others.

use crabtalk_domain::storage::RunRecord;
use crabtalk_domain::{ConversationKey, Origin, RunEnded, RunEnds, RunOutcome};
use futures_util::FutureExt;
use futures_util::future::join_all;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ends that are remembered because their logs could not be written: as many as
/// conversations may fail together when a disk does. Beyond, one may be told
/// once more, as interrupted.
const MAX_UNWRITTEN: usize = 4096;

/// Those who hear of the end of every run.
pub(crate) struct Ends {
    listeners: Vec<Arc<dyn RunEnds>>,
    /// Runs whose end was told and is not in their log: when it is read again,
    /// it says that they were cut off.
    unwritten: Mutex<HashMap<ConversationKey, u64>>,
}

impl Ends {
    pub(crate) fn new(listeners: Vec<Arc<dyn RunEnds>>) -> Self {
        Self {
            listeners,
            unwritten: Mutex::default(),
        }
    }

    /// Tells all at once, and resolves when all have heard it.
    pub(crate) async fn tell(&self, ended: &RunEnded) {
        let told = self.listeners.iter().map(async |listener| {
            let heard = AssertUnwindSafe(async { listener.on_run_end(ended).await });
            if heard.catch_unwind().await.is_err() {
                tracing::error!(conversation = %ended.key, run = ended.outcome.run, "what listens to the ends of runs panicked");
            }
        });
        join_all(told).await;
    }

    fn unwritten(&self) -> MutexGuard<'_, HashMap<ConversationKey, u64>> {
        self.unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of a run was told, and its log does not have it.
    pub(crate) fn is_not_written(&self, key: &ConversationKey, run: u64) {
        let mut unwritten = self.unwritten();
        if unwritten.len() < MAX_UNWRITTEN {
            unwritten.insert(key.clone(), run);
        }
    }

    /// The log of a conversation was written again.
    pub(crate) fn is_written(&self, key: &ConversationKey) {
        let mut unwritten = self.unwritten();
        if !unwritten.is_empty() {
            unwritten.remove(key);
        }
    }

    /// Whether the end of a run was told before its log could have it.
    fn was_told(&self, key: &ConversationKey, run: u64) -> bool {
        let mut unwritten = self.unwritten();
        let told = unwritten.get(key) == Some(&run);
        if told {
            unwritten.remove(key);
        }
        told
    }

    /// Tells of a run that the daemon's end cut off, and whose log says so now.
    pub(crate) async fn tell_interrupted(
        &self,
        key: &Arc<ConversationKey>,
        cut: &RunRecord,
        carried_on_as: Option<u64>,
    ) {
        if self.was_told(key, cut.id) {
            return;
        }
        let speaker = match cut.guest.as_str() {
            "" => key.agent.to_string(),
            guest => guest.to_owned(),
        };
        let ended = RunEnded {
            key: Arc::clone(key),
            speaker,
            origin: Origin::parse(&cut.origin),
            request_id: cut.request_id.clone(),
            outcome: RunOutcome::of_record(cut),
            answer: String::new(),
            total: None,
            carried_on_as,
        };
        self.tell(&ended).await;
    }
}
