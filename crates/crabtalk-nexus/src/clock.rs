//! What time it is, for everything that NEXUS decides.
//!
//! Invariant: while NEXUS runs it never goes back, whatever is done to the system's
//! clock; what an earlier life kept from a clock that was ahead of this one is
//! brought back to it ([`World`](crate::world::World)).

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Milliseconds of the supervisor's clock.
pub type Ms = u64;

/// A clock that may run faster than the world's, so that a day can be tried in
/// seconds.
#[derive(Debug, Clone)]
pub struct Clock {
    base: Ms,
    started: Instant,
    rate: u32,
}

impl Clock {
    /// The world's time.
    pub fn system() -> Self {
        Self::fast(system_ms(), 1)
    }

    /// The world's time up to `epoch`, `rate` times as fast from there.
    pub fn fast(epoch: Ms, rate: u32) -> Self {
        let rate = rate.max(1);
        let since = system_ms().saturating_sub(epoch);
        Self {
            base: epoch.saturating_add(since.saturating_mul(rate.into())),
            started: Instant::now(),
            rate,
        }
    }

    /// Now, in milliseconds.
    pub fn now(&self) -> Ms {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(Ms::MAX);
        self.base
            .saturating_add(elapsed.saturating_mul(self.rate.into()))
    }

    /// When that was in the system's time, which files bear: as long ago as by this
    /// clock, since that one may have been set meanwhile.
    pub fn real(&self, at: Ms) -> SystemTime {
        let ago = self.now().saturating_sub(at) / Ms::from(self.rate);
        let then = SystemTime::now().checked_sub(Duration::from_millis(ago));
        then.unwrap_or(UNIX_EPOCH)
    }

    /// Waits until then.
    pub async fn until(&self, at: Option<Ms>) {
        let Some(at) = at else {
            return std::future::pending().await;
        };
        let left = at.saturating_sub(self.now());
        // Rounded up, so that it is over when it ends.
        let left = left.div_ceil(self.rate.into());
        tokio::time::sleep(Duration::from_millis(left)).await;
    }
}

/// Waits until then, or for good.
pub(crate) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
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
    async fn a_fast_clock_makes_an_hour_short() {
        let clock = Clock::fast(system_ms(), 3600);
        let before = clock.now();
        let began = Instant::now();
        clock.until(Some(before + 3_600_000)).await;
        assert!(clock.now() >= before + 3_600_000);
        assert!(began.elapsed() <= Duration::from_millis(1010));
    }

    /// An hour of this clock in which the system's clock did not move, as when somebody
    /// puts that back.
    #[tokio::test(start_paused = true)]
    async fn files_are_as_old_as_they_were_though_the_systems_clock_is_put_back() {
        const HOUR: Duration = Duration::from_secs(3600);
        let clock = Clock::system();
        let at = clock.now();
        tokio::time::advance(HOUR).await;
        let hour_ago = SystemTime::now() - HOUR;
        let (early, late) = (hour_ago - HOUR / 2, hour_ago + HOUR / 2);
        let real = clock.real(at);
        assert!((early..late).contains(&real), "{real:?} is no hour ago");
    }
}
