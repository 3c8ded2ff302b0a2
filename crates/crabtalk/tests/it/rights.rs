//! The gate and the sandbox with a real agent (GATE, RUN-9).

mod asks;
mod commands;
mod delegation;
mod disguises;
mod first_session;
mod sandbox;
mod shown;

use crate::rig::{TestEnv, stream_to_end};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{StreamEvent, StreamMsg, ToolResultEvent};
use serde_json::Value;

/// A message of the owner, in the work folder.
fn say(env: &TestEnv, content: impl Into<String>) -> StreamMsg {
    StreamMsg {
        content: content.into(),
        cwd: Some(env.work.display().to_string()),
        ..StreamMsg::default()
    }
}

/// The message that makes the offline model call a tool.
fn tool(name: &str, arguments: &Value) -> String {
    format!("/tool {name} {arguments}")
}

/// The results of a run, in order of arrival.
fn results(events: &[StreamEvent]) -> Vec<ToolResultEvent> {
    let results = events.iter().filter_map(|event| match &event.event {
        Some(Event::ToolResult(result)) => Some(result.clone()),
        _ => None,
    });
    results.collect()
}

/// Makes the offline model call one tool; returns its result.
async fn call(env: &TestEnv, name: &str, arguments: Value) -> ToolResultEvent {
    let events = stream_to_end(env, say(env, tool(name, &arguments))).await;
    results(&events)
        .pop()
        .unwrap_or_else(|| panic!("no result: {events:?}"))
}
