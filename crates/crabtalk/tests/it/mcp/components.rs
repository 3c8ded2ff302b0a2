//! Components that port files announce.

use super::{Component, allowing, call, comes_to_be, components, result, tool};
use crate::rig::{TestEnv, eventually, has_tools, stream_to_end, within};
use crabtalk_proto::{AgentEventKind, AgentEventMsg, Client, SubscribeEvents};
use futures_util::{Stream, StreamExt};
use serde_json::json;
use std::fs;

async fn news<S, E>(events: &mut S, said: &str) -> AgentEventMsg
where
    S: Stream<Item = Result<AgentEventMsg, E>> + Unpin,
    E: std::fmt::Debug,
{
    within(said, async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            if event.kind() == AgentEventKind::Component && event.content.contains(said) {
                return event;
            }
        }
    })
    .await
}

#[tokio::test]
async fn restarted_component_restores_its_tools_on_a_new_port() {
    if !has_tools(
        "restarted_component_restores_its_tools_on_a_new_port",
        &["python3"],
    ) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    let _daemon = env.daemon().await;
    let mut watcher = env.connect().await;
    let mut events = std::pin::pin!(watcher.subscribe_events(SubscribeEvents {
        after: Some(0),
        ..SubscribeEvents::default()
    }));
    let begins = within("the subscription", events.next()).await;
    assert!(begins.is_some());
    let component = Component::start(&env, "search");
    let first = comes_to_be(&env, "search", "connected").await;
    assert_eq!(
        (first.source.as_str(), first.owner.as_str()),
        ("port file", "this user")
    );
    assert_eq!(first.instance, first.pid.to_string());
    let told = news(&mut events, "search is connected").await;
    assert!(told.component.unwrap().tool_count > 10);
    let echo = async |text: &str| call(&env, "search__echo", json!({ "text": text })).await;
    assert_eq!(echo("a").await.output, "a");

    // Calls in flight at the kill fail, and the run continues.
    let call_it = stream_to_end(&env, tool("search__slow", json!({"ms": 60_000})));
    let kill_it = async {
        eventually("the call", async || {
            let all = components(&env).await;
            all.iter().any(|known| known.calls > 0).then_some(())
        })
        .await;
        component.kill().await;
    };
    let (answered, ()) = within("the answer", async { tokio::join!(call_it, kill_it) }).await;
    let answered = result(&answered);
    assert!(answered.is_error, "{answered:?}");
    news(&mut events, "search disconnected").await;
    let gone = comes_to_be(&env, "search", "failed").await;
    assert_eq!(gone.tool_count, 0);
    assert!(echo("b").await.is_error);

    let _again = Component::start(&env, "search");
    let second = comes_to_be(&env, "search", "connected").await;
    assert_ne!(first.port, second.port);
    assert_eq!(second.connected, 2);
    assert_eq!(echo("c").await.output, "c");
}

#[tokio::test]
async fn invalid_port_files_are_named_and_delay_nothing() {
    if !has_tools(
        "invalid_port_files_are_named_and_delay_nothing",
        &["python3"],
    ) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    let run = env.home.join("run");
    fs::create_dir_all(&run).unwrap();
    let dead = crabtalk_testkit::ports::Closed::new();
    let port = dead.address().port().to_string();
    for (name, text) in [
        ("stale", port.as_str()),
        ("garbage", "not a port"),
        ("odd__name", "1"),
    ] {
        fs::write(run.join(format!("{name}.port")), text).unwrap();
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, run.join("pipe.port"), 0o600.into()).unwrap();
    let _good = Component::start(&env, "good");
    let daemon = env.daemon().await;
    comes_to_be(&env, "good", "connected").await;
    let echo = call(&env, "good__echo", json!({"text": "fine"})).await;
    assert_eq!(echo.output, "fine");
    for name in ["stale", "garbage", "odd__name", "pipe"] {
        comes_to_be(&env, name, "failed").await;
        let log = daemon.stderr();
        assert!(log.contains(name), "{name} is not named in {log}");
    }
}
