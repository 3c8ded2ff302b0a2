//! Rollouts of codex: events and items, each with a `payload`.

use super::{Record, text, texts, tool};
use serde_json::Value;

pub(super) fn read(line: &Value, found: &mut Vec<Record>) {
    let payload = &line["payload"];
    let kind = payload["type"].as_str().unwrap_or_default();
    match (line["type"].as_str().unwrap_or_default(), kind) {
        ("session_meta", _) => found.push(Record::Head {
            session: text(&payload["id"]),
            folder: text(&payload["cwd"]),
        }),
        ("event_msg", "task_started") => {
            found.push(Record::Began);
            window(&payload["model_context_window"], found);
        }
        ("event_msg", "task_complete") => {
            let error = &payload["error"];
            let said = error.as_str().or_else(|| error["message"].as_str());
            let error = said
                .map(str::to_owned)
                .or_else(|| (!error.is_null()).then(|| error.to_string()));
            found.push(Record::Ended {
                error,
                output: payload["last_agent_message"].as_str().map(str::to_owned),
                name: "task_complete",
            });
        }
        ("event_msg", "turn_aborted") => found.push(Record::Ended {
            error: Some("cancelled".into()),
            output: None,
            name: "turn_aborted",
        }),
        ("event_msg", "token_count") => {
            let info = &payload["info"];
            let last = &info["last_token_usage"]["total_tokens"];
            found.push(Record::Usage {
                tokens: last.as_u64(),
                window: info["model_context_window"].as_u64(),
            });
        }
        ("event_msg", "user_message") => found.push(Record::User(text(&payload["message"]))),
        ("event_msg", "item_completed") => item(&payload["item"], found),
        ("response_item", "function_call" | "custom_tool_call" | "local_shell_call") => {
            call(payload, found);
        }
        ("response_item", kind) if kind.ends_with("_output") => found.push(Record::Result {
            id: text(&payload["call_id"]),
        }),
        ("compacted", _) => found.push(Record::Compacted),
        _ => {}
    }
}

fn window(value: &Value, found: &mut Vec<Record>) {
    if let Some(window) = value.as_u64() {
        found.push(Record::Usage {
            tokens: None,
            window: Some(window),
        });
    }
}

/// Reads messages of the person and the agent; items of the model repeat them among
/// instructions.
fn item(item: &Value, found: &mut Vec<Record>) {
    let said = || {
        texts(
            &item["content"],
            &["text", "Text", "input_text", "output_text"],
        )
    };
    match item["type"].as_str().unwrap_or_default() {
        "UserMessage" => found.push(Record::User(said())),
        "AgentMessage" => found.push(Record::Text(said())),
        _ => {}
    }
}

fn call(payload: &Value, found: &mut Vec<Record>) {
    let arguments = payload["arguments"]
        .as_str()
        .or_else(|| payload["input"].as_str());
    let arguments = match arguments {
        Some(arguments) => serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into()),
        None => payload["action"].clone(),
    };
    let name = payload["name"].as_str().unwrap_or("local_shell");
    let (tool, subject) = tool(name, &arguments);
    found.push(Record::Call {
        id: text(&payload["call_id"]),
        tool,
        subject,
    });
}
