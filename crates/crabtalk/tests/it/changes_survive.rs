//! Acknowledged changes of the configuration survive running commands and a crash.

use crate::rig::{ModelServer, TestEnv, entries, eventually};
use crabtalk_proto::{Client, StreamMsg};
use crabtalk_testkit::scripted::{Script, openai};
use futures_util::StreamExt;
use rustix::process::Signal;
use std::fs;

/// Lists all objects that change in this test.
async fn listed(env: &TestEnv) -> String {
    let mut text = String::new();
    for words in [
        &["tokens", "--json"][..],
        &["subscriptions", "--json"],
        &["cron", "--json"],
        &["approvals", "--json"],
        &["agents", "--json"],
        &["providers", "--json"],
    ] {
        text.push_str(&env.run(words).await.ok());
    }
    text
}

/// Adds one object of each kind, and removes another one.
async fn change(env: &TestEnv) {
    for words in [
        &["tokens", "add", "kept"][..],
        &["tokens", "add", "gone", "--role", "admin"],
        &["tokens", "rm", "gone"],
        &["subscriptions", "add", "build:*"],
        &["cron", "add", "@weekly", "tidy up"],
        &["cron", "add", "@daily", "taken back"],
        &["cron", "rm", "2"],
        &["providers", "rm", "removed"],
    ] {
        env.run(words).await.ok();
    }
    let provider = Some("kind = \"openai\"\nmodels = [\"added-model\"]\n");
    env.run_with(&["providers", "set", "added", "--file", "-"], provider)
        .await
        .ok();
    let agent = Some("---\ndescription: new\n---\nYou review.\n");
    env.run_with(&["agents", "new", "rev", "--file", "-"], agent)
        .await
        .ok();
    let asking = env.run(&[
        "ask",
        "--wait",
        "--no-stdin",
        "/tool bash {\"command\":\"true\"}",
    ]);
    let approving = async {
        eventually("an approval", async || {
            let approved = env.run(&["approve", "--always"]).await;
            (approved.code == Some(0)).then_some(())
        })
        .await;
    };
    let (asked, ()) = tokio::join!(asking, approving);
    asked.ok();
}

#[tokio::test]
async fn changes_survive_running_commands_and_a_crash() {
    let env = TestEnv::new();
    env.agent("runner", "mode: full");
    env.config(
        "model = \"offline\"\n[provider.demo]\nkind = \"offline\"\nmodels = [\"offline\"]\n\
         [provider.removed]\nkind = \"openai\"\nmodels = [\"removed-model\"]\n",
    );
    let daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let request = StreamMsg {
        agent: "runner".into(),
        content: "/tool bash {\"command\":\"touch began; sleep 1000\"}".into(),
        cwd: Some(env.work.display().to_string()),
        ..StreamMsg::default()
    };
    let mut running = tokio::task::JoinSet::new();
    running.spawn(async move { connection.stream(request).count().await });
    let began = env.work.join("began");
    eventually("the command", async || began.exists().then_some(())).await;

    change(&env).await;
    let before = listed(&env).await;
    assert!(
        before.contains("kept") && !before.contains("gone"),
        "{before}"
    );
    assert!(
        before.contains("added-model") && !before.contains("removed-model"),
        "{before}"
    );
    daemon.crash(Signal::KILL).await;
    drop(running);
    let _daemon = env.daemon().await;
    assert_eq!(listed(&env).await, before);
    assert!(!fs::exists(env.home.join("state/held")).unwrap());
}

#[tokio::test]
async fn once_subscription_fires_once_despite_a_crash() {
    let hanging = openai::pieces(&["one", "two"]).stall_after(1);
    let model = ModelServer::start(Script::openai([hanging])).await;
    let env = TestEnv::with_model(&model);
    let daemon = env.daemon().await;
    env.run(&["subscriptions", "add", "build:*", "--once"])
        .await
        .ok();
    let publish = async |payload: &str| {
        env.run(&["publish", "--no-stdin", "build:failed", payload])
            .await
            .ok()
    };
    publish("main is red").await;
    eventually("the model call", async || {
        (model.requests().await.len() == 1).then_some(())
    })
    .await;
    eventually("the subscription to go", async || {
        let listed = env.run(&["subscriptions", "--json"]).await.ok();
        (!listed.contains("build:")).then_some(())
    })
    .await;
    daemon.kill().await;
    let _daemon = env.daemon().await;
    publish("main is red again").await;
    let history = entries(&env, "crab", "event:build:failed").await;
    let told = history.iter().filter(|entry| entry.content.contains("red"));
    assert_eq!(told.count(), 1, "{history:?}");
}
