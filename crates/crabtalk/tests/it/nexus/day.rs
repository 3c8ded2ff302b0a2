//! A day of a team in a minute: tasks, messages, prompts, a hang, a crash,
//! compressions, and a supervisor that is killed again and again.

use super::player::Player;
use super::speaker::Speaker;
use super::supervised::Team;
use crate::rig::{CRABTALK, TestEnv, has_tools, skipped, within};
use crate::team::Server as Tmux;
use crabtalk_client::{Client, Endpoint, GetHistoryMsg, HistoryEntry};
use crabtalk_nexus::agent::State;
use crabtalk_nexus::journal;
use crabtalk_nexus::name::Name;
use crabtalk_nexus::world::{Answer, Command, Entry, TaskState};
use crabtalk_testkit::fake_agent;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Three of the daemon. Times are those of a slow machine at a hundred times its
/// pace.
const TEAM: &str = "compress = \"auto\"\n\
    [times]\nbootstrap_secs = 6000\nreadiness_secs = 6000\nreflection_secs = 36000\n\
    silent_secs = 400\n\
    [rules]\nallow = [\"bash(echo well 19)\"]\ndeny = [\"bash(rm -rf nothing)\"]\n\
    [agent.D1]\nagent = \"crab\"\n[agent.D2]\n[agent.D3]\n";

const TASKS: usize = 40;

/// Looks at a team, a twentieth of a second apart, until it counts as stuck.
const LOOKS: usize = 10_000;

