//! Delays the answers to refused tokens and limits their log lines.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The delay of the answer to a refused token.
pub(crate) const DELAY: Duration = Duration::from_secs(1);

/// Interval between log lines, which contain the number of refusals.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Counts refused tokens between log lines.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    count: u32,
    logged: Option<Instant>,
}

impl Refusals {
    /// Counts a refusal. Returns the number of refusals since the last log line if another
    /// line is due.
    pub(crate) fn add(&self) -> Option<u32> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.count = counted.count.saturating_add(1);
        if counted.logged.is_some_and(|at| at.elapsed() < LOG_EVERY) {
            return None;
        }
        counted.logged = Some(Instant::now());
        Some(std::mem::take(&mut counted.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refusals_are_logged_once_a_minute_with_their_number() {
        let refusals = Refusals::default();
        assert_eq!(refusals.add(), Some(1));
        assert_eq!((0..100).find_map(|_| refusals.add()), None);
        tokio::time::sleep(LOG_EVERY).await;
        assert_eq!(refusals.add(), Some(101));
    }
}
