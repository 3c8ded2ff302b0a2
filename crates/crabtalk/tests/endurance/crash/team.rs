//! `kill -9` of NEXUS at every call that changes a file: before the call, halfway through
//! its write, and after it. Everything that ADMIN was told holds afterwards, each task is done once,
//! and no prompt is answered twice.

use super::tracer::{Call, Followed, Point, is_possible};
use super::{HANGS, LIST, LOOK, SEED, Trying, chosen, left_over, points};
use crate::told::history;
use crate::world::{World, setting};
use crabtalk_nexus::agent::State;
use crabtalk_nexus::backend::Reply;
use crabtalk_nexus::clock::Clock;
use crabtalk_nexus::control;
use crabtalk_nexus::start::{self, Places};
use crabtalk_nexus::world::{AgentLine, Answer, Command, Task, TaskState};
use crabtalk_proto::HistoryEntry;
use crabtalk_testkit::scripted::{Script, Server, openai};
use crabtalk_testkit::tools::{has_tools, skipped};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

/// Environment variable with the home of the NEXUS that is killed.
const HOME: &str = "CRABTALK_CRASH_NEXUS";

/// Environment variable with the instant from which its clock runs faster.
const EPOCH: &str = "CRABTALK_CRASH_EPOCH";

/// At this rate, pauses between attempts take some tens of milliseconds.
const RATE: u32 = 100;

/// Number of points in the test; `cargo xtask crash` tries all.
const POINTS_IN_TESTS: u64 = 12;

/// A team without timeouts.
const TEAM: &str = "[times]\nbootstrap_secs = 6000\n\
                    reflection_secs = 3600000\nsilent_secs = 60000\n[agent.D2]\n";

/// The file that the agent's command creates.
const EFFECT: &str = "effect";

/// ADMIN's messages, and whether each is a task.
const SAYS: [(&str, bool); 4] = [
    ("@D2 [ONE]: one", true),
    ("@D2 [ASK]: prompt", false),
    ("@D2 [TWO]: two", true),
    ("@D2 [LAST]: last", false),
];

/// The messages that were acknowledged to ADMIN.
type Told = BTreeSet<&'static str>;

/// Not a test: the NEXUS that is killed.
#[tokio::test]
async fn serve_nexus_to_be_killed() {
    let Some(home) = std::env::var_os(HOME) else {
        return;
    };
    let epoch = std::env::var(EPOCH).unwrap().parse().unwrap();
    let clock = Clock::fast(epoch, RATE);
    let places = places(Path::new(&home));
    let served = start::run(&places, clock, || {}, std::future::pending()).await;
    panic!("NEXUS ended: {served:?}");
}

fn places(home: &Path) -> Places {
    Places {
        home: home.to_owned(),
        user_home: home.parent().unwrap().to_owned(),
        guardian: crabtalk_guardian::GuardianCommand::new(env!("CARGO_BIN_EXE_crabtalk")),
    }
}

fn script() -> Script {
    let says = |topic: &str| openai::text(&format!("@D2 → @ADMIN [{topic}]: done"));
    let does = |topic: &str| openai::text(&format!("@D2 → @NEXUS [{topic}]: done"));
    let command = json!({"command": format!("echo ran >> {EFFECT}; echo has run")});
    let proof = "@D2 → @NEXUS [BOOTSTRAP]: Identity confirmed. Context loaded. Ready";
    Script::openai([openai::text("All right.")])
        .repeating()
        .when("[BOOTSTRAP]", openai::text(proof))
        .when("[ONE]", does("ONE"))
        .when("[ASK]", openai::tools("ask", &[("bash", command)]))
        .when("has run", says("ASK"))
        .when("[TWO]", does("TWO"))
        .when("[LAST]", says("LAST"))
}

