//! Waits until the components are idle, and measures the daemon.

use super::talk::all_answer;
use super::{BEASTS, CALM};
use crate::world::{Daemon, Usage, World};
use crabtalk_proto::{Client, ComponentInfo, GetStats, ListComponentsMsg};
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Time for the daemon to find all components again and to release unneeded
/// resources.
const SETTLE: Duration = Duration::from_secs(240);

/// Interval of polls.
pub(super) const LOOK: Duration = Duration::from_millis(100);

pub(super) async fn components(world: &World) -> Vec<ComponentInfo> {
    let mut connection = world.try_connect().await.expect("the daemon is there");
    let listed = connection.list_components(ListComponentsMsg {}).await;
    listed.unwrap().components
}

/// Waits for a state; panics with the last state if it is not reached.
pub(super) async fn settled<T: Debug>(what: &str, mut look: impl AsyncFnMut() -> Result<(), T>) {
    let begun = Instant::now();
    while let Err(last) = look().await {
        assert!(begun.elapsed() < SETTLE, "waited for {what}: {last:?}");
        tokio::time::sleep(LOOK).await;
    }
}

async fn all_connected(world: &World) {
    settled("all components to be connected", async || {
        let mut all = components(world).await;
        all.retain(|one| one.source == "port file");
        let count = all.len() as u64;
        all.retain(|one| one.state != "connected");
        if count == BEASTS + CALM && all.is_empty() {
            Ok(())
        } else {
            Err((count, all))
        }
    })
    .await;
}

/// Waits until all components answer and no call is in flight.
pub(super) async fn calm_down(world: &World, round: &str) {
    all_connected(world).await;
    // The daemon may not have noticed the end of a component that was just replaced.
    settled("all components to answer", async || {
        all_answer(world, round).await
    })
    .await;
    settled("no call to be in flight", async || quiet(world).await).await;
}

/// Checks that no call is in flight and the configured program is idle.
pub(super) async fn quiet(world: &World) -> Result<(), Vec<ComponentInfo>> {
    let mut all = components(world).await;
    all.retain(|one| one.calls > 0 || (one.source == "config" && one.state != "idle"));
    if all.is_empty() { Ok(()) } else { Err(all) }
}

/// The usage of the daemon without conversations in memory.
pub(super) async fn at_rest(world: &World, daemon: &Daemon) -> Usage {
    settled("conversations to be let go", async || {
        let mut connection = world.try_connect().await.expect("the daemon is there");
        let stats = connection.get_stats(GetStats::default()).await.unwrap();
        match stats.active_conversations {
            0 => Ok(()),
            count => Err(count),
        }
    })
    .await;
    daemon.usage()
}

/// Waits until the daemon's usage is within a limit.
pub(super) async fn back_at(what: &str, daemon: &Daemon, most: Usage) {
    settled(what, async || {
        let usage = daemon.usage();
        let is_back = usage.descriptors <= most.descriptors && usage.own_kib <= most.own_kib;
        if is_back { Ok(()) } else { Err((usage, most)) }
    })
    .await;
}

/// The median of each figure of the rounds, and the maximum of descriptors.
pub(super) fn median(rounds: &[Usage]) -> Usage {
    let middle = |of: fn(&Usage) -> u64| {
        let mut all: Vec<u64> = rounds.iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    Usage {
        own_kib: middle(|usage| usage.own_kib),
        descriptors: rounds.iter().map(|u| u.descriptors).max().unwrap_or(0),
        ..rounds[0]
    }
}
