//! Concurrent faults of all components, during all conversations.

use super::beast::{Beast, Tally, kill_programs};
use super::rest::LOOK;
use super::talk::{Runs, talk};
use crate::world::{Chance, World};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const CONVERSATIONS: u64 = 50;

/// The result of a storm.
#[derive(Debug, Default)]
pub(super) struct Storm {
    runs: Runs,
    tally: Tally,
    programs: u64,
}

impl Storm {
    pub(super) fn add(&mut self, other: &Self) {
        self.runs.add(&other.runs);
        self.tally.add(&other.tally);
        self.programs += other.programs;
    }

    /// Whether each fault has occurred and failed a call.
    pub(super) fn is_everything(&self) -> bool {
        let Runs {
            ended,
            answered,
            failed,
        } = self.runs;
        let runs = [ended, answered, failed, self.programs];
        self.tally.is_everything() && runs.into_iter().all(|count| count > 0)
    }
}

/// Causes faults for this long, during all conversations.
pub(super) async fn storm(
    world: &Arc<World>,
    beasts: Vec<Beast>,
    seed: u64,
    time: Duration,
) -> (Vec<Beast>, Storm) {
    let until = CancellationToken::new();
    let mut talking = JoinSet::new();
    for number in 0..CONVERSATIONS {
        talking.spawn(talk(Arc::clone(world), number, seed, until.clone()));
    }
    let mut living = JoinSet::new();
    for (number, one) in beasts.into_iter().enumerate() {
        let chance = Chance::new(seed ^ number as u64);
        living.spawn(one.suffer(Arc::clone(world), chance, until.clone()));
    }
    let mut killing = JoinSet::new();
    let chance = Chance::new(seed);
    killing.spawn(kill_programs(Arc::clone(world), chance, until.clone()));
    let begun = Instant::now();
    while begun.elapsed() < time {
        tokio::time::sleep(LOOK).await;
        if let Some(ended) = talking.try_join_next() {
            panic!("seed {seed}: a conversation failed: {ended:?}");
        }
    }
    until.cancel();
    let mut storm = Storm::default();
    for more in talking.join_all().await {
        storm.runs.add(&more);
    }
    let mut beasts = Vec::new();
    for (one, what) in living.join_all().await {
        storm.tally.add(&what);
        beasts.push(one);
    }
    storm.programs = killing.join_all().await.into_iter().sum();
    (beasts, storm)
}
