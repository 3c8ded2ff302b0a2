//! Budgets under load, and after a crash.

use crate::rig::{ModelServer, TestEnv, end_of, eventually, stream_to_end};
use crabtalk_proto::{Client, GetStats, StreamMsg};
use crabtalk_testkit::scripted::{Reply, Script, openai};
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::json;
use tokio::task::JoinSet;

const TOKENS_PER_DAY: u64 = 10_000;

fn with_budget(server: &ModelServer) -> TestEnv {
    let env = TestEnv::with_model(server);
    env.agent(
        "crab",
        &format!("budget: {{ tokens_per_day: {TOKENS_PER_DAY} }}"),
    );
    env
}

fn say(sender: &str) -> StreamMsg {
    StreamMsg {
        content: "hello".into(),
        sender: Some(sender.into()),
        ..StreamMsg::default()
    }
}

async fn tokens_today(env: &TestEnv) -> u64 {
    let stats = env.connect().await.get_stats(GetStats { days: 1 }).await;
    stats.unwrap().tokens_today
}

#[tokio::test]
async fn simultaneous_runs_stay_under_the_budget() {
    let answer = Reply::events([
        openai::delta(&json!({"content": "hi"})),
        openai::finish("stop"),
        openai::usage(100, 1900, 0),
        "[DONE]".to_owned(),
    ]);
    let server = ModelServer::start(Script::openai([answer]).repeating()).await;
    let env = with_budget(&server);
    let _daemon = env.daemon().await;
    let runs = (0..60).map(async |n| {
        let events = stream_to_end(&env, say(&format!("tg:{n}"))).await;
        end_of(&events).code
    });
    let codes = join_all(runs).await;
    let answered = codes.iter().filter(|code| **code == 0).count();
    assert!(answered > 0, "{codes:?}");
    assert!(
        codes.iter().all(|code| [0, 402].contains(code)),
        "{codes:?}"
    );
    let used = tokens_today(&env).await;
    assert_eq!(used, 2000 * answered as u64);
    assert!(used <= TOKENS_PER_DAY, "{used}");
}

#[tokio::test]
async fn call_cut_off_by_a_crash_counts_by_its_estimate() {
    let hanging = openai::pieces(&["one", "two"]).stall_after(1);
    let server = ModelServer::start(Script::openai([hanging]).repeating()).await;
    let env = with_budget(&server);
    let daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let mut events = JoinSet::new();
    events.spawn(async move { connection.stream(say("user")).count().await });
    eventually("the model call", async || {
        (!server.requests().await.is_empty()).then_some(())
    })
    .await;
    daemon.kill().await;
    events.join_all().await;
    let _daemon = env.daemon().await;
    // 2,048 tokens of answer and the prompt.
    let used = tokens_today(&env).await;
    assert!((2049..TOKENS_PER_DAY).contains(&used), "{used}");
}
