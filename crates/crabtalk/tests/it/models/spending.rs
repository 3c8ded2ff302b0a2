//! Budgets, and what was spent.

use super::say;
use crate::rig::{ModelServer, TestEnv, end_of, stream_to_end};
use crabtalk_proto::{Client, GetStats, SendMsg};
use crabtalk_testkit::scripted::{Reply, Script, openai};
use serde_json::json;
use std::fs;

/// An answer that costs 12 tokens.
fn answer() -> Reply {
    Reply::events([
        openai::delta(&json!({"content": "hi"})),
        openai::finish("stop"),
        openai::usage(10, 2, 4),
        "[DONE]".to_owned(),
    ])
}

async fn env(server: &ModelServer) -> TestEnv {
    let env = TestEnv::new();
    env.config(&format!(
        "model = \"one\"\n[provider.a]\nkind = \"openai\"\nbase_url = \"{}\"\napi_key = \"k\"\n\
         models = [{{ name = \"one\", price = {{ input = 1000000.0, output = 2000000.0 }} }}]\n",
        server.url()
    ));
    env
}

#[tokio::test]
async fn spent_budget_refuses_calls_after_a_restart() {
    let server = ModelServer::start(Script::openai([answer()]).repeating()).await;
    let env = env(&server).await;
    env.agent("crab", "budget: { tokens_per_day: 20 }");
    env.agent("rich", "description: no limit");
    let daemon = env.daemon().await;
    for _ in 0..2 {
        let events = stream_to_end(&env, say("crab", "user", "hello")).await;
        assert_eq!(end_of(&events).code, 0);
    }
    let refused = |text: &str| {
        assert!(
            text.starts_with(
                "the agent crab has used or reserved 24 tokens today, and its budget \
                 (budget.tokens_per_day) is 20; it opens again at 20"
            ) && text.contains(" 00:00 (in "),
            "{text}"
        );
    };
    let end = end_of(&stream_to_end(&env, say("crab", "user", "more")).await);
    assert_eq!(end.code, 402);
    refused(&end.error);
    // For every sender, also after a crash.
    daemon.kill().await;
    let _daemon = env.daemon().await;
    let request = SendMsg {
        agent: "crab".into(),
        content: "more".into(),
        sender: Some("tg:1".into()),
        ..SendMsg::default()
    };
    let error = env.connect().await.send(request).await.unwrap_err();
    assert_eq!(error.code(), Some(402));
    assert_eq!(server.requests().await.len(), 2);
    let events = stream_to_end(&env, say("rich", "user", "hello")).await;
    assert_eq!(end_of(&events).code, 0);

    env.agent("crab", "budget: { tokens_per_day: 30 }");
    env.run(&["daemon", "reload"]).await.ok();
    let events = stream_to_end(&env, say("crab", "user", "more")).await;
    assert_eq!(end_of(&events).code, 0);
}

#[tokio::test]
async fn stats_keep_the_cost_of_a_run_after_a_crash() {
    let tool = openai::tools("c", &[("bash", json!({"command": "true"}))]);
    let free = [openai::text("free")];
    let server = ModelServer::start(Script::openai([tool, answer(), answer(), answer()])).await;
    let other = ModelServer::start(Script::openai(free)).await;
    let env = env(&server).await;
    let config = fs::read_to_string(env.home.join("config/config.toml")).unwrap();
    env.config(&format!(
        "{config}[provider.b]\nkind = \"openai\"\nbase_url = \"{}\"\napi_key = \"k\"\n\
         models = [\"two\"]\n",
        other.url()
    ));
    env.agent("crab", "permissions: { bash: allow }");
    env.agent("free", "model: two");
    let daemon = env.daemon().await;
    let run = async |agent: &str| end_of(&stream_to_end(&env, say(agent, "user", "hello")).await);
    let two_calls = run("crab").await;
    let one_call = run("crab").await;
    let unpriced = run("free").await;
    let sent = SendMsg {
        agent: "crab".into(),
        content: "hello".into(),
        ..SendMsg::default()
    };
    let sent = env.connect().await.send(sent).await.unwrap();
    // 10 read at 1 each, 2 written at 2 each.
    assert_eq!((one_call.money, one_call.unpriced_tokens), (Some(14.0), 0));
    assert_eq!((sent.money, sent.unpriced_tokens), (Some(14.0), 0));
    assert!(two_calls.money > one_call.money, "{two_calls:?}");
    assert_eq!(unpriced.money, None);
    let used = unpriced.usage.unwrap().total_tokens;
    assert_eq!(unpriced.unpriced_tokens, u64::from(used));

    let runs = async || {
        let stats = env.connect().await.get_stats(GetStats { days: 2 }).await;
        let rows = stats.unwrap().spending.into_iter();
        rows.filter(|row| row.by == "run").collect::<Vec<_>>()
    };
    let before = runs().await;
    let told: Vec<_> = before
        .iter()
        .map(|row| (row.agent.as_str(), row.run, row.code, row.calls, row.money))
        .collect();
    let first = two_calls.money.unwrap();
    assert_eq!(
        told,
        [
            ("crab", 3, 0, 1, 14.0),
            ("free", 1, 0, 1, 0.0),
            ("crab", 2, 0, 1, 14.0),
            ("crab", 1, 0, 2, first)
        ]
    );
    assert_eq!(before[1].unpriced_tokens, unpriced.unpriced_tokens);
    daemon.kill().await;
    let _daemon = env.daemon().await;
    assert_eq!(runs().await, before);
    let table = env.run(&["stats", "--by", "run"]).await.ok();
    let row = table.lines().nth(1).unwrap();
    assert!(row.starts_with("20") && row.contains("14.0000"), "{table}");
}
