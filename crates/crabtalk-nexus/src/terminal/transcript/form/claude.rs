//! Projects of claude: typed lines with messages in the model's format.

use super::{Record, answer, text, texts};
use serde_json::Value;

pub(super) fn read(line: &Value, found: &mut Vec<Record>) {
    // Messages of subagents are not part of the conversation.
    if line["isSidechain"] == true || line["isMeta"] == true {
        return;
    }
    if let Some(session) = line["sessionId"].as_str() {
        found.push(Record::Head {
            session: session.to_owned(),
            folder: text(&line["cwd"]),
        });
    }
    let message = &line["message"];
    match line["type"].as_str().unwrap_or_default() {
        "user" => user(message, found),
        "assistant" => assistant(message, found),
        "system" if line["subtype"] == "compact_boundary" => found.push(Record::Compacted),
        "system" if line["subtype"] == "turn_duration" => found.push(Record::Ended {
            error: None,
            output: None,
            name: "turn_duration",
        }),
        _ => {}
    }
}

fn user(message: &Value, found: &mut Vec<Record>) {
    let mut results = 0;
    for block in message["content"].as_array().into_iter().flatten() {
        if block["type"] == "tool_result" {
            results += 1;
            found.push(Record::Result {
                id: text(&block["tool_use_id"]),
            });
        }
    }
    let said = texts(&message["content"], &["text"]);
    if said.starts_with("[Request interrupted by user") {
        found.push(Record::Ended {
            error: Some("cancelled".into()),
            output: None,
            name: "interrupted",
        });
    } else if results == 0 && !said.starts_with("<local-command") && !said.starts_with("<command-")
    {
        found.push(Record::User(said));
    }
}

fn assistant(message: &Value, found: &mut Vec<Record>) {
    answer(message, ("tool_use", "input"), found);
    let usage = &message["usage"];
    let of = |name: &str| usage[name].as_u64();
    if let Some(input) = of("input_tokens") {
        let cached = of("cache_read_input_tokens").unwrap_or(0);
        let written = of("cache_creation_input_tokens").unwrap_or(0);
        let output = of("output_tokens").unwrap_or(0);
        found.push(Record::Usage {
            tokens: Some(input + cached + written + output),
            window: None,
        });
    }
    if matches!(
        message["stop_reason"].as_str(),
        Some("end_turn" | "stop_sequence" | "max_tokens")
    ) {
        found.push(Record::Ended {
            error: None,
            output: None,
            name: "stop_reason",
        });
    }
}
