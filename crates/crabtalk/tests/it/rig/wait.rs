//! Bounded waiting for states.

use std::future::Future;
use std::time::Duration;

/// Timeout of hanging tests; much longer than any test takes.
pub(super) const LIMIT: Duration = Duration::from_secs(300);

/// The interval between polls of a state without notifications.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits for a future that must complete.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {LIMIT:?} for {what}"),
    }
}

/// Polls a state until it is reached.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    within(what, looking).await
}
