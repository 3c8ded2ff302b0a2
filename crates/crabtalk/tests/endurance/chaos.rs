//! Twenty components that are killed, started again on the same port and on
//! another, stopped and replaced at random, under fifty conversations that call
//! them: each death costs its own calls and nothing else.
//!
//! It goes on in rounds. After each of them everybody calms down, and what the daemon
//! holds then is what it holds for nobody: the second half of the rounds is held
//! against the first, and the end against the beginning.
//!
//! `CRABTALK_CHAOS_SEED` plays it from elsewhere, `CRABTALK_CHAOS_SECS` lets things
//! happen for so long,
//! and `CRABTALK_CHAOS_CSV` names a file for what each round left.

mod beast;

use crate::world::{Chance, Daemon, Usage, World, setting};
use beast::{Beast, Tally};
use crabtalk_client::Connection;
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{
    Client, ComponentInfo, ListComponentsMsg, RemoveConversationMsg, StreamEvent, StreamMsg,
    ToolResultEvent,
};
use crabtalk_testkit::tools::has_tools;
use futures_util::StreamExt;
use futures_util::future::join_all;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const SECS: &str = "CRABTALK_CHAOS_SECS";
const SEED: &str = "CRABTALK_CHAOS_SEED";
const CSV: &str = "CRABTALK_CHAOS_CSV";

/// How long the whole test takes, start and calm included; `cargo xtask chaos` lets
/// things happen for twenty minutes.
const SECS_IN_TESTS: u64 = 60;

/// What calming down takes after each round, and the end: so many times what the start
/// took, on a busy machine as on one at rest.
const CALM_TIMES: u32 = 2;

/// A round is no shorter: in less, little happens to anybody.
const ROUND_AT_LEAST: Duration = Duration::from_secs(8);

/// In a long run a round takes so long.
const ROUND_SECS: u64 = 60;

/// More rounds of a slow machine, until everything has happened to somebody.
const MORE_ROUNDS: usize = 10;

/// Components that things happen to.
const BEASTS: u64 = 20;

/// Components that nothing happens to: what becomes of their calls is nobody
/// else's fault.
const CALM: u64 = 4;

/// A program of the configuration that is killed now and then.
const PROGRAM: &str = "program";

const CONVERSATIONS: u64 = 50;

/// Runs of a conversation; then a new one takes its place, so that histories
/// stay short.
const TURNS: u64 = 10;

/// What the heap may have handed out for nobody after the second half of the rounds
/// beyond what it had after the first, and in the end beyond what it had alone. A
/// connection that is lost costs some sixty KiB, and each round loses dozens if one
/// does.
const MAY_GROW_KIB: u64 = 256;

/// What memory may have grown by meanwhile, as the system counts it: that is also
/// what the heap has scattered, which is as much as its busiest moment took.
const MAY_SCATTER_KIB: u64 = 6 * 1024;

/// What is held for nobody is known when so many looks at the heap in a row found no
/// less.
const NO_LESS: usize = 4;

/// How long the daemon may take to find everybody again, and to let go of what it
/// needs no more.
const SETTLE: Duration = Duration::from_secs(240);

/// Between two looks at a state that nobody announces.
const LOOK: Duration = Duration::from_millis(100);

fn beast(number: u64) -> String {
    format!("beast{number}")
}

fn calm(number: u64) -> String {
    format!("calm{number}")
}

/// What was called and what came of it.
#[derive(Debug, Default)]
struct Runs {
    ended: u64,
    answered: u64,
    /// Calls of a component that something happened to.
    failed: u64,
}

impl Runs {
    fn add(&mut self, other: &Self) {
        self.ended += other.ended;
        self.answered += other.answered;
        self.failed += other.failed;
    }
}

/// A call of each of these servers, in one step.
fn step(sender: &str, words: &str, servers: &[String], ms: u64) -> StreamMsg {
    let call = |server: &String| {
        let arguments = serde_json::json!({"ms": ms, "text": format!("{server} says {words}")});
        format!("/tool {server}__slow {arguments}")
    };
    let calls: Vec<String> = servers.iter().map(call).collect();
    StreamMsg {
        content: calls.join("\n"),
        sender: Some(sender.into()),
        ..StreamMsg::default()
    }
}

