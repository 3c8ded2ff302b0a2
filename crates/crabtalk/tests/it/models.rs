//! Providers and models end to end.

mod changes;
mod coming;
mod spending;

use crate::rig::{ModelServer, TestEnv, stream_to_end};
use crabtalk_proto::StreamMsg;
use crabtalk_proto::stream_event::Event;
use crabtalk_testkit::scripted::{Script, openai};

fn say(agent: &str, sender: &str, content: &str) -> StreamMsg {
    StreamMsg {
        agent: agent.into(),
        sender: Some(sender.into()),
        content: content.into(),
        ..StreamMsg::default()
    }
}

/// A provider's table, with a key and without retries.
fn table(name: &str, server: &ModelServer, model: &str) -> String {
    let url = server.url();
    format!(
        "[provider.{name}]\nkind = \"openai\"\nbase_url = \"{url}\"\napi_key = \"sk-of-{name}\"\n\
         models = [\"{model}\"]\nmax_retries = 0\n"
    )
}

#[tokio::test]
async fn fallback_to_offline_is_reported_once() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let events = stream_to_end(&env, say("", "user", "hello")).await;
    let Some(Event::Start(start)) = &events[0].event else {
        panic!("{events:?}");
    };
    assert_eq!(start.model, "offline");
    assert!(
        start
            .notice
            .starts_with("no provider is configured: using the offline demonstration, because"),
        "{start:?}"
    );
    let second = env.run(&["ask", "and again"]).await;
    assert!(!second.stderr.contains("no provider"), "{second:?}");
    env.run(&["daemon", "reload"]).await.ok();
    let third = env.run(&["ask", "after a reload"]).await;
    assert!(!third.stderr.contains("no provider"), "{third:?}");

    let other = TestEnv::new();
    let _daemon = other.daemon().await;
    let first = other.run(&["ask", "hello"]).await;
    let said = "crabtalk: no provider is configured: using the offline demonstration";
    assert!(first.stderr.starts_with(said), "{first:?}");
    assert!(
        first.stderr.contains("crab answers with offline"),
        "{first:?}"
    );
}

#[tokio::test]
async fn model_flag_applies_to_one_command() {
    let answers = ["one", "two", "three"].map(openai::text);
    let model = ModelServer::start(Script::openai(answers)).await;
    let env = TestEnv::new();
    let url = model.url();
    env.config(&format!(
        "model = \"usual\"\n[provider.test]\nkind = \"openai\"\nbase_url = \"{url}\"\n\
         api_key = \"sk-test\"\nmodels = [\"usual\", \"dear\"]\n"
    ));
    let _daemon = env.daemon().await;
    env.run(&["ask", "hello"]).await.ok();
    let dear = env.run(&["--model", "dear", "ask", "hello"]).await;
    assert!(dear.stderr.contains("answers with dear"), "{dear:?}");
    env.run(&["ask", "hello"]).await.ok();
    let asked: Vec<_> = model.requests().await;
    let asked: Vec<_> = asked.iter().map(|body| body["model"].as_str()).collect();
    assert_eq!(asked, [Some("usual"), Some("dear"), Some("usual")]);
    let unknown = env.run(&["--model", "daer", "ask", "hello"]).await.fails(1);
    assert!(
        unknown.contains("usual") && unknown.contains("dear"),
        "{unknown}"
    );
    assert_eq!(model.requests().await.len(), 3, "no request was sent");
}
