//! The clock of NEXUS.
//!
//! Invariant: the clock never goes back while NEXUS runs, even if the system's clock
//! is changed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Milliseconds of the supervisor's clock.
pub type Ms = u64;

/// A clock that may run faster than real time, so that a test of a day takes
/// seconds.
#[derive(Debug, Clone)]
pub struct Clock {
    base: Ms,
    started: Instant,
    rate: u32,
}

impl Clock {
    /// A clock in real time.
    pub fn system() -> Self {
        Self::fast(system_ms(), 1)
    }

    /// A clock in real time up to `epoch`, and `rate` times as fast after it.
    pub fn fast(epoch: Ms, rate: u32) -> Self {
        let rate = rate.max(1);
        let since = system_ms().saturating_sub(epoch);
        Self {
            base: epoch.saturating_add(since.saturating_mul(rate.into())),
            started: Instant::now(),
            rate,
        }
    }

    /// The current time in milliseconds.
    pub fn now(&self) -> Ms {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(Ms::MAX);
        self.base
            .saturating_add(elapsed.saturating_mul(self.rate.into()))
    }

    /// The system time of an instant, for comparison with file times. It is computed from
    /// the age, since the system's clock may have been changed.
    pub fn real(&self, at: Ms) -> SystemTime {
        let ago = self.now().saturating_sub(at) / Ms::from(self.rate);
        let then = SystemTime::now().checked_sub(Duration::from_millis(ago));
        then.unwrap_or(UNIX_EPOCH)
    }

    /// Waits until a time; forever for `None`.
    pub async fn until(&self, at: Option<Ms>) {
        let Some(at) = at else {
            return std::future::pending().await;
        };
        let left = at.saturating_sub(self.now());
        // Rounded up, so that the time has passed afterwards.
        let left = left.div_ceil(self.rate.into());
        tokio::time::sleep(Duration::from_millis(left)).await;
    }
}

fn system_ms() -> Ms {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn fast_clock_shortens_an_hour() {
        let clock = Clock::fast(system_ms(), 3600);
        let before = clock.now();
        let began = Instant::now();
        clock.until(Some(before + 3_600_000)).await;
        assert!(clock.now() >= before + 3_600_000);
        assert!(began.elapsed() <= Duration::from_millis(1010));
    }
}