/// A home with an agent that asks, and a team with it.
fn home(url: &str) -> World {
    let world = World::new(url);
    world.write(
        "config/agents/d2.md",
        "---\npermissions: { bash: ask }\n---\nYou are brief.\n",
    );
    let root = world.folder().join("team");
    world.write("config/nexus.toml", &format!("root = {root:?}\n{TEAM}"));
    let team = places(&world.home()).team().unwrap();
    let files = crabtalk_nexus::files::Files::new(&team);
    let made = files.init().unwrap();
    files.commit(&made, "begin").unwrap();
    world
}

fn nexus(world: &World, epoch: u64) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["crash::team::serve_nexus_to_be_killed", "--exact"])
        .arg("--nocapture")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", world.folder())
        .env(HOME, world.home())
        .env(EPOCH, epoch.to_string())
        .current_dir(world.folder());
    command
}

/// ADMIN, as a client of a NEXUS that may die.
struct Admin<'a> {
    world: &'a World,
    told: &'a mut Told,
}

impl Admin<'_> {
    async fn say(&self, command: Command) -> Option<Answer> {
        let state = places(&self.world.home()).state();
        control::say(&state, &command).await.ok().flatten()
    }

    async fn tasks(&self) -> Option<Vec<(u64, Task)>> {
        let Answer::Tasks { tasks } = self.say(Command::Tasks).await? else {
            panic!("tasks");
        };
        Some(tasks)
    }

    async fn line(&self) -> Option<AgentLine> {
        let Answer::Status { mut agents, .. } = self.say(Command::Status).await? else {
            panic!("a status");
        };
        Some(agents.remove(0))
    }

    /// Sends everything once and answers prompts, until all is done or NEXUS is gone.
    async fn work(&mut self) -> Option<()> {
        for (text, is_task) in SAYS {
            // An unanswered message is repeated unless the log has it.
            if self.is_logged(text) {
                continue;
            }
            let said = text.to_owned();
            let command = match is_task {
                true => Command::AddTask { text: said },
                false => Command::Send { text: said },
            };
            let answer = self.say(command).await?;
            assert!(matches!(answer, Answer::Done { .. }), "{answer:?}");
            self.told.insert(text);
        }
        loop {
            let line = self.line().await?;
            if line.waits.is_some() {
                // The prompt may have closed by now.
                self.say(Command::Reply {
                    agent: line.name,
                    prompt: line.waits.map(|prompt| prompt.id),
                    reply: Reply::Allow,
                })
                .await?;
            } else if line.state == State::Idle && self.heard("@D2 → @ADMIN [LAST]") > 0 {
                let tasks = self.tasks().await?;
                let is_done = |task: &Task| matches!(task.state, TaskState::Done { .. });
                if tasks.iter().all(|(_, task)| is_done(task)) {
                    return Some(());
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn is_logged(&self, text: &str) -> bool {
        self.heard(text.split_once(' ').unwrap().1) > 0
    }

    /// The number of log entries that contain this text.
    fn heard(&self, part: &str) -> usize {
        let mut count = 0;
        let state = places(&self.world.home()).state();
        let taken = crabtalk_nexus::journal::entries(&state, |entry| {
            count += usize::from(entry.why.contains(part));
            true
        });
        // A log that is being written is read again at the next check.
        taken.map_or(0, |()| count)
    }
}

/// Runs one traced NEXUS until it dies or all is done.
async fn live(world: &World, told: &mut Told, epoch: u64, point: Option<Point>) -> Vec<Call> {
    let followed = Followed::start(&nexus(world, epoch), point);
    let living = async {
        let mut admin = Admin { world, told };
        while admin.say(Command::Status).await.is_none() {
            if followed.is_over() {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
        // Without an answer NEXUS is gone.
        let _ = admin.work().await;
    };
    let lived = tokio::time::timeout(HANGS, living).await;
    lived.unwrap_or_else(|_| panic!("{point:?}: it hangs"));
    followed.end().await
}

/// Asserts that acknowledged changes hold and nothing was done twice.
async fn check(world: &World, admin: &Admin<'_>) {
    let tasks = admin.tasks().await.unwrap();
    let topics: Vec<String> = tasks.iter().map(|(_, t)| t.topic.to_string()).collect();
    assert_eq!(topics, ["ONE", "TWO"]);
    let ran = fs::read_to_string(world.folder().join("team").join(EFFECT));
    assert_eq!(ran.unwrap_or_default(), "ran\n");
    let mut connection = world.try_connect().await.expect("the daemon is there");
    let entries = history(&mut connection, "d2", "user/nexus").await.unwrap();
    for topic in ["[ONE]", "[ASK]", "[TWO]", "[LAST]"] {
        let heard = |entry: &&HistoryEntry| entry.role == "user" && entry.content.contains(topic);
        assert_eq!(
            entries.iter().filter(heard).count(),
            1,
            "{topic}: {entries:#?}"
        );
    }
    let mut last = None;
    let state = places(&world.home()).state();
    crabtalk_nexus::journal::entries(&state, |entry| {
        assert!(last.is_none_or(|last| last == entry.n + 1), "{}", entry.why);
        last = Some(entry.n);
        true
    })
    .unwrap();
    assert_eq!(last, Some(1));
}

/// Tries one kill in a new home; returns the calls and the number of told facts.
async fn die_at(point: Option<Point>) -> (Vec<Call>, usize) {
    let model = Server::start(script()).await;
    let world = home(&model.url());
    let daemon = world.start().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let epoch = u64::try_from(now.as_millis()).unwrap();
    let mut told = Told::new();
    let calls = live(&world, &mut told, epoch, point).await;
    let (of_point, count) = (point.and_then(|point| calls.get(point.call)), told.len());
    let _trying = Trying(format!("{point:?}, which is {of_point:?}, of NEXUS"));
    let state = places(&world.home()).state();
    let there = Some(&state).filter(|folder| folder.is_dir());
    let torn = there.map_or_else(Vec::new, |folder| left_over(folder));
    let log = fs::File::create(world.folder().join("nexus.log")).unwrap();
    let _next = tokio::process::Command::from(nexus(&world, epoch))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let again = async {
        let told = &mut told;
        let mut admin = Admin {
            world: &world,
            told,
        };
        while admin.say(Command::Status).await.is_none() {
            tokio::time::sleep(LOOK).await;
        }
        for text in admin.told.iter() {
            assert!(admin.is_logged(text), "told and not kept: {text}");
        }
        admin.work().await.expect("the next NEXUS goes on");
        check(&world, &admin).await;
        // Temporary files are removed when the next table of states is written.
        while torn.iter().any(|path| path.exists()) {
            tokio::time::sleep(LOOK).await;
        }
    };
    let done = tokio::time::timeout(HANGS, again).await;
    let said = || fs::read_to_string(world.folder().join("nexus.log"));
    done.unwrap_or_else(|_| panic!("{point:?}: the next NEXUS hangs: {:?}", said()));
    daemon.terminate().await;
    assert_eq!(model.problems(), Vec::<String>::new(), "{point:?}");
    (calls, count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_nexus_told_is_lost_at_any_call() {
    if !is_possible() {
        skipped("crash", "no program may be followed here");
        return;
    }
    if !has_tools("nothing_that_nexus_told_is_lost_at_any_call", &["git"]) {
        return;
    }
    let seed = setting(SEED, 1);
    let (calls, _) = die_at(None).await;
    if std::env::var_os(LIST).is_some() {
        for (number, call) in calls.iter().enumerate() {
            println!("{number:3} {} {}", call.name, call.path);
        }
    }
    let points = chosen(points(&calls), seed, POINTS_IN_TESTS);
    let (mut kinds, mut told): (BTreeMap<_, usize>, usize) = Default::default();
    for point in &points {
        let (calls, count) = die_at(Some(*point)).await;
        let name = calls.get(point.call).map_or("none", |call| call.name);
        *kinds.entry(name).or_default() += 1;
        told += count;
    }
    println!(
        "NEXUS, seed {seed}: {} calls change a file; killed at {} points ({kinds:?}); {told} \
         things were told, none is lost",
        calls.len(),
        points.len()
    );
    assert!(told > 0, "every NEXUS was killed too soon");
}
