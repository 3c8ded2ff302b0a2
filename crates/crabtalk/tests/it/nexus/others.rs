//! Runs of other clients in a conversation of the team.

use super::speaker::Speaker;
use super::supervised::{ONE, Team, of_one};
use crate::rig::{TestEnv, eventually, has_tools};
use crabtalk_client::{Client, Endpoint, Run, StreamMsg};
use crabtalk_nexus::agent::State;
use crabtalk_nexus::backend::Reply;
use crabtalk_nexus::name::Name;
use crabtalk_nexus::world::{AgentLine, Answer, Command};
use futures_util::StreamExt;

async fn line(team: &Team<'_>) -> AgentLine {
    let Answer::Status { mut agents, .. } = team.say(Command::Status).await else {
        panic!("a status");
    };
    agents.remove(0)
}

async fn is(team: &Team<'_>, state: State) -> AgentLine {
    eventually("a state of the agent", async || {
        let line = line(team).await;
        (line.state == state).then_some(line)
    })
    .await
}

/// Sends a message as another client of the owner in the conversation.
fn says(env: &TestEnv, topic: &str, text: &str) -> Run {
    let client = Client::new(Endpoint::of_home(&env.home), "other/1");
    client.stream(StreamMsg {
        agent: "d2".into(),
        sender: Some("user/nexus".into()),
        content: format!("@ADMIN → @D2 [{topic}]: {text}"),
        cwd: Some(env.work.display().to_string()),
        ..StreamMsg::default()
    })
}

async fn approve(team: &Team<'_>) {
    let approve = Command::Reply {
        agent: Name::new("d2").unwrap(),
        prompt: None,
        reply: Reply::Allow,
    };
    let answer = team.say(approve).await;
    assert!(matches!(answer, Answer::Done { .. }), "{answer:?}");
}

/// Follows a run to its end.
async fn follow(run: &mut Run) {
    while let Some(news) = run.next().await {
        news.unwrap();
    }
}

#[tokio::test]
async fn run_of_another_client_is_work_of_the_agent() {
    if !has_tools("a_run_that_somebody_else_begins", &["git"]) {
        return;
    }
    let speaker = Speaker::start().await;
    let env = of_one(&speaker);
    let _daemon = env.daemon().await;
    let mut team = Team::new(&env, ONE);
    team.start().await;
    is(&team, State::Idle).await;

    let mut run = says(&env, "HELLO", "prompt touch one");
    let looks_on = async {
        let asked = is(&team, State::Approval).await;
        assert!(
            asked
                .waits
                .is_some_and(|prompt| prompt.subject == "touch one")
        );
        approve(&team).await;
        is(&team, State::Idle).await
    };
    let ((), line) = tokio::join!(follow(&mut run), looks_on);
    assert_eq!(line.last, "→ ADMIN [HELLO] done");
    assert!(env.work.join("one").exists());

    // The next NEXUS is asked about an approval that opened while none was running.
    team.kill().await;
    let mut run = says(&env, "AGAIN", "prompt touch two");
    let looks_on = async {
        eventually("an ask", async || {
            let said = env.run(&["asks"]).await;
            said.stdout.contains("touch two").then_some(())
        })
        .await;
        team.start().await;
        is(&team, State::Approval).await;
        approve(&team).await;
        is(&team, State::Idle).await
    };
    let ((), line) = tokio::join!(follow(&mut run), looks_on);
    assert_eq!(line.last, "→ ADMIN [AGAIN] done");

    // NEXUS's own work continues, each message once.
    let text = "@D2 [OWN]: work".to_owned();
    team.say(Command::AddTask { text }).await;
    eventually("the task", async || {
        let tasks = team.tasks().await;
        let is_done = matches!(
            tasks[0].1.state,
            crabtalk_nexus::world::TaskState::Done { .. }
        );
        is_done.then_some(())
    })
    .await;
    let Answer::Inbox { letters } = team.say(Command::Inbox { keep: true }).await else {
        panic!("an inbox");
    };
    let of_agent = letters.iter().map(|(_, mail)| mail.line());
    let of_agent: Vec<String> = of_agent.filter(|line| line.starts_with("@D2")).collect();
    assert_eq!(of_agent.len(), 2, "{of_agent:#?}");
}

#[tokio::test]
async fn nexus_starts_a_missing_daemon_and_reloads_its_team() {
    if !has_tools("nexus_starts_a_daemon_that_is_away", &["git"]) {
        return;
    }
    let speaker = Speaker::start().await;
    let env = of_one(&speaker);
    let daemon = env.daemon().await;
    let mut team = Team::new(&env, ONE);
    team.finds_program = true;
    team.start().await;
    is(&team, State::Idle).await;
    daemon.kill().await;
    let client = Client::new(Endpoint::of_home(&env.home), "test/1");
    eventually("another daemon", async || {
        client.endpoint().is_listening().await.ok()?.then_some(())
    })
    .await;
    let text = "@D2 [OWN]: work".to_owned();
    team.say(Command::AddTask { text }).await;
    eventually("the task", async || {
        let tasks = team.tasks().await;
        let state = &tasks[0].1.state;
        matches!(state, crabtalk_nexus::world::TaskState::Done { .. }).then_some(())
    })
    .await;

    let file = env.home.join("config/nexus.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("lenient = true\n{config}[agent.D3]\n")).unwrap();
    let Answer::Done { said } = team.say(Command::Reload).await else {
        panic!("it is read");
    };
    assert!(said.contains("[agent.D3] needs a restart"), "{said}");
    std::fs::write(&file, "root = 7\n").unwrap();
    let Answer::Refused { why } = team.say(Command::Reload).await else {
        panic!("it is refused");
    };
    assert!(why.contains("nexus.toml"), "{why}");
    env.run(&["daemon", "stop"]).await;
}
