//! What a run waits behind, for whoever waits for its first event.
//!
//! Invariants: nothing is told once the run has begun or was refused; whoever
//! reads late hears the latest place, and no older one.

use super::{RunLog, Subscription};
use std::sync::Arc;

/// What is in flight where it is no run but a compaction on demand.
pub const COMPACTION: &str = "compaction";

/// The place of a run in its conversation's queue (CONV-3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waits {
    /// What comes before it: what is in flight, and the runs that wait in front.
    pub ahead: usize,
    /// Who caused what is in flight, as [`Origin`](crabtalk_domain::Origin) writes
    /// it, or [`COMPACTION`]; empty while that is not known.
    pub origin: String,
    /// The agent that answers there as a guest; empty for the primary.
    pub guest: String,
}

impl RunLog {
    /// The run waits, at this place.
    pub(crate) fn wait_behind(&self, waits: Waits) {
        let mut state = self.state();
        if state.waits.as_deref() == Some(&waits) {
            return;
        }
        state.waits = Some(Arc::new(waits));
        drop(state);
        self.changed.notify_waiters();
    }
}

impl Subscription {
    /// The run's place in the queue, whenever that is news; `None` once it has
    /// begun, or was refused.
    pub async fn waits(&mut self) -> Option<Arc<Waits>> {
        loop {
            let log = Arc::clone(&self.log);
            let changed = log.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that nothing falls between.
            changed.as_mut().enable();
            {
                let state = log.state();
                if state.refused.is_some() || state.last > 0 {
                    return None;
                }
                if state.waits != self.told {
                    self.told.clone_from(&state.waits);
                    return self.told.clone();
                }
            }
            changed.await;
        }
    }
}
