//! The components of this repository, called by agents of a real daemon, and killed.

use super::program;
use crate::rig::{Daemon, TestEnv, chunks, eventually, stream_to_end};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{Client, ListComponentsMsg, StreamMsg, ToolResultEvent};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Child;

const PAGE: &str =
    "<html><head><title>Zoo</title></head><body><p>A zebra lives here.</p></body></html>";

/// Serves one page to every request.
async fn page(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut asked = [0; 4096];
        let _ = stream.read(&mut asked).await;
        let said = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{PAGE}",
            PAGE.len()
        );
        let _ = stream.write_all(said.as_bytes()).await;
    }
}

/// A component's service, in the foreground.
fn serve(env: &TestEnv, program: &PathBuf, arguments: &[&str]) -> Child {
    let mut command = env.program(program);
    command
        .args(arguments)
        .arg("serve")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

async fn connected(env: &TestEnv, name: &str) -> u32 {
    eventually(&format!("{name} to be connected"), async || {
        let mut connection = env.connect().await;
        let listed = connection.list_components(ListComponentsMsg {}).await;
        let all = listed.unwrap().components;
        let one = all.into_iter().find(|one| one.name == name)?;
        (one.state == "connected").then_some(one.connected)
    })
    .await
}

async fn run(env: &TestEnv, content: String) -> (Vec<ToolResultEvent>, String) {
    let request = StreamMsg {
        content,
        ..StreamMsg::default()
    };
    let events = stream_to_end(env, request).await;
    let said = chunks(&events);
    let results = events.into_iter().filter_map(|event| match event.event {
        Some(Event::ToolResult(result)) => Some(result),
        _ => None,
    });
    (results.collect(), said)
}

async fn call(env: &TestEnv, tool: &str, arguments: Value) -> ToolResultEvent {
    let (mut results, said) = run(env, format!("/tool {tool} {arguments}")).await;
    assert_eq!(results.len(), 1, "{said}");
    results.remove(0)
}

/// A home with an agent that needs no approvals, and the components' configuration.
async fn zoo() -> (TestEnv, Daemon) {
    let env = TestEnv::new();
    env.agent("crab", "permissions: { \"*__*\": allow }");
    env.write(".crabtalk/config/fetch.toml", "allow = [\"127.0.0.1\"]\n");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/rig/mcp_server.py");
    let starts = env.root().join("starts");
    env.write(
        ".crabtalk/config/mcpd.toml",
        &format!(
            "[server.files]\ncommand = \"python3\"\nargs = [\"{script}\", \"stdio\"]\nenv = {{ START = \"{}\" }}\n",
            starts.display()
        ),
    );
    env.write("notes/zoo.md", "The zebra crosses the road.\n");
    let daemon = env.daemon().await;
    (env, daemon)
}

#[tokio::test]
async fn bundled_components_serve_agents_and_outlive_the_daemon() {
    let test = "bundled_components_serve_agents_and_outlive_the_daemon";
    let names = [
        "crabtalk-search",
        "crabtalk-fetch",
        "crabtalk-mcpd",
        "examples/dice",
    ];
    let Some(programs) = names
        .map(|name| program(test, name))
        .into_iter()
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    if !crate::rig::has_tools(test, &["python3"]) {
        return;
    }
    let (env, daemon) = zoo().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut pages = tokio::task::JoinSet::new();
    pages.spawn(page(listener));
    let mut add = env.program(&programs[0]);
    let added = add
        .arg("add")
        .arg(env.user_home.join("notes"))
        .output()
        .await;
    assert!(added.unwrap().status.success());
    let mut children = vec![
        serve(&env, &programs[0], &[]),
        serve(&env, &programs[1], &[]),
        serve(&env, &programs[2], &["files"]),
        serve(&env, &programs[3], &[]),
    ];
    let calls = [
        (
            "search",
            "search__search",
            json!({"words": "zebra road"}),
            "zoo.md",
        ),
        (
            "fetch",
            "fetch__fetch",
            json!({"url": url}),
            "A zebra lives here.",
        ),
        ("files", "files__echo", json!({"text": "hello"}), "hello"),
        ("dice", "dice__roll", json!({"sides": 1}), "1"),
    ];
    for (name, tool, arguments, holds) in &calls {
        connected(&env, name).await;
        let answer = call(&env, tool, arguments.clone()).await;
        assert!(
            !answer.is_error && answer.output.contains(holds),
            "{tool}: {answer:?}"
        );
    }
    // Components are not children of the daemon: killing it leaves them running.
    daemon.kill().await;
    let _daemon = env.daemon().await;
    for (name, tool, arguments, holds) in &calls {
        connected(&env, name).await;
        let answer = call(&env, tool, arguments.clone()).await;
        assert!(answer.output.contains(holds), "{tool}: {answer:?}");
    }
    for child in &mut children {
        assert!(
            child.try_wait().unwrap().is_none(),
            "it was there before the daemon"
        );
    }
}
