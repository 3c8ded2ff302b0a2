//! Bounded waiting for states.

use std::future::Future;
use std::time::Duration;

/// Far beyond what anything here takes, also on a machine that is crowded or that
/// stood still for a while: it ends tests that would never end, and judges nothing.
pub(super) const LIMIT: Duration = Duration::from_secs(300);

/// The interval between polls of a state without notifications.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits for something that must come.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {LIMIT:?} for {what}"),
    }
}

/// Looks at a state until it is there.
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
