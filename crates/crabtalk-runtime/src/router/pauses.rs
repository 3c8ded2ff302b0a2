//! The time of a call that is not its own: it waits for a person or for its turn.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// How long each call waited for a person or for its turn.
#[derive(Default)]
pub(crate) struct Pauses(Mutex<HashMap<String, Duration>>);

impl Pauses {
    /// Waits for a person or a turn on behalf of a call.
    pub(super) async fn pause<T>(&self, call_id: &str, wait: impl Future<Output = T>) -> T {
        let since = Instant::now();
        let waited = wait.await;
        *self.all().entry(call_id.to_owned()).or_default() += since.elapsed();
        waited
    }

    /// How long a call waited in all.
    pub(crate) fn of(&self, call_id: &str) -> Duration {
        self.all().get(call_id).copied().unwrap_or_default()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Duration>> {
        let pauses = self.0.lock();
        pauses.expect("no code panics while it holds the pauses")
    }
}
