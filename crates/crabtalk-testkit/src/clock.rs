//! A clock that only a test advances.

use crabtalk_domain::Clock;
use jiff::{SignedDuration, Timestamp};
use std::sync::Mutex;

/// A wall clock that changes only by [`ManualClock::advance`].
#[derive(Debug)]
pub struct ManualClock(Mutex<Timestamp>);

impl Default for ManualClock {
    fn default() -> Self {
        Self::at("2026-01-02T03:04:05Z")
    }
}

impl ManualClock {
    /// Creates a clock at this RFC 3339 instant.
    pub fn at(instant: &str) -> Self {
        Self(Mutex::new(instant.parse().expect("an RFC 3339 instant")))
    }

    /// Advances the clock.
    pub fn advance(&self, by: SignedDuration) {
        let mut now = self.0.lock().expect("not poisoned");
        *now = now.checked_add(by).expect("a time that exists");
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().expect("not poisoned")
    }
}
