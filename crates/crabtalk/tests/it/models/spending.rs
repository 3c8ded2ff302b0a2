//! Budgets and spending.

use super::say;
use crate::rig::{ModelServer, TestEnv, end_of, stream_to_end};
use crabtalk_proto::{Client, SendMsg};
use crabtalk_testkit::scripted::{Reply, Script, openai};
use serde_json::json;

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
    // The budget applies to every sender, even after a crash.
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
