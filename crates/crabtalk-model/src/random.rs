//! Chance where chance is wanted: jitter and made-up ids.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A generator that many may draw from.
#[derive(Debug)]
pub(crate) struct Random(Mutex<fastrand::Rng>);

impl Random {
    /// The same seed gives the same draws.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    fn upto(&self, last: u64) -> u64 {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rng.u64(..=last)
    }

    /// Uniform in the upper half of a time.
    pub(crate) fn upper_half(&self, time: Duration) -> Duration {
        let half = time / 2;
        let span = u64::try_from((time - half).as_nanos()).unwrap_or(u64::MAX);
        half + Duration::from_nanos(self.upto(span))
    }

    /// An id for a call that came without one; unique beyond one answer,
    /// because a run's history holds the calls of many.
    pub(crate) fn call_id(&self) -> String {
        format!("call_{:016x}", self.upto(u64::MAX))
    }
}

/// Whether an id is one of [`Random::call_id`].
pub(crate) fn is_made_up(id: &str) -> bool {
    id.strip_prefix("call_").is_some_and(|rest| {
        rest.len() == 16
            && rest
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_lies_in_the_upper_half_and_both_ends_are_reached() {
        let random = Random::new(7);
        let draws: Vec<_> = (0..2000)
            .map(|_| random.upper_half(Duration::from_nanos(20)).as_nanos())
            .collect();
        assert_eq!(
            (draws.iter().min(), draws.iter().max()),
            (Some(&10), Some(&20))
        );
        assert_eq!(random.upper_half(Duration::ZERO), Duration::ZERO);
        assert_ne!(random.call_id(), random.call_id());
        assert!(is_made_up(&random.call_id()) && !is_made_up("call_abc"));
    }
}
