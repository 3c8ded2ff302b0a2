//! `kill -9` at every call that changes a file: before the call, halfway through its
//! write, and after it. Everything that clients were told is there afterwards,
//! every conversation is valid, and nothing runs twice (STORE-4, STORE-7).

mod team;
mod tracer;
mod workload;

use crate::world::{Chance, World, setting};
use crabtalk_proto::ClientError;
use crabtalk_testkit::scripted::Server;
use crabtalk_testkit::tools::skipped;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tracer::{Call, Followed, Moment, Point, is_possible};
use workload::{Account, home, script, work};

/// The number of points to try; 0 tries all.
const POINTS: &str = "CRABTALK_CRASH_POINTS";
const SEED: &str = "CRABTALK_CRASH_SEED";

/// Whether to list the calls.
const LIST: &str = "CRABTALK_CRASH_LIST";

/// Number of points in the test, per way to resume; `cargo xtask crash` tries all.
const POINTS_IN_TESTS: u64 = 24;

/// Concurrent homes: more would need more processors for daemons and tracers.
const WORKERS: usize = 2;

/// Interval of checks whether a daemon answers.
const LOOK: Duration = Duration::from_millis(2);

/// Timeout, after which a step counts as hanging.
const HANGS: Duration = Duration::from_secs(240);

/// Starts a traced daemon, and works until it dies or all is done.
async fn live(world: &World, account: &mut Account, point: Option<Point>) -> Vec<Call> {
    let daemon = Followed::start(&world.command(), point);
    let living = async {
        while world.try_connect().await.is_none() {
            if daemon.is_over() {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
        match work(world, account).await {
            Ok(()) | Err(ClientError::Connection(_)) => {}
            Err(error) => panic!("{point:?}: {error}"),
        }
    };
    let lived = tokio::time::timeout(HANGS, living).await;
    lived.unwrap_or_else(|_| panic!("{point:?}: it hangs"));
    daemon.end().await
}

/// Prints the point of a kill if the test fails.
struct Trying(String);

impl Drop for Trying {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("killed at {}", self.0);
        }
    }
}

/// Tries one kill in a new home; returns the call and the number of told facts.
async fn die_at(resume: &str, point: Point) -> (Option<Call>, usize) {
    let model = Server::start(script()).await;
    let world = home(&model.url(), resume);
    let mut account = Account::default();
    let calls = live(&world, &mut account, Some(point)).await;
    let told = account.told();
    let call = calls.get(point.call).cloned();
    let _trying = Trying(format!(
        "{point:?}, which is {call:?}, with resume {resume}"
    ));
    let daemon = world.start().await;
    let again = async {
        account.check(&world).await;
        // A client that missed the end asks again.
        let worked = work(&world, &mut account).await;
        worked.unwrap_or_else(|error| panic!("{point:?}: {error}"));
        account.check(&world).await;
    };
    let checked = tokio::time::timeout(HANGS, again).await;
    checked.unwrap_or_else(|_| panic!("{point:?}: the next daemon hangs"));
    daemon.terminate().await;
    assert_eq!(model.problems(), Vec::<String>::new(), "{point:?}");
    // Objects of file changes are removed with the changes.
    let changes = world.home().join("state/changes");
    let mut left = left_over(&world.home());
    left.retain(|path| !path.starts_with(&changes));
    assert_eq!(left, Vec::<PathBuf>::new());
    (call, told)
}

/// Temporary files and half-made sockets that remain after a crash and a restart.
fn left_over(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for item in fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(left_over(&path));
        } else if name.contains(".tmp") || name.starts_with(".crabtalk") || name == "s" {
            found.push(path);
        }
    }
    found
}

/// Every point of a life.
fn points(calls: &[Call]) -> Vec<Point> {
    let moments = |(call, of): (usize, &Call)| {
        let half = of.writes.then_some(Moment::Half);
        [Some(Moment::Before), half, Some(Moment::After)]
            .into_iter()
            .flatten()
            .map(move |moment| Point { call, moment })
            .collect::<Vec<_>>()
    };
    calls.iter().enumerate().flat_map(moments).collect()
}

/// A random selection of the points, or all.
fn chosen(mut points: Vec<Point>, seed: u64, in_tests: u64) -> Vec<Point> {
    let wanted = setting(POINTS, in_tests);
    if wanted == 0 {
        return points;
    }
    let mut chance = Chance::new(seed);
    while points.len() as u64 > wanted {
        let at = chance.below(points.len() as u64);
        points.remove(usize::try_from(at).unwrap());
    }
    points
}

async fn nothing_is_lost(resume: &'static str) {
    if !is_possible() {
        skipped("crash", "no program may be followed here");
        return;
    }
    let seed = setting(SEED, 1);
    let model = Server::start(script()).await;
    let world = home(&model.url(), resume);
    let mut account = Account::default();
    let calls = live(&world, &mut account, None).await;
    assert_eq!(model.problems(), Vec::<String>::new());
    if std::env::var_os(LIST).is_some() {
        for (number, call) in calls.iter().enumerate() {
            println!("{number:3} {} {}", call.name, call.path);
        }
    }
    let points = chosen(points(&calls), seed, POINTS_IN_TESTS);
    let tried = points.len();
    let left = Arc::new(Mutex::new(points));
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let left = Arc::clone(&left);
        workers.spawn(async move {
            let mut tried = Vec::new();
            loop {
                let Some(point) = left.lock().unwrap().pop() else {
                    return tried;
                };
                tried.push(die_at(resume, point).await);
            }
        });
    }
    let outcomes: Vec<_> = workers.join_all().await.into_iter().flatten().collect();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for call in outcomes.iter().filter_map(|(call, _)| call.as_ref()) {
        *kinds.entry(call.name).or_default() += 1;
    }
    let told: usize = outcomes.iter().map(|(_, told)| told).sum();
    println!(
        "resume {resume}, seed {seed}: {} calls change a file; killed at {tried} points \
         ({kinds:?}); {told} things were told, none is lost",
        calls.len()
    );
    assert!(told > 0, "every daemon was killed too soon");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_told_is_lost_at_any_call() {
    nothing_is_lost("report").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_runs_are_resumed() {
    nothing_is_lost("auto").await;
}
