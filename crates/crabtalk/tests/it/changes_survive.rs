//! Acknowledged changes of the configuration survive commands that run beside
//! them, and a crash.

use crate::rig::{TestEnv, eventually};
use crabtalk_proto::{Client, StreamMsg};
use futures_util::StreamExt;
use rustix::process::Signal;
use std::fs;

/// What clients see of everything that changes here.
async fn listed(env: &TestEnv) -> String {
    let mut text = String::new();
    for words in [
        &["tokens", "--json"][..],
        &["subscriptions", "--json"],
        &["cron", "--json"],
        &["approvals", "--json"],
        &["agents", "--json"],
    ] {
        text.push_str(&env.run(words).await.ok());
    }
    text
}

/// Adds one of each, and takes a second one away again.
async fn change(env: &TestEnv) {
    for words in [
        &["tokens", "add", "kept"][..],
        &["tokens", "add", "gone", "--role", "admin"],
        &["tokens", "rm", "gone"],
        &["subscriptions", "add", "build:*"],
        &["cron", "add", "@weekly", "tidy up"],
        &["cron", "add", "@daily", "taken back"],
        &["cron", "rm", "2"],
    ] {
        env.run(words).await.ok();
    }
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
    daemon.crash(Signal::KILL).await;
    drop(running);
    let _daemon = env.daemon().await;
    assert_eq!(listed(&env).await, before);
    assert!(!fs::exists(env.home.join("state/held")).unwrap());
}
