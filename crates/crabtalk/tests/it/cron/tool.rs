//! Agents that create entries for themselves.

use super::{create, fired, listed, yearly};
use crate::rig::{TestEnv, chunks, stream_to_end};
use crabtalk_proto::StreamMsg;

async fn said(env: &TestEnv, agent: &str, arguments: &str) -> String {
    let request = StreamMsg {
        agent: agent.into(),
        content: format!("/tool schedule {arguments}"),
        ..StreamMsg::default()
    };
    chunks(&stream_to_end(env, request).await)
}

#[tokio::test]
async fn schedule_tool_must_be_named_in_the_scope() {
    let env = TestEnv::new();
    env.agent("planner", "tools: [schedule]");
    env.agent("glob", "tools: [\"*\"]");
    let _daemon = env.daemon().await;
    let add = "{\"action\":\"add\",\"when\":\"in 20m\",\"prompt\":\"go on\"}";
    for agent in ["crab", "glob"] {
        let answer = said(&env, agent, add).await;
        assert!(answer.contains("outside the scope"), "{answer}");
    }
    let answer = said(&env, "planner", add).await;
    assert!(answer.contains("entry 1, next"), "{answer}");
    let made = listed(&env).await.remove(0);
    assert!(made.by_agent && made.once, "{made:?}");
    assert_eq!(
        (made.agent.as_str(), made.sender.as_str(), made.by.as_str()),
        ("planner", "user", "user")
    );
    let list = env.run(&["cron"]).await.ok();
    assert!(list.contains("planner (its own)"), "{list}");
    let soon = said(
        &env,
        "planner",
        "{\"action\":\"add\",\"when\":\"in 5s\",\"prompt\":\"x\"}",
    )
    .await;
    assert!(soon.contains("a minute ahead at least"), "{soon}");
    // Entries of others cannot be removed.
    let other = create(&env, yearly("mine")).await.id;
    let removed = said(
        &env,
        "planner",
        &format!("{{\"action\":\"remove\",\"id\":{other}}}"),
    )
    .await;
    assert!(removed.contains("entry 2 is not yours"), "{removed}");
    let removed = said(&env, "planner", "{\"action\":\"remove\",\"id\":1}").await;
    assert!(removed.contains("entry 1 is removed"), "{removed}");
    assert_eq!(listed(&env).await.len(), 1);
}

#[tokio::test]
async fn entries_of_an_agent_and_chains_are_bounded() {
    let env = TestEnv::new();
    env.agent("planner", "tools: [schedule]");
    env.config("[cron]\nper_agent = 3\n[limits]\nchain_depth = 2\n");
    let _daemon = env.daemon().await;
    let add = "{\"action\":\"add\",\"when\":\"@daily\",\"prompt\":\"go on\"}";
    for _ in 0..3 {
        said(&env, "planner", add).await;
    }
    let more = said(&env, "planner", add).await;
    assert!(more.contains("the limit ([cron] per_agent)"), "{more}");
    assert_eq!(listed(&env).await.len(), 3);
    for id in 1..=3 {
        env.run(&["cron", "rm", &id.to_string()]).await;
    }
    // Each run creates the next entry; the depth of the chain is counted.
    let again = "{\\\"action\\\":\\\"add\\\",\\\"when\\\":\\\"@daily\\\",\\\"prompt\\\":\\\"x\\\"}";
    let nested =
        format!("{{\"action\":\"add\",\"when\":\"@daily\",\"prompt\":\"/tool schedule {again}\"}}");
    said(&env, "planner", &nested).await;
    let first = listed(&env).await.remove(0).id;
    assert_eq!(fired(&env, first).await.outcome, "ok");
    let second = listed(&env).await.pop().unwrap();
    assert_eq!(second.content, "x");
    let file = std::fs::read_to_string(super::crons_file(&env)).unwrap();
    assert!(file.contains("chain = 1"), "{file}");
}
