//! A day of a team in a minute: tasks, messages, prompts, a hang, a crash,
//! compressions, and a supervisor that is killed again and again.

use super::double::{Line, lines};
use super::speaker::Speaker;
use super::supervised::Team;
use crate::rig::{TestEnv, has_tools, within};
use crabtalk_client::{Client, Endpoint, GetHistoryMsg, HistoryEntry};
use crabtalk_nexus::agent::State;
use crabtalk_nexus::journal;
use crabtalk_nexus::name::Name;
use crabtalk_nexus::world::{Answer, Command, Entry, TaskState};
use std::collections::BTreeMap;
use std::time::Duration;

/// Three of the daemon, three doubles. Times are those of a slow machine at a
/// hundred times its pace.
const TEAM: &str = "compress = \"auto\"\n\
    [times]\nbootstrap_secs = 6000\nreadiness_secs = 6000\nreflection_secs = 36000\n\
    silent_secs = 1200\n\
    [rules]\nallow = [\"bash(echo *)\"]\ndeny = [\"bash(rm *)\"]\n\
    [agent.D1]\nagent = \"crab\"\napprove = \"all\"\n[agent.D2]\n[agent.D3]\n\
    [agent.T1]\n[agent.T2]\n[agent.T3]\n";

const TASKS: usize = 40;

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
        9 | 13 | 18 => "prompt echo well".into(),
        17 | 21 => "prompt rm -rf nothing".into(),
        2 => "prompt touch asked".into(),
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

/// ADMIN's part: approves what waits, and starts what is stuck again.
async fn look_after(team: &Team<'_>) -> (bool, String) {
    let Answer::Status { agents, .. } = team.say(Command::Status).await else {
        panic!("a status");
    };
    for agent in &agents {
        if agent.waits.is_some() {
            let (agent, prompt) = (agent.name.clone(), None);
            team.say(Command::Approve { agent, prompt }).await;
        } else if agent.state == State::Stuck {
            let agent = agent.name.clone();
            team.say(Command::Restart { agent }).await;
        }
    }
    let quiet = agents
        .iter()
        .all(|a| a.state == State::Idle && a.queue == 0);
    let seen: Vec<String> = agents
        .iter()
        .map(|a| format!("{} {} {} {}", a.name, a.state, a.queue, a.note))
        .collect();
    (quiet, seen.join("\n"))
}

async fn until(team: &Team<'_>, count: usize) {
    let mut seen = String::new();
    for _ in 0..2000 {
        let (quiet, now) = look_after(team).await;
        seen = now;
        if done(team).await >= count && (count < TASKS || quiet) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!(
        "{} of {count} tasks:\n{seen}\n{}",
        done(team).await,
        team.log()
    );
}

#[tokio::test]
async fn a_scripted_day_does_each_task_once_though_nexus_is_killed_five_times() {
    if !has_tools("a day of a team", &["git"]) {
        return;
    }
    let speaker = Speaker::start().await;
    let env = TestEnv::new();
    env.config(&speaker.config());
    for agent in ["d2", "d3"] {
        env.agent(agent, "description: one of a team");
    }
    let _daemon = env.daemon().await;
    let mut team = Team::new(&env, TEAM);
    team.start().await;
    for number in 0..TASKS {
        let text = task(number);
        let added = team.say(Command::AddTask { text }).await;
        assert!(matches!(added, Answer::Done { .. }), "{added:?}");
    }
    for (agent, force) in [("t3", false), ("d1", false)] {
        let agent = name(agent);
        team.say(Command::Compress { agent, force }).await;
    }
    for count in [4, 11, 18, 25, 32] {
        until(&team, count).await;
        team.kill().await;
        team.start().await;
    }
    until(&team, TASKS).await;
    check(&env, &team).await;
}

async fn check(env: &TestEnv, team: &Team<'_>) {
    let mut messages = Vec::new();
    let mut pressed = Vec::new();
    let mut compressed = 0;
    for agent in ["T1", "T2", "T3"] {
        let path = env.home.join(format!("transcripts/{agent}.jsonl"));
        for line in lines(&path) {
            match line {
                Line::User { text, .. } => messages.push(text),
                Line::Pressed { id, .. } => pressed.push(id),
                Line::Compressed { .. } => compressed += 1,
                Line::Died { .. } => {}
            }
        }
    }
    let client = Client::new(Endpoint::of_home(&env.home), "e2e/1");
    for agent in ["crab", "d2", "d3"] {
        let page = client.call(GetHistoryMsg {
            agent: agent.into(),
            sender: "user/nexus".into(),
            before: None,
            limit: 1000,
        });
        let page = within("a history", page).await.unwrap();
        // By their place in the log: what a compression keeps is in both.
        let mut users = BTreeMap::new();
        let mut take = |entries: Vec<HistoryEntry>| {
            let of_user = entries.into_iter().filter(|entry| entry.role == "user");
            users.extend(of_user.map(|entry| (entry.index, entry.content)));
        };
        take(page.entries);
        // What was put away by compression is in archives.
        let archives = client.call(crabtalk_client::ListArchivesMsg {
            agent: agent.into(),
            sender: "user/nexus".into(),
        });
        for archive in within("archives", archives).await.unwrap().archives {
            let content = client.call(crabtalk_client::GetArchiveMsg {
                agent: agent.into(),
                sender: "user/nexus".into(),
                index: archive.index,
                before: None,
                limit: 1000,
            });
            let content = within("an archive", content).await.unwrap();
            compressed += 1;
            take(content.entries);
        }
        messages.extend(users.into_values());
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
    assert!(compressed >= 2, "two were compressed: {compressed}");
    let mut log: Vec<Entry> = Vec::new();
    journal::entries(&team.places().state(), |entry| log.push(entry)).unwrap();
    accounts_for_all(&log, &pressed);
    assert!(
        log.iter().any(|entry| entry.to == Some(State::Stuck)),
        "one hung"
    );
    assert!(
        log.iter().any(|entry| entry.why.contains("signal 11")),
        "one crashed"
    );
}

/// Each thing that was done stands in the log with what it was done for, and
/// keys with what was seen.
fn accounts_for_all(log: &[Entry], pressed: &[String]) {
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
    for id in pressed {
        let press = |entry: &&Entry| {
            entry.did.iter().any(|did| {
                (did.starts_with("allow ") || did.starts_with("deny ")) && did.contains(id)
            })
        };
        assert!(log.iter().any(|entry| press(&entry)), "{id}");
    }
    let numbers: Vec<u64> = log.iter().map(|entry| entry.n).collect();
    assert!(
        numbers.is_sorted_by(|a, b| a < b),
        "each entry has a number of its own"
    );
}
