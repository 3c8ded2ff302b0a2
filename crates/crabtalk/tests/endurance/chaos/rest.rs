//! Waiting until everybody is calm, and what the daemon holds then.

use super::talk::all_answer;
use super::{BEASTS, CALM};
use crate::world::{Daemon, Usage, World};
use crabtalk_proto::{Client, ComponentInfo, ListComponentsMsg};
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// What is held for nobody is known when so many looks at the heap in a row found no
/// less.
const NO_LESS: usize = 4;

/// How long the daemon may take to find everybody again, and to let go of what it
/// needs no more.
const SETTLE: Duration = Duration::from_secs(240);

/// Between two looks at a state that nobody announces.
pub(super) const LOOK: Duration = Duration::from_millis(100);

pub(super) async fn components(world: &World) -> Vec<ComponentInfo> {
    let mut connection = world.try_connect().await.expect("the daemon is there");
    let listed = connection.list_components(ListComponentsMsg {}).await;
    listed.unwrap().components
}

/// Waits for a state, and says what it was last if it does not come.
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

/// Everybody is there again, answers, and is called by nobody.
pub(super) async fn calm_down(world: &World, round: &str) {
    all_connected(world).await;
    all_answer(world, round).await;
    settled("nobody to be called", async || quiet(world).await).await;
}

/// No call is in flight, and the program of the configuration is at rest.
pub(super) async fn quiet(world: &World) -> Result<(), Vec<ComponentInfo>> {
    let mut all = components(world).await;
    all.retain(|one| one.calls > 0 || (one.source == "config" && one.state != "idle"));
    if all.is_empty() { Ok(()) } else { Err(all) }
}

/// What the daemon holds for nobody: once no conversation is in memory, what its heap
/// has handed out when that falls no further.
pub(super) async fn at_rest(world: &World, daemon: &Daemon) -> Usage {
    let told = world.heap_kib().len();
    let mut least = daemon.usage();
    settled("the heap to be at rest", async || {
        let since = world.heap_kib().split_off(told);
        let now = daemon.usage();
        least.own_kib = least.own_kib.min(now.own_kib);
        least.descriptors = least.descriptors.min(now.descriptors);
        let empty = since.iter().skip_while(|(count, _)| *count > 0);
        let kib: Vec<u64> = empty.map(|(_, kib)| *kib).collect();
        let lowest = kib.iter().copied().min().unwrap_or_default();
        let (before, last) = kib.split_at(kib.len().saturating_sub(NO_LESS));
        if last.len() == NO_LESS && before.contains(&lowest) {
            least.heap_kib = lowest;
            return Ok(());
        }
        Err(since)
    })
    .await;
    least
}

/// Waits until the daemon holds no more than it may: a busy machine may give back
/// later, and what is lost never comes back.
pub(super) async fn back_at(what: &str, world: &World, daemon: &Daemon, most: Usage) {
    settled(what, async || {
        let mut usage = daemon.usage();
        usage.heap_kib = world.heap_kib().last().map_or(0, |(_, kib)| *kib);
        let is_back = usage.descriptors <= most.descriptors
            && usage.own_kib <= most.own_kib
            && usage.heap_kib <= most.heap_kib;
        if is_back { Ok(()) } else { Err((usage, most)) }
    })
    .await;
}

/// What rounds left: the middle of each figure, and the most descriptors.
pub(super) fn median(rounds: &[Usage]) -> Usage {
    let middle = |of: fn(&Usage) -> u64| {
        let mut all: Vec<u64> = rounds.iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    Usage {
        own_kib: middle(|usage| usage.own_kib),
        heap_kib: middle(|usage| usage.heap_kib),
        descriptors: rounds.iter().map(|u| u.descriptors).max().unwrap_or(0),
        ..rounds[0]
    }
}
