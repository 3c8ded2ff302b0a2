//! Components: found by their port files, and missed when they die.

use super::{Component, allowing, call, comes_to_be, components, result, tool};
use crate::rig::{TestEnv, eventually, has_tools, stream_to_end, within};
use crabtalk_proto::{AgentEventKind, AgentEventMsg, Client, Ping, SubscribeEvents};
use futures_util::{Stream, StreamExt};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;

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

fn everything() -> SubscribeEvents {
    SubscribeEvents {
        after: Some(0),
        ..SubscribeEvents::default()
    }
}

#[tokio::test]
async fn restarted_component_restores_its_tools_on_a_new_port() {
    if !has_tools("components", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    let _daemon = env.daemon().await;
    let mut watcher = env.connect().await;
    let mut events = std::pin::pin!(watcher.subscribe_events(everything()));
    let begins = within("the subscription", events.next()).await;
    assert!(begins.is_some());
    let component = Component::start(&env, "search");
    let first = comes_to_be(&env, "search", "connected").await;
    let told = news(&mut events, "search is connected").await;
    let told = told.component.unwrap();
    assert_eq!(
        (told.name.as_str(), told.state.as_str()),
        ("search", "connected")
    );
    assert!(told.tool_count > 10);
    assert_eq!(
        call(&env, "search__echo", json!({"text": "a"}))
            .await
            .output,
        "a"
    );

    // Calls in flight at its death are answered, and the run continues.
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
    news(&mut events, "search has gone").await;
    let gone = comes_to_be(&env, "search", "failed").await;
    assert_eq!(gone.tool_count, 0);
    let absent = call(&env, "search__echo", json!({"text": "b"})).await;
    assert!(absent.output.contains("there is no tool"), "{absent:?}");

    let _again = Component::start(&env, "search");
    let second = comes_to_be(&env, "search", "connected").await;
    assert_ne!(first.port, second.port);
    assert_eq!(second.connected, 2);
    assert_eq!(
        call(&env, "search__echo", json!({"text": "c"}))
            .await
            .output,
        "c"
    );
}

/// It says that it was started anew, at the same port: what is in flight belonged to
/// another one.
#[tokio::test]
async fn another_instance_at_the_same_port_ends_what_is_in_flight() {
    if !has_tools("another_instance_at_the_same_port", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    let _daemon = env.daemon().await;
    let _component = Component::start(&env, "search");
    let first = comes_to_be(&env, "search", "connected").await;
    let call_it = stream_to_end(&env, tool("search__slow", json!({"ms": 600_000})));
    let change_it = async {
        eventually("the call", async || {
            let all = components(&env).await;
            all.iter().any(|known| known.calls > 0).then_some(())
        })
        .await;
        let text = format!("{}\nanother\n", first.port);
        env.write(".crabtalk/run/.tmp-search", &text);
        let run = env.home.join("run");
        std::fs::rename(run.join(".tmp-search"), run.join("search.port")).unwrap();
    };
    let (answered, ()) = within("the answer", async { tokio::join!(call_it, change_it) }).await;
    assert!(result(&answered).is_error, "{answered:?}");
    let second = eventually("the other one", async || {
        let now = comes_to_be(&env, "search", "connected").await;
        (now.instance == "another").then_some(now)
    })
    .await;
    assert_eq!((second.port, second.connected), (first.port, 2));
    let echoed = call(&env, "search__echo", json!({"text": "c"})).await;
    assert_eq!(echoed.output, "c");
}

/// Whatever lies in the folder delays and breaks nothing, and is named.
#[tokio::test]
async fn stale_and_hostile_port_files_are_named_and_harm_nobody() {
    if !has_tools("port files", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    let run = env.home.join("run");
    fs::create_dir_all(&run).unwrap();
    let dead = crabtalk_testkit::ports::Closed::new();
    // One that takes connections and says nothing, and one that talks nonsense.
    let hangs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nonsense = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let talks = nonsense.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in nonsense.incoming().flatten() {
            use std::io::{Read, Write};
            let mut stream = stream;
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\nnonsense!");
        }
    });
    fs::write(run.join("stale.port"), dead.address().port().to_string()).unwrap();
    fs::write(run.join("garbage.port"), "not a port").unwrap();
    fs::write(run.join("huge.port"), "1".repeat(1 << 20)).unwrap();
    fs::write(
        run.join("silent.port"),
        hangs.local_addr().unwrap().port().to_string(),
    )
    .unwrap();
    fs::write(run.join("talker.port"), talks.to_string()).unwrap();
    fs::write(run.join("odd__name.port"), talks.to_string()).unwrap();
    fs::write(run.join(".tmpx"), "123").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, run.join("pipe.port"), 0o600.into()).unwrap();
    fs::write(run.join("closed.port"), talks.to_string()).unwrap();
    fs::set_permissions(run.join("closed.port"), fs::Permissions::from_mode(0o000)).unwrap();
    let _good = Component::start(&env, "good");

    let daemon = env.daemon().await;
    env.connect().await.ping(Ping {}).await.unwrap();
    comes_to_be(&env, "good", "connected").await;
    assert_eq!(
        call(&env, "good__echo", json!({"text": "fine"}))
            .await
            .output,
        "fine"
    );
    let why = |name: &'static str| {
        let env = &env;
        async move {
            eventually(name, async || {
                let all = components(env).await;
                let found = all.into_iter().find(|known| known.name == name)?;
                (!found.error.is_empty()).then_some(found.error)
            })
            .await
        }
    };
    assert!(why("stale").await.contains("connection refused"));
    assert!(why("garbage").await.contains("not a port"));
    assert!(why("huge").await.contains("larger than") || why("huge").await.contains("256"));
    assert!(why("pipe").await.contains("pipe.port"));
    assert!(why("odd__name").await.contains("__"));
    let talker = why("talker").await;
    assert!(talker.contains("nonsense"), "{talker}");
    let log = daemon.stderr();
    for name in ["stale", "garbage", "huge", "pipe", "odd__name", "talker"] {
        assert!(log.contains(name), "{name} is not named in {log}");
    }
}

