//! Keeps the best few of many without sorting them.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Ranked<T> {
    score: f32,
    item: T,
}

impl<T: Ord> Eq for Ranked<T> {}

impl<T: Ord> PartialOrd for Ranked<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for Ranked<T> {
    /// Of equals the later item is better: it is the newer one.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| self.item.cmp(&other.item))
    }
}

/// The best `k` items that were offered.
pub(super) struct Top<T> {
    k: usize,
    heap: BinaryHeap<Reverse<Ranked<T>>>,
}

impl<T: Ord + Copy> Top<T> {
    pub(super) fn new(k: usize) -> Self {
        Self {
            k,
            heap: BinaryHeap::with_capacity(k + 1),
        }
    }

    /// Whether an item of this score would be kept.
    pub(super) fn takes(&self, score: f32) -> bool {
        self.k > 0
            && (self.heap.len() < self.k
                || self
                    .heap
                    .peek()
                    .is_some_and(|Reverse(least)| score >= least.score))
    }

    pub(super) fn offer(&mut self, score: f32, item: T) {
        self.heap.push(Reverse(Ranked { score, item }));
        if self.heap.len() > self.k {
            self.heap.pop();
        }
    }

    /// How many it keeps.
    pub(super) fn room(&self) -> usize {
        self.k
    }

    /// The items kept so far.
    pub(super) fn items(&self) -> impl Iterator<Item = T> {
        self.heap.iter().map(|Reverse(ranked)| ranked.item)
    }

    /// Best first.
    pub(super) fn into_sorted(self) -> Vec<(f32, T)> {
        let sorted = self.heap.into_sorted_vec();
        sorted
            .into_iter()
            .map(|Reverse(ranked)| (ranked.score, ranked.item))
            .collect()
    }
}