/// Runs a step to its end, which has to be a good one, and gives the results.
async fn run(connection: &mut Connection, request: StreamMsg) -> Vec<ToolResultEvent> {
    let asked = request.content.clone();
    let events: Vec<_> = connection.stream(request).collect().await;
    let events: Vec<StreamEvent> = events
        .into_iter()
        .map(|event| event.unwrap_or_else(|error| panic!("{asked}: {error}")))
        .collect();
    let ends = events.iter().filter_map(|event| match &event.event {
        Some(Event::End(end)) => Some(end),
        _ => None,
    });
    let ends: Vec<_> = ends.collect();
    assert!(
        matches!(ends[..], [end] if end.error.is_empty()),
        "{asked}: {ends:?}"
    );
    let results = events.iter().filter_map(|event| match &event.event {
        Some(Event::ToolResult(result)) => Some(result.clone()),
        _ => None,
    });
    results.collect()
}

/// Takes turns until it is time.
async fn talk(world: Arc<World>, number: u64, seed: u64, until: CancellationToken) -> Runs {
    let mut chance = Chance::new(seed ^ (number << 20));
    let mut connection = world.try_connect().await.expect("the daemon is there");
    let mut runs = Runs::default();
    let mut turn = 0;
    loop {
        let sender = format!("talker-{number}-{}", turn / TURNS);
        let (calm, other) = (calm(chance.below(CALM)), beast(chance.below(BEASTS)));
        let other = match chance.below(12) {
            0 => PROGRAM.to_owned(),
            _ => other,
        };
        let words = format!("{number}.{turn}");
        let servers = [calm.clone(), other.clone()];
        let request = step(&sender, &words, &servers, chance.below(400));
        let results = run(&mut connection, request).await;
        assert_eq!(results.len(), 2, "{words}: {results:?}");
        for server in [&calm, &other] {
            let want = format!("{server} says {words}");
            if results.iter().any(|r| !r.is_error && r.output == want) {
                runs.answered += 1;
            } else {
                assert_ne!(*server, calm, "{words}: {results:?}");
                let failed = results.iter().filter(|result| result.is_error).count();
                assert_eq!(failed, 1, "{words}: {results:?}");
                runs.failed += 1;
            }
        }
        runs.ended += 1;
        turn += 1;
        let is_over = until.is_cancelled();
        // The last one, too: nothing is held for it then.
        if turn % TURNS == 0 || is_over {
            forget(&mut connection, sender).await;
        }
        if is_over {
            return runs;
        }
        tokio::time::sleep(Duration::from_millis(chance.below(900))).await;
    }
}

async fn forget(connection: &mut Connection, sender: String) {
    let remove = RemoveConversationMsg {
        sender,
        ..RemoveConversationMsg::default()
    };
    connection.remove_conversation(remove).await.unwrap();
}

/// Whoever is there is called, and answers.
async fn all_answer(world: &World, round: &str) {
    let all = (0..CALM).map(calm).chain((0..BEASTS).map(beast));
    answers(world, round, all.chain([PROGRAM.to_owned()]).collect()).await;
}

async fn answers(world: &World, round: &str, all: Vec<String>) {
    let mut connection = world.try_connect().await.expect("the daemon is there");
    let results = run(&mut connection, step("checks", round, &all, 1)).await;
    assert_eq!(results.len(), all.len(), "{results:?}");
    assert!(results.iter().all(|r| !r.is_error), "{results:?}");
    forget(&mut connection, "checks".into()).await;
}

async fn components(world: &World) -> Vec<ComponentInfo> {
    let mut connection = world.try_connect().await.expect("the daemon is there");
    let listed = connection.list_components(ListComponentsMsg {}).await;
    listed.unwrap().components
}