#[tokio::test]
async fn configuration_overrides_port_file_of_same_name() {
    if !has_tools("shadowed", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    allowing(&env);
    env.config(&super::program("search", ""));
    let _component = Component::start(&env, "search");
    let _daemon = env.daemon().await;
    let shadowed = comes_to_be(&env, "search", "shadowed").await;
    assert!(shadowed.shadowed && shadowed.port > 0);
    let all = components(&env).await;
    let configured = all.iter().find(|known| !known.shadowed).unwrap();
    assert_eq!(
        (configured.source.as_str(), configured.transport.as_str()),
        ("config", "stdio")
    );
    assert_eq!(
        call(&env, "search__echo", json!({"text": "x"}))
            .await
            .output,
        "x"
    );
}

#[tokio::test]
async fn hung_server_is_reported_and_fails_fast_until_it_answers() {
    if !has_tools("hanging", &["python3"]) {
        return;
    }
    let mut env = TestEnv::new();
    env.set("CRABTALK_MCP_PING_MS", "1000");
    allowing(&env);
    let component = Component::start(&env, "search");
    let _daemon = env.daemon().await;
    comes_to_be(&env, "search", "connected").await;
    component.signal(Signal::STOP);
    comes_to_be(&env, "search", "hanging").await;
    let failed = call(&env, "search__echo", json!({"text": "x"})).await;
    assert!(
        failed.is_error && failed.output.contains("hangs"),
        "{failed:?}"
    );
    component.signal(Signal::CONT);
    eventually("an answer", async || {
        let answered = call(&env, "search__echo", json!({"text": "x"})).await;
        (answered.output == "x").then_some(())
    })
    .await;
}