/// What becomes of each task, by its number.
fn task(number: usize) -> String {
    let to = match number % 8 {
        0 => "D1",
        1 => "D2",
        2 => "D3",
        3 => "T1",
        4 => "T2",
        5 => "T3",
        _ => "ANY",
    };
    let body = match number {
        3 => "hang".into(),
        4 => "die".into(),
        9 | 13 | 18 | 19 => format!("prompt echo well {number}"),
        17 | 20 | 21 => "prompt rm -rf nothing".into(),
        2 | 35 => "prompt touch asked".into(),
        27 => "learn much".into(),
        8 | 16 => "ask T3".into(),
        11 | 12 => "ask D2".into(),
        _ => format!("work {number}"),
    };
    format!("@{to} [JOB-{number}]: {body}")
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

async fn done(team: &Team<'_>) -> usize {
    let tasks = team.tasks().await;
    let is_done = |state: &TaskState| matches!(state, TaskState::Done { .. });
    tasks
        .iter()
        .filter(|(_, task)| is_done(&task.state))
        .count()
}

/// What ADMIN saw of the agents.
struct Seen {
    /// Whether all of them are idle, with nothing to do.
    quiet: bool,
    /// Whether one was stuck, and was started again.
    hung: bool,
    text: String,
}

/// ADMIN's part: approves what waits, and starts what is stuck again.
async fn look_after(team: &Team<'_>) -> Seen {
    let Answer::Status { agents, .. } = team.say(Command::Status).await else {
        panic!("a status");
    };
    let mut hung = false;
    for agent in &agents {
        if agent.waits.is_some() {
            let (agent, prompt) = (agent.name.clone(), None);
            team.say(Command::Approve { agent, prompt }).await;
        } else if agent.state == State::Stuck {
            let agent = agent.name.clone();
            team.say(Command::Restart { agent }).await;
            hung = true;
        }
    }
    let quiet = agents
        .iter()
        .all(|a| a.state == State::Idle && a.queue == 0);
    let seen: Vec<String> = agents
        .iter()
        .map(|a| format!("{} {} {} {}", a.name, a.state, a.queue, a.note))
        .collect();
    let text = seen.join("\n");
    Seen { quiet, hung, text }
}

/// Looks after the team until so many tasks are done, and until one hung where that is
/// waited for.
async fn until(team: &Team<'_>, count: usize, mut awaits_hang: bool) {
    let mut text = String::new();
    for _ in 0..LOOKS {
        let seen = look_after(team).await;
        awaits_hang &= !seen.hung;
        text = seen.text;
        if !awaits_hang && done(team).await >= count && (count < TASKS || seen.quiet) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!(
        "{} of {count} tasks, a hang missing: {awaits_hang}\n{text}\n{}",
        done(team).await,
        team.log()
    );
}

/// The three that are in a terminal: two that play, and our own chat.
fn in_terminals(env: &TestEnv, players: &[Player; 2]) -> String {
    let mut kinds = toml::Table::new();
    let fake: toml::Table = fake_agent::KIND.parse().unwrap();
    kinds.insert("fake".into(), fake.into());
    let chat = [CRABTALK, "--as", "user/nexus-{name}", "chat", "--bell"];
    let chat = format!("command = {chat:?}");
    kinds.insert(
        "crabtalk".into(),
        chat.parse::<toml::Table>().unwrap().into(),
    );
    let kinds = toml::Table::from_iter([("kind".to_owned(), toml::Value::Table(kinds))]);
    let socket = env.root().join("tmux");
    let [first, second] = players;
    format!(
        "[tmux]\nsocket = {socket:?}\n{}{}[agent.T3]\nkind = \"crabtalk\"\n[agent.T3.env]\n\
         HOME = {:?}\nCRABTALK_HOME = {:?}\nCRABTALK_DETECT = \"0\"\n{}",
        first.section("T1"),
        second.section("T2"),
        env.user_home,
        env.home,
        toml::to_string(&kinds).unwrap()
    )
}

#[tokio::test]
async fn a_scripted_day_does_each_task_once_though_nexus_is_killed_five_times() {
    if !has_tools("a_scripted_day_does_each_task_once", &["git", "tmux"]) {
        return;
    }
    let speaker = Speaker::start().await;
    let env = TestEnv::new();
    env.config(&speaker.config());
    for agent in ["d2", "d3"] {
        env.agent(agent, "description: one of a team");
    }
    let _daemon = env.daemon().await;
    let players = ["t1", "t2"].map(|name| Player::new(env.root().join(name)));
    let _tmux = Tmux(env.root().join("tmux"));
    let config = format!("{TEAM}{}", in_terminals(&env, &players));
    let mut team = Team::new(&env, &config);
    team.start().await;
    for number in 0..TASKS {
        let text = task(number);
        let added = team.say(Command::AddTask { text }).await;
        assert!(matches!(added, Answer::Done { .. }), "{added:?}");
    }
    let (agent, force) = (name("d1"), false);
    team.say(Command::Compress { agent, force }).await;
    for count in [4, 11, 18, 25, 32] {
        // A NEXUS that is killed just before it sees the hang starts the agent anew.
        until(&team, count, count == 4).await;
        team.kill().await;
        team.start().await;
    }
    until(&team, TASKS, false).await;
    check(&env, &team, &players).await;
    for agent in ["t1", "t2", "t3"] {
        let agent = name(agent);
        team.say(Command::Stop { agent }).await;
    }
}

/// What users said in a conversation of the daemon, and in what was put away of it.
async fn heard(client: &Client, agent: &str, sender: &str) -> Vec<String> {
    let page = client.call(GetHistoryMsg {
        agent: agent.into(),
        sender: sender.into(),
        before: None,
        limit: 1000,
        first: false,
    });
    let page = within("a history", page).await.unwrap();
    // By their place in the log: what a compression keeps is in both.
    let mut users = BTreeMap::new();
    let mut take = |entries: Vec<HistoryEntry>| {
        let of_user = entries.into_iter().filter(|entry| entry.role == "user");
        users.extend(of_user.map(|entry| (entry.index, entry.content)));
    };
    take(page.entries);
    let archives = client.call(crabtalk_client::ListArchivesMsg {
        agent: agent.into(),
        sender: sender.into(),
    });
    for archive in within("archives", archives).await.unwrap().archives {
        let content = client.call(crabtalk_client::GetArchiveMsg {
            agent: agent.into(),
            sender: sender.into(),
            index: archive.index,
            before: None,
            limit: 1000,
        });
        take(within("an archive", content).await.unwrap().entries);
    }
    users.into_values().collect()
}

async fn check(env: &TestEnv, team: &Team<'_>, players: &[Player; 2]) {
    let mut messages: Vec<String> = players.iter().flat_map(Player::heard).collect();
    let client = Client::new(Endpoint::of_home(&env.home), "e2e/1");
    for (agent, sender) in [
        ("crab", "user/nexus"),
        ("d2", "user/nexus"),
        ("d3", "user/nexus"),
        // The chat in its window.
        ("crab", "user/nexus-t3"),
    ] {
        messages.extend(heard(&client, agent, sender).await);
    }
    messages.sort();
    let carried = |text: &&String| text.contains("Your session was interrupted");
    for number in 0..TASKS {
        for topic in [format!("[JOB-{number}]: "), format!("Q-JOB-{number}]: ")] {
            let has = messages.iter().filter(|text| text.contains(&topic));
            let count = has.filter(|text| !carried(text)).count();
            let expected = if topic.starts_with('[') {
                1
            } else {
                // The question, and its answer.
                2 * usize::from(task(number).contains(": ask "))
            };
            assert_eq!(count, expected, "{topic}: {messages:#?}");
        }
    }
    let mut log: Vec<Entry> = Vec::new();
    journal::entries(&team.places().state(), |entry| log.push(entry)).unwrap();
    accounts_for_all(&log);
    explains_all(env, &log).await;
    let of_admin = log.iter().filter(|entry| entry.why.starts_with("ADMIN: "));
    // Beside the compression that it asked for.
    assert!(of_admin.count() >= 3, "ADMIN intervened twice");
    keys_have_reasons(&log, players);
    let compressed = |agent: &str| {
        let agent = name(agent);
        let of = |entry: &&Entry| entry.agent.as_ref() == Some(&agent);
        let entries = log.iter().filter(of);
        entries
            .filter(|entry| entry.why == "it is compressed")
            .count()
    };
    assert!(compressed("D1") >= 1, "one because ADMIN said so");
    assert!(compressed("T1") >= 1, "one because its context was full");
    assert!(players[0].lives() >= 2, "it has another session since");
    assert!(
        log.iter().any(|entry| entry.to == Some(State::Stuck)),
        "one hung"
    );
    // NEXUS may have been dead itself when it did.
    let carries_on = |text: &String| text.contains("[JOB-4]: Your session was interrupted");
    assert!(players[1].heard().iter().any(carries_on), "one crashed");
}

/// Each key that answered a prompt in a terminal was decided for that prompt, and
/// no command ran that was not allowed.
fn keys_have_reasons(log: &[Entry], players: &[Player; 2]) {
    for (agent, player) in ["T1", "T2"].into_iter().zip(players) {
        let agent = name(agent);
        let did = |begin: &str| {
            let of = log
                .iter()
                .filter(|entry| entry.agent.as_ref() == Some(&agent));
            let did = of.flat_map(|entry| &entry.did);
            did.filter(|did| did.starts_with(begin)).count()
        };
        let (allowed, denied) = player.pressed();
        assert!(allowed <= did("allow "), "{agent}: {allowed}");
        // The same key cancels a turn.
        let escapes = did("deny ") + did("cancel its turn");
        assert!(denied <= escapes, "{agent}: {denied} of {escapes}");
        assert_eq!(player.ran().len(), allowed, "{:?}", player.ran());
    }
    assert_eq!(players[0].ran(), ["echo well 19", "touch asked"]);
    assert_eq!(players[1].ran(), [""; 0]);
    let (allowed, refused) = players[1].pressed();
    assert!(allowed == 0 && refused >= 1, "{allowed}, {refused}");
}

/// `explain` tells of each thing that was done to an agent what it was done for,
/// back to what was seen or said.
async fn explains_all(env: &TestEnv, log: &[Entry]) {
    const DEEDS: [&str; 7] = [
        "allow ",
        "deny ",
        "answer ",
        "one Enter",
        "cancel its turn",
        "compress",
        "end it",
    ];
    let folder = Path::new(CRABTALK).parent().unwrap();
    if !folder.join("crabtalk-nexus").is_file() {
        return skipped(
            "explains_all",
            "crabtalk-nexus is not built beside crabtalk",
        );
    }
    for entry in log {
        let mut did = entry.did.iter();
        let Some(did) = did.find(|did| DEEDS.iter().any(|deed| did.starts_with(deed))) else {
            continue;
        };
        let line = format!("'{}/crabtalk-nexus' explain {}", folder.display(), entry.n);
        let said = env.shell(&line).await.ok();
        let deed = did.lines().next().unwrap();
        for part in ["because: ", &format!("#{} ", entry.n), deed] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let is_known = said.contains("seen in: ") || said.contains("because: ADMIN");
        // What no agent told is due by time or by figures, which it says.
        assert!(is_known || entry.cause.is_none(), "{said}");
    }
}

/// Each thing that was done stands in the log with what it was done for, and
/// keys with what was seen.
fn accounts_for_all(log: &[Entry]) {
    for entry in log {
        assert!(!entry.why.is_empty(), "{entry:?}");
        let keys = entry.did.iter().any(|did| {
            ["allow ", "deny ", "one Enter"]
                .iter()
                .any(|key| did.starts_with(key))
        });
        let of_admin = entry.why.starts_with("ADMIN");
        assert!(!keys || of_admin || entry.evidence.is_some(), "{entry:?}");
    }
    let numbers: Vec<u64> = log.iter().map(|entry| entry.n).collect();
    assert!(
        numbers.is_sorted_by(|a, b| a < b),
        "each entry has a number of its own"
    );
}
