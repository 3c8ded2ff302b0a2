//! Limits on messages between agents.

use crate::clock::Ms;
use crate::name::Name;
use std::collections::BTreeMap;

/// Maximum messages of a pair per minute, in both directions; agents with more to say should
/// write a file.
pub const PER_MINUTE: usize = 10;

/// Longest chain of messages that cause one another; a longer one is treated as a loop.
pub const MAX_DEPTH: u32 = 8;

const MINUTE_MS: Ms = 60_000;

/// The times of recent messages of each pair. Not restored after a restart.
#[derive(Debug, Clone, Default)]
pub struct Rates(BTreeMap<(Name, Name), Vec<Ms>>);

impl Rates {
    /// Records another message of the pair, and returns whether it is within the limit.
    pub fn allows(&mut self, a: &Name, b: &Name, now: Ms) -> bool {
        let pair = if a < b { (a, b) } else { (b, a) };
        let times = self.0.entry((pair.0.clone(), pair.1.clone())).or_default();
        times.retain(|at| now.saturating_sub(*at) < MINUTE_MS);
        if times.len() >= PER_MINUTE {
            return false;
        }
        times.push(now);
        true
    }
}
