//! The position of a queued run.
//!
//! Invariants: no position is reported after the run has begun or was refused; a late
//! reader gets only the latest position.

use super::{RunLog, Subscription};
use std::sync::Arc;

/// The origin of a compaction on demand.
pub const COMPACTION: &str = "compaction";

/// The position of a run in its conversation's queue (CONV-3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waits {
    /// Number of runs before this one, including the run in flight.
    pub ahead: usize,
    /// The origin of the run in flight, as [`Origin`](crabtalk_domain::Origin)
    /// writes it, or [`COMPACTION`]; empty if unknown.
    pub origin: String,
    /// The guest that answers in that run; empty for the primary.
    pub guest: String,
}

impl RunLog {
    /// Sets the position of the queued run.
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
    /// The next change of the run's position; `None` once it has begun or was refused.
    pub async fn waits(&mut self) -> Option<Arc<Waits>> {
        loop {
            let log = Arc::clone(&self.log);
            let changed = log.changed.notified();
            tokio::pin!(changed);
            // Registered before the check, so that no change is missed.
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
