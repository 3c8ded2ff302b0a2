//! Reports the end of each run to the listeners.
//!
//! Invariants: every end is reported, by the conversation's task; a panic of one
//! listener does not affect the others. A run whose end could not be written may be
//! reported again, as interrupted.

use crabtalk_domain::storage::RunRecord;
use crabtalk_domain::{ConversationKey, Origin, RunEnded, RunEnds, RunOutcome};
use futures_util::FutureExt;
use futures_util::future::join_all;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// The listeners for the ends of runs.
pub(crate) struct Ends(Vec<Arc<dyn RunEnds>>);

impl Ends {
    pub(crate) fn new(listeners: Vec<Arc<dyn RunEnds>>) -> Self {
        Self(listeners)
    }

    /// Reports an end to all listeners and waits for them.
    pub(crate) async fn tell(&self, ended: &RunEnded) {
        let told = self.0.iter().map(async |listener| {
            let heard = AssertUnwindSafe(async { listener.on_run_end(ended).await });
            if heard.catch_unwind().await.is_err() {
                tracing::error!(conversation = %ended.key, run = ended.outcome.run, "a listener for the end of runs panicked");
            }
        });
        join_all(told).await;
    }

    /// Reports an interrupted run.
    pub(crate) async fn tell_interrupted(
        &self,
        key: &Arc<ConversationKey>,
        cut: &RunRecord,
        carried_on_as: Option<u64>,
    ) {
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
