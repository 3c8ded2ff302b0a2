//! Budgets, and what was spent.

use super::say;
use crate::rig::{ModelServer, TestEnv, end_of, stream_to_end};
use crabtalk_proto::{Client, GetStats, SendMsg};
use crabtalk_testkit::scripted::{Reply, Script, openai};
use serde_json::{Value, json};
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
async fn a_spent_budget_stops_before_the_next_call_also_after_a_restart() {
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
    // Whoever the sender, and after a crash too.
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
async fn a_run_says_what_it_cost_and_stats_say_the_same_after_a_crash() {
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

#[tokio::test]
async fn ask_says_what_the_answer_cost() {
    let server = ModelServer::start(Script::openai([answer()])).await;
    let env = env(&server).await;
    let _daemon = env.daemon().await;
    let asked = env.run(&["ask", "hello"]).await;
    assert!(
        asked
            .stderr
            .ends_with("a/one: 10 tokens read, 2 written, $14.0000\n"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn stats_tell_what_was_spent_over_restarts() {
    let server = ModelServer::start(Script::openai([answer()]).repeating()).await;
    let env = env(&server).await;
    env.agent("crab", "budget: { money_per_day: 100 }");
    env.agent("rich", "description: no limit");
    let daemon = env.daemon().await;
    for (agent, sender) in [("crab", "user"), ("crab", "tg:1"), ("rich", "user")] {
        stream_to_end(&env, say(agent, sender, "hello")).await;
    }
    let told = async || {
        let mut connection = env.connect().await;
        let stats = connection.get_stats(GetStats { days: 7 }).await.unwrap();
        assert_eq!(stats.tokens_today, 36);
        assert!(stats.money_today > 0.0);
        stats.spending
    };
    let before = told().await;
    let rows = |by: &str| before.iter().filter(|row| row.by == by).count();
    assert_eq!(
        (
            rows("day"),
            rows("agent"),
            rows("model"),
            rows("conversation"),
            rows("run")
        ),
        (1, 2, 1, 3, 3)
    );
    let crab = before
        .iter()
        .find(|row| row.by == "agent" && row.agent == "crab");
    let crab = crab.unwrap();
    assert_eq!(
        (crab.calls, crab.prompt_tokens, crab.completion_tokens),
        (2, 20, 4)
    );
    assert_eq!((crab.cache_hit_tokens, crab.unpriced_tokens), (8, 0));
    assert_eq!(crab.money_per_day, Some(100.0));
    assert_eq!(crab.tokens_per_day, None);
    daemon.kill().await;
    let _daemon = env.daemon().await;
    assert_eq!(told().await, before);

    let all: Value = serde_json::from_str(&env.run(&["stats", "--json"]).await.ok()).unwrap();
    assert_eq!(all["tokens_today"], 36);
    let by = env.run(&["stats", "--by", "conversation"]).await.ok();
    assert!(by.contains("\ncrab   tg:1    1      10 "), "{by}");
}

#[tokio::test]
async fn a_run_whose_first_call_failed_is_told_too() {
    let server = ModelServer::start(Script::openai([
        Reply::error(400, "invalid_request_error", "no such thing"),
        answer(),
    ]))
    .await;
    let env = env(&server).await;
    let daemon = env.daemon().await;
    for code in [502, 0] {
        let end = end_of(&stream_to_end(&env, say("crab", "user", "hello")).await);
        assert_eq!(end.code, code, "{end:?}");
    }
    daemon.kill().await;
    let _daemon = env.daemon().await;
    let stats = GetStats { days: 1 };
    let stats = env.connect().await.get_stats(stats).await.unwrap();
    let runs = stats.spending.iter().filter(|row| row.by == "run");
    let runs: Vec<_> = runs.map(|row| (row.run, row.code, row.calls)).collect();
    assert_eq!(runs, [(2, 0, 1), (1, 502, 0)]);
}
