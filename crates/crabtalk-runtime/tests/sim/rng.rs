//! Random numbers of a simulation, derived from one seed.
//!
//! A client with an order that does not depend on the schedule has its own stream;
//! all others derive numbers from the case itself, so that a seed replays the same
//! with any schedule of threads.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A stream of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A stream for one case of a seed.
    pub(crate) fn of(seed: u64, case: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        (seed, case).hash(&mut hasher);
        Self(hasher.finish())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than this.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Whether something happens that does so often in a thousand times.
    pub(crate) fn permille(&mut self, often: u64) -> bool {
        self.below(1000) < often
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len() as u64) as usize)
    }
}
