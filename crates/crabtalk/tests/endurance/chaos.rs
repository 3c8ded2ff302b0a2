//! Twenty components that are killed, started again on the same port and on
//! another, stopped and replaced at random, under fifty conversations that call
//! them: each death costs its own calls and nothing else.
//!
//! `CRABTALK_CHAOS_SEED` plays it from elsewhere, `CRABTALK_CHAOS_SECS` for longer.

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

/// How long it goes on.
const SECS_IN_TESTS: u64 = 60;

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

/// Part of the time that is played before memory is looked at.
const WARM_UP: u64 = 4;

/// What memory may have grown by after all of it.
const MAY_GROW_KIB: u64 = 6 * 1024;

/// How long the daemon may take to find everybody again, and to let go of what it
/// needs no more.
const SETTLE: Duration = Duration::from_secs(90);

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
    while !until.is_cancelled() {
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
        if turn % TURNS == 0 {
            let remove = RemoveConversationMsg {
                sender,
                ..RemoveConversationMsg::default()
            };
            connection.remove_conversation(remove).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(chance.below(900))).await;
    }
    runs
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
    let remove = RemoveConversationMsg {
        sender: "checks".into(),
        ..RemoveConversationMsg::default()
    };
    connection.remove_conversation(remove).await.unwrap();
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

/// Waits until the daemon holds no more than it may.
async fn back_at(what: &str, daemon: &Daemon, descriptors: u64, own_kib: u64) -> Usage {
    settled(what, async || {
        let usage = daemon.usage();
        let is_back = usage.descriptors <= descriptors && usage.own_kib <= own_kib;
        if is_back { Ok(()) } else { Err(usage) }
    })
    .await;
    daemon.usage()
}

/// A home with the model that needs no network, which calls what it is told to.
fn world() -> World {
    let world = World::new("http://127.0.0.1:9/v1");
    let program = beast::server();
    let starts = world.folder().join("starts");
    let config = format!(
        "[mcp.{PROGRAM}]\ncommand = \"python3\"\nargs = [\"{}\", \"stdio\"]\nidle_secs = 2\n\
         env = {{ START = \"{}\" }}\n",
        program.display(),
        starts.display()
    );
    world.write("config/config.toml", &config);
    let agent = "---\npermissions: { \"*__*\": allow }\n---\nYou are brief.\n";
    world.write("config/agents/crab.md", agent);
    world
}

/// What a storm did.
#[derive(Debug, Default)]
struct Storm {
    runs: Runs,
    tally: Tally,
    programs: u64,
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
        storm.runs.ended += more.ended;
        storm.runs.answered += more.answered;
        storm.runs.failed += more.failed;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_run_fails_for_a_components_sake_and_nothing_stays_of_the_dead() {
    if !has_tools("chaos", &["python3"]) {
        return;
    }
    let (secs, seed) = (setting(SECS, SECS_IN_TESTS), setting(SEED, 1));
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
    let alone = daemon.usage();
    let start = async |name: String| Beast::start(&world, &name, None).await;
    let calm_ones = join_all((0..CALM).map(calm).map(start)).await;
    let beasts = join_all((0..BEASTS).map(beast).map(start)).await;
    calm_down(&world, "first").await;
    // What a process has once needed, its allocator keeps for the next time.
    let warm_up = Duration::from_secs(secs.div_ceil(WARM_UP));
    let (beasts, _) = storm(&world, beasts, !seed, warm_up).await;
    calm_down(&world, "before").await;
    let before = daemon.usage();
    println!("{alone:?} alone, {before:?} before");

    let (beasts, storm) = storm(&world, beasts, seed, Duration::from_secs(secs)).await;
    println!("seed {seed}: {storm:?}");
    calm_down(&world, "after").await;
    let (descriptors, own_kib) = (before.descriptors, before.own_kib + MAY_GROW_KIB);
    let after = back_at("what was held before", &daemon, descriptors, own_kib).await;
    println!("{after:?} after");
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
    let end = back_at("what was held alone", &daemon, alone.descriptors, own_kib).await;
    println!("{end:?} in the end");
    daemon.terminate().await;
    let Storm {
        runs,
        tally,
        programs,
    } = storm;
    assert!(
        runs.ended > 0 && runs.answered > 0 && runs.failed > 0,
        "{runs:?}"
    );
    assert!(tally.is_everything() && programs > 0, "{tally:?}");
}

/// No call is in flight, and the program of the configuration is at rest.
async fn quiet(world: &World) -> Result<(), Vec<ComponentInfo>> {
    let mut all = components(world).await;
    all.retain(|one| one.calls > 0 || (one.source == "config" && one.state != "idle"));
    if all.is_empty() { Ok(()) } else { Err(all) }
}
