//! Twenty components that are killed, restarted on the same or another
//! port, stopped and replaced at random, while fifty conversations call
//! them: a failure costs only the calls of the failed component.
//!
//! The test runs in rounds. After each round all calls end, and the idle daemon's memory and
//! descriptors are recorded: the second half of the rounds is compared with
//! the first, and the end with the beginning.
//!
//! `CRABTALK_CHAOS_SEED` sets the seed, `CRABTALK_CHAOS_SECS` the duration, and
//! `CRABTALK_CHAOS_CSV` names a file for the figures of each round.

mod beast;
mod rest;
mod storm;
mod talk;

use crate::world::{Daemon, Usage, World, setting};
use beast::Beast;
use crabtalk_testkit::tools::has_tools;
use futures_util::future::join_all;
use rest::{at_rest, back_at, calm_down, components, median, quiet, settled};
use std::sync::Arc;
use std::time::{Duration, Instant};
use storm::{Storm, storm};
use talk::answers;

const SECS: &str = "CRABTALK_CHAOS_SECS";
const SEED: &str = "CRABTALK_CHAOS_SEED";
const CSV: &str = "CRABTALK_CHAOS_CSV";

/// Duration of the whole test, including start and settling; `cargo xtask chaos` runs
/// faults for twenty minutes.
const SECS_IN_TESTS: u64 = 30;

/// Time to settle after each round and at the end, in multiples of the start time,
/// which adapts it to a busy machine.
const CALM_TIMES: u32 = 2;

/// Minimum length of a round; a shorter round has too few faults.
const ROUND_AT_LEAST: Duration = Duration::from_secs(8);

/// Length of a round in a long run.
const ROUND_SECS: u64 = 60;

/// Additional rounds on a slow machine, until each fault has occurred.
const MORE_ROUNDS: usize = 10;

/// Number of components with faults.
const BEASTS: u64 = 20;

/// Components without faults: their calls must succeed.
const CALM: u64 = 4;

/// A configured program that is killed from time to time.
const PROGRAM: &str = "program";

/// Allowed growth of private memory in the second half of the rounds.
const MAY_GROW_KIB: u64 = 16 * 1024;

fn beast(number: u64) -> String {
    format!("beast{number}")
}

fn calm(number: u64) -> String {
    format!("calm{number}")
}

/// Writes the figures of each round.
fn write_csv(length: Duration, rounds: &[Usage]) {
    let Some(path) = std::env::var_os(CSV) else {
        return;
    };
    let mut text = String::from("seconds,own_kib,descriptors,threads\n");
    for (at, usage) in rounds.iter().enumerate() {
        let secs = (at as u64 + 1) * length.as_secs();
        let Usage {
            own_kib,
            descriptors,
            threads,
            ..
        } = usage;
        text.push_str(&format!("{secs},{own_kib},{descriptors},{threads}\n"));
    }
    std::fs::write(path, text).unwrap();
}

/// A home with the offline model, which makes the requested calls.
fn world() -> World {
    let world = World::new("http://127.0.0.1:9/v1");
    let program = beast::server();
    let starts = world.folder().join("starts");
    let config = format!(
        "[mcp.{PROGRAM}]\ncommand = \"python3\"\nargs = [\"{}\", \"stdio\"]\nidle_secs = 1\n\
         env = {{ START = \"{}\" }}\n",
        program.display(),
        starts.display()
    );
    world.write("config/config.toml", &config);
    let agent = "---\npermissions: { \"*__*\": allow }\n---\nYou are brief.\n";
    world.write("config/agents/crab.md", agent);
    world
}

/// The length of a round, and the minimum number of rounds.
fn plan(begun: Instant) -> (Duration, usize) {
    if std::env::var_os(SECS).is_some() {
        let secs = setting(SECS, SECS_IN_TESTS);
        let rounds = (secs / ROUND_SECS).max(2);
        let length = Duration::from_secs(secs / rounds);
        return (length, usize::try_from(rounds).unwrap());
    }
    let all = Duration::from_secs(SECS_IN_TESTS);
    let left = all.saturating_sub(begun.elapsed() * (1 + CALM_TIMES));
    ((left / 2).max(ROUND_AT_LEAST), 2)
}

/// Runs rounds until there were enough and every fault has occurred; returns the usage after each,
/// and the remaining components.
async fn rounds(
    world: &Arc<World>,
    daemon: &Daemon,
    mut beasts: Vec<Beast>,
    seed: u64,
    (length, enough): (Duration, usize),
) -> (Vec<Beast>, Vec<Usage>) {
    let (mut left, mut all) = (Vec::new(), Storm::default());
    while left.len() < enough || !all.is_everything() {
        assert!(left.len() < enough + MORE_ROUNDS, "seed {seed}: {all:?}");
        let number = left.len() as u64;
        let more;
        (beasts, more) = storm(world, beasts, seed ^ (number << 40), length).await;
        all.add(&more);
        calm_down(world, "after").await;
        left.push(at_rest(world, daemon).await);
        println!("round {number}, {length:?}: {:?}", left.last());
        write_csv(length, &left);
    }
    println!("seed {seed}: {all:?}");
    (beasts, left)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deaths_of_components_cost_their_own_calls_only() {
    if !has_tools("chaos", &["python3"]) {
        return;
    }
    let (begun, seed) = (Instant::now(), setting(SEED, 1));
    println!("{SEED}={seed} plays this again");
    let world = Arc::new(world());
    let daemon = world.start().await;
    settled("the home to be watched", async || {
        let known = components(&world).await;
        if known.len() == 1 { Ok(()) } else { Err(known) }
    })
    .await;
    // The books are open from the first run on.
    let alone = answers(&world, "alone", vec![PROGRAM.to_owned()]).await;
    alone.unwrap();
    settled("no call to be in flight", async || quiet(&world).await).await;
    let alone = at_rest(&world, &daemon).await;
    println!("{alone:?} alone, after {:?}", begun.elapsed());
    let start = async |name: String| Beast::start(&world, &name, None).await;
    let (calm_ones, beasts) = tokio::join!(
        join_all((0..CALM).map(calm).map(start)),
        join_all((0..BEASTS).map(beast).map(start))
    );
    calm_down(&world, "first").await;
    println!("everybody is there after {:?}", begun.elapsed());

    let (beasts, left) = rounds(&world, &daemon, beasts, seed, plan(begun)).await;
    let (first, second) = left.split_at(left.len() / 2);
    let (before, after) = (median(first), median(second));
    println!("{before:?} after the first half, {after:?} after the second");
    let most = Usage {
        own_kib: before.own_kib + MAY_GROW_KIB,
        ..before
    };
    back_at("what the first half left", &daemon, most).await;
    for one in beasts.into_iter().chain(calm_ones) {
        one.end(&world).await;
    }
    settled("no component to be left", async || {
        let left = components(&world).await;
        if left.len() == 1 { Ok(()) } else { Err(left) }
    })
    .await;
    settled("no child to be left", async || {
        let children = daemon.children();
        if children.is_empty() {
            Ok(())
        } else {
            Err(children)
        }
    })
    .await;
    let most = Usage {
        own_kib: before.own_kib + MAY_GROW_KIB,
        ..alone
    };
    back_at("what was held alone", &daemon, most).await;
    let end = daemon.usage();
    println!("{end:?} in the end, after {:?}", begun.elapsed());
    daemon.terminate().await;
}