/// Waits for a state, and says what it was last if it does not come.
async fn settled<T: Debug>(what: &str, mut look: impl AsyncFnMut() -> Result<(), T>) {
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

/// What the daemon holds for nobody: once no conversation is in memory, what its heap
/// has handed out when that falls no further.
async fn at_rest(world: &World, daemon: &Daemon) -> Usage {
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
async fn back_at(what: &str, world: &World, daemon: &Daemon, most: Usage) {
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
fn median(rounds: &[Usage]) -> Usage {
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

/// What each round left, for whoever draws it.
fn write_csv(length: Duration, rounds: &[Usage]) {
    let Some(path) = std::env::var_os(CSV) else {
        return;
    };
    let mut text = String::from("seconds,heap_kib,own_kib,descriptors,threads\n");
    for (at, usage) in rounds.iter().enumerate() {
        let secs = (at as u64 + 1) * length.as_secs();
        let Usage {
            heap_kib,
            own_kib,
            descriptors,
            threads,
            ..
        } = usage;
        text.push_str(&format!(
            "{secs},{heap_kib},{own_kib},{descriptors},{threads}\n"
        ));
    }
    std::fs::write(path, text).unwrap();
}

/// A home with the model that needs no network, which calls what it is told to.
fn world() -> World {
    let world = World::new("http://127.0.0.1:9/v1").telling_of_its_heap();
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

/// What storms did.
#[derive(Debug, Default)]
struct Storm {
    runs: Runs,
    tally: Tally,
    programs: u64,
}

impl Storm {
    fn add(&mut self, other: &Self) {
        self.runs.add(&other.runs);
        self.tally.add(&other.tally);
        self.programs += other.programs;
    }

    /// Whether each thing has happened, and cost somebody a call.
    fn is_everything(&self) -> bool {
        let Runs {
            ended,
            answered,
            failed,
        } = self.runs;
        let runs = [ended, answered, failed, self.programs];
        self.tally.is_everything() && runs.into_iter().all(|count| count > 0)
    }
}

/// Lets things happen to everybody for so long, under all conversations.
async fn storm(
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
    killing.spawn(beast::kill_programs(
        Arc::clone(world),
        chance,
        until.clone(),
    ));
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

/// Everybody is there again, answers, and is called by nobody.
async fn calm_down(world: &World, round: &str) {
    all_connected(world).await;
    all_answer(world, round).await;
    settled("nobody to be called", async || quiet(world).await).await;
}

/// How long a round takes, and how many there are at least.
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

/// Rounds until there were enough and everything has happened: what each left, and
/// who is there in the end.
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
async fn no_run_fails_for_a_components_sake_and_nothing_stays_of_the_dead() {
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
    // Its books are open from the first run on.
    answers(&world, "alone", vec![PROGRAM.to_owned()]).await;
    settled("nobody to be called", async || quiet(&world).await).await;
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
    assert!(
        after.heap_kib <= before.heap_kib + MAY_GROW_KIB,
        "seed {seed}: {before:?}, then {after:?} of {left:?}"
    );
    let most = Usage {
        own_kib: before.own_kib + MAY_SCATTER_KIB,
        heap_kib: before.heap_kib + MAY_GROW_KIB,
        ..before
    };
    back_at("what the first half left", &world, &daemon, most).await;
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
        own_kib: before.own_kib + MAY_SCATTER_KIB,
        heap_kib: alone.heap_kib + MAY_GROW_KIB,
        ..alone
    };
    back_at("what was held alone", &world, &daemon, most).await;
    let (end, heap) = (daemon.usage(), world.heap_kib().pop());
    println!("{end:?}, {heap:?} in the end, after {:?}", begun.elapsed());
    daemon.terminate().await;
}

/// No call is in flight, and the program of the configuration is at rest.
async fn quiet(world: &World) -> Result<(), Vec<ComponentInfo>> {
    let mut all = components(world).await;
    all.retain(|one| one.calls > 0 || (one.source == "config" && one.state != "idle"));
    if all.is_empty() { Ok(()) } else { Err(all) }
}
