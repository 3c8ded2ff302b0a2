//! Conversation logs of this project: messages, and records of runs.

use super::{Record, text, texts, tool};
use serde_json::Value;

/// The code of a run that was cancelled.
const CANCELLED: u64 = 499;

pub(super) fn read(line: &Value, found: &mut Vec<Record>) {
    if let (Some(agent), Some(sender)) = (line["agent"].as_str(), line["created_by"].as_str()) {
        found.push(Record::Head {
            session: format!("{agent}/{sender}"),
            folder: String::new(),
        });
    }
    let run = &line["run"];
    match run["event"].as_str() {
        Some("start") => found.push(Record::Began),
        Some("end") => found.push(Record::Ended {
            error: match run["code"].as_u64() {
                None | Some(0) => None,
                Some(CANCELLED) => Some("cancelled".into()),
                Some(code) => Some(match run["error"].as_str() {
                    Some(error) => error.to_owned(),
                    None => format!("code {code}"),
                }),
            },
            output: None,
            name: "run end",
        }),
        _ => {}
    }
    if line["compact"].is_string() {
        found.push(Record::Compacted);
    }
    let said = texts(&line["content"], &["text"]);
    match line["role"].as_str().unwrap_or_default() {
        "user" if line["auto_injected"] != true => found.push(Record::User(said)),
        "assistant" => {
            if !said.is_empty() {
                found.push(Record::Text(said));
            }
            for call in line["tool_calls"].as_array().into_iter().flatten() {
                let arguments = call["arguments"].as_str().unwrap_or_default();
                let arguments =
                    serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into());
                let (tool, subject) = tool(call["name"].as_str().unwrap_or_default(), &arguments);
                found.push(Record::Call {
                    id: text(&call["id"]),
                    tool,
                    subject,
                });
            }
            let usage = &line["usage"];
            if let Some(prompt) = usage["prompt_tokens"].as_u64() {
                found.push(Record::Usage {
                    tokens: Some(prompt + usage["completion_tokens"].as_u64().unwrap_or(0)),
                    window: None,
                });
            }
        }
        "tool" => found.push(Record::Result {
            id: text(&line["tool_call_id"]),
        }),
        _ => {}
    }
}
