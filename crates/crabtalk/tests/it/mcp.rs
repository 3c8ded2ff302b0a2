//! Components and MCP servers, through the whole program (COMP-1 to COMP-3).

mod components;
mod everything;
mod gate;
mod import;
mod login;
mod memory;
mod programs;
mod protocol;

use crate::rig::{TestEnv, eventually, stream_to_end, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{
    Client, ComponentInfo, ListComponentsMsg, ReplyToAsk, StreamEvent, StreamMsg, ToolResultEvent,
};
use futures_util::StreamExt;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::Child;

/// The test server's script.
fn server() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/rig/mcp_server.py");
    PathBuf::from(path).display().to_string()
}

/// The table `[mcp.NAME]` of a program.
fn program(name: &str, more: &str) -> String {
    format!(
        "[mcp.{name}]\ncommand = \"python3\"\nargs = [\"{}\", \"stdio\"]\n{more}\n",
        server()
    )
}

/// Allows the agent all tools of servers.
fn allowing(env: &TestEnv) {
    env.agent("crab", "permissions: { \"*__*\": allow }");
}

fn say(content: impl Into<String>) -> StreamMsg {
    StreamMsg {
        content: content.into(),
        ..StreamMsg::default()
    }
}

fn tool(name: &str, arguments: Value) -> StreamMsg {
    say(format!("/tool {name} {arguments}"))
}

/// Calls a tool through an agent.
async fn call(env: &TestEnv, name: &str, arguments: Value) -> ToolResultEvent {
    result(&stream_to_end(env, tool(name, arguments)).await)
}

/// Runs a message and declines every ask.
async fn declining(env: &TestEnv, request: StreamMsg) -> Vec<StreamEvent> {
    let mut connection = env.connect().await;
    let mut events = std::pin::pin!(connection.stream(request));
    let mut seen = Vec::new();
    while let Some(event) = within("an event", events.next()).await {
        let event = event.unwrap();
        if let Some(Event::AskUser(ask)) = &event.event {
            let reply = ReplyToAsk {
                ask_id: Some(ask.ask_id.clone()),
                content: "Decline".into(),
                ..ReplyToAsk::default()
            };
            env.connect().await.reply_to_ask(reply).await.unwrap();
        }
        seen.push(event);
    }
    seen
}

#[track_caller]
fn result(events: &[StreamEvent]) -> ToolResultEvent {
    let results = events.iter().filter_map(|event| match &event.event {
        Some(Event::ToolResult(result)) => Some(result.clone()),
        _ => None,
    });
    let mut results: Vec<_> = results.collect();
    assert_eq!(results.len(), 1, "{events:?}");
    results.pop().unwrap()
}

/// A component that announces itself in the home.
struct Component(Child);

impl Component {
    fn start(env: &TestEnv, name: &str) -> Self {
        let run = env.home.join("run");
        std::fs::create_dir_all(&run).unwrap();
        let port = run.join(format!("{name}.port"));
        let mut command = env.program("python3");
        command
            .arg(server())
            .args(["http", port.to_str().unwrap()])
            .stderr(Stdio::inherit());
        Self(command.spawn().unwrap())
    }

    /// Sends SIGKILL, which leaves the port file.
    async fn kill(mut self) {
        // `setsid` executes the server, so this is its process.
        self.0.kill().await.unwrap();
    }
}

async fn components(env: &TestEnv) -> Vec<ComponentInfo> {
    let listed = env
        .connect()
        .await
        .list_components(ListComponentsMsg {})
        .await;
    listed.unwrap().components
}

/// Waits until a server has this state.
async fn comes_to_be(env: &TestEnv, name: &str, state: &str) -> ComponentInfo {
    eventually(&format!("{name} to be {state}"), async || {
        let all = components(env).await;
        all.into_iter()
            .find(|known| known.name == name && known.state == state)
    })
    .await
}

/// Processes that run the test server.
fn running(marker: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            let line = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let state = stat.rsplit_once(") ").map_or("", |(_, state)| state);
            !line.is_empty()
                && String::from_utf8_lossy(&line).contains(marker)
                && !state.starts_with('X')
        })
        .count()
}
