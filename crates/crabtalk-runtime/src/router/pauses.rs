//! Waiting times of calls, which their durations exclude.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// How long each call waited for a person or for its turn.
#[derive(Default)]
pub(crate) struct Pauses(Mutex<HashMap<String, Duration>>);

impl Pauses {
    /// Runs a wait on behalf of a call and adds its duration.
    pub(super) async fn pause<T>(&self, call_id: &str, wait: impl Future<Output = T>) -> T {
        let since = Instant::now();
        let waited = wait.await;
        *self.all().entry(call_id.to_owned()).or_default() += since.elapsed();
        waited
    }

    /// Total waiting time of a call.
    pub(crate) fn of(&self, call_id: &str) -> Duration {
        self.all().get(call_id).copied().unwrap_or_default()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Duration>> {
        let pauses = self.0.lock();
        pauses.expect("no code panics while it holds the pauses")
    }
}
