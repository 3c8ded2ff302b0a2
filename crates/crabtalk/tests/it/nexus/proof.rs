//! An agent that does not say who it is: its turn is ended by a key, and it is asked
//! again.

use super::player::{DUMB, Player};
use super::supervised::Team;
use crate::rig::{TestEnv, eventually, has_tools};
use crate::team::Server as Tmux;
use crabtalk_nexus::agent::State;
use crabtalk_nexus::journal;
use crabtalk_nexus::world::{Answer, Command, Entry, TaskState};
use crabtalk_testkit::fake_agent;

/// Times are those of a slow machine at a hundred times its pace.
const TEAM: &str = "[times]\nbootstrap_secs = 1500\nreflection_secs = 360000\n";

#[tokio::test]
async fn who_does_not_prove_its_identity_is_cancelled_and_asked_again() {
    let test = "who_does_not_prove_its_identity";
    if !has_tools(test, &["git", "tmux"]) {
        return;
    }
    let env = TestEnv::new();
    let player = Player::new(env.root().join("t1"));
    std::fs::write(env.root().join("t1").join(DUMB), "").unwrap();
    let _tmux = Tmux(env.root().join("tmux"));
    let fake: toml::Table = fake_agent::KIND.parse().unwrap();
    let kinds = toml::Table::from_iter([("fake".to_owned(), fake.into())]);
    let kinds = toml::Table::from_iter([("kind".to_owned(), toml::Value::Table(kinds))]);
    let config = format!(
        "{TEAM}[tmux]\nsocket = {:?}\n{}{}",
        env.root().join("tmux"),
        player.section("T1"),
        toml::to_string(&kinds).unwrap()
    );
    let mut team = Team::new(&env, &config);
    team.start().await;
    let text = "@T1 [WORK]: work".to_owned();
    team.say(Command::AddTask { text }).await;
    eventually("a task that is done by who proved who it is", async || {
        let tasks = team.tasks().await;
        matches!(tasks[0].1.state, TaskState::Done { .. }).then_some(())
    })
    .await;
    let Answer::Status { agents, .. } = team.say(Command::Status).await else {
        panic!("a status");
    };
    assert_ne!(agents[0].state, State::Failed);
    let mut log: Vec<Entry> = Vec::new();
    journal::entries(&team.places().state(), |entry| log.push(entry)).unwrap();
    let did = |part: &str| {
        let did = log.iter().flat_map(|entry| &entry.did);
        did.filter(|did| did.contains(part)).count()
    };
    let (_, escapes) = player.pressed();
    assert_eq!(escapes, 1, "the turn was ended by one key: {log:#?}");
    assert_eq!(did("cancel its turn"), 1);
    let heard = player.heard();
    let count = |part: &str| heard.iter().filter(|text| text.contains(part)).count();
    assert_eq!(
        (count("[BOOTSTRAP]"), count("[WORK]")),
        (2, 1),
        "{heard:#?}"
    );
    let why = log
        .iter()
        .find(|entry| entry.did.iter().any(|did| did == "cancel its turn"));
    assert_eq!(why.map(|entry| entry.why.as_str()), Some("the time is up"));
}
