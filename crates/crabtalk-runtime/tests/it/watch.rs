//! Watchers of the whole daemon, who come, go and come back (WIRE-8).

use crate::rig::*;
use crabtalk_runtime::{HubSubscription, Missed};
use crabtalk_testkit::{MemoryStore, Reply, ScriptedModel};
use std::time::Duration;
use tokio::time::timeout;

fn replies(count: usize) -> Vec<Reply> {
    vec![Reply::text("hi"); count]
}

/// Numbers of what is there, and what was missed of it.
async fn numbers(watch: &mut HubSubscription) -> (Vec<u64>, u64) {
    let (mut seen, mut missed) = (Vec::new(), 0);
    while let Ok(Some(next)) = timeout(Duration::from_millis(1), watch.next()).await {
        match next {
            Ok(event) => seen.push(event.seq),
            Err(Missed(more)) => missed += more,
        }
    }
    (seen, missed)
}

#[tokio::test(start_paused = true)]
async fn events_are_numbered_without_gaps() {
    let rig = rig(replies(2));
    let mut watch = rig.runtime.watch();
    assert_eq!(watch.position(), 0);
    rig.run("one").await;
    rig.run("two").await;
    let (seen, missed) = numbers(&mut watch).await;
    assert_eq!(missed, 0);
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    assert_eq!(watch.position(), seen.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn reconnecting_watchers_get_missed_events_once() {
    let rig = rig(replies(3));
    let mut watch = rig.runtime.watch();
    rig.run("one").await;
    let first = watch.next().await.expect("open").expect("kept");
    drop(watch);
    rig.run("two").await;
    let mut again = rig.runtime.watch_after(first.seq);
    rig.run("three").await;
    let (seen, missed) = numbers(&mut again).await;
    assert_eq!(missed, 0);
    assert_eq!(seen[0], 2);
    assert!(seen.is_sorted_by(|a, b| a + 1 == *b), "{seen:?}");
    // One who is ahead of all that there is reads on from there.
    let ahead = rig.runtime.watch_after(1_000_000);
    assert_eq!(ahead.position(), *seen.last().expect("some"));
}

#[tokio::test(start_paused = true)]
async fn slow_watchers_learn_how_many_events_are_lost() {
    let model = ScriptedModel::new(vec![Reply::text("x".repeat(1 << 20)); 16]);
    let catalog = with_crab(|crab| crab.compact_threshold = None);
    let rig = rig_on(model, MemoryStore::default(), catalog);
    let (mut lags, mut other) = (rig.runtime.watch(), rig.runtime.watch());
    for _ in 0..16 {
        rig.run("go").await;
        // Who reads along misses nothing because of who does not.
        assert_eq!(numbers(&mut other).await.1, 0);
    }
    let (seen, missed) = numbers(&mut lags).await;
    assert!(missed > 0);
    assert_eq!(seen.first(), Some(&(missed + 1)));
    // So does one that comes late.
    let mut late = rig.runtime.watch_after(0);
    assert_eq!(late.take_missed(), Some(Missed(missed)));
    assert_eq!(late.take_missed(), None, "told once");
    assert_eq!(numbers(&mut late).await, (seen.clone(), 0));
    assert_eq!(*seen.last().expect("the latest"), other.position());
}

#[tokio::test]
async fn lives_are_unique() {
    let (one, two) = (rig(Vec::new()), rig(Vec::new()));
    assert_ne!(one.runtime.life(), two.runtime.life());
    assert_eq!(one.runtime.life(), one.runtime.life());
}
