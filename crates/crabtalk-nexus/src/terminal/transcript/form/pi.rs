//! Sessions of pi: messages with roles; an answer contains its stop reason.

use super::{Record, answer, text, texts};
use serde_json::Value;

pub(super) fn read(line: &Value, found: &mut Vec<Record>) {
    match line["type"].as_str().unwrap_or_default() {
        "session" => found.push(Record::Head {
            session: text(&line["id"]),
            folder: text(&line["cwd"]),
        }),
        "compaction" => found.push(Record::Compacted),
        "message" => message(&line["message"], found),
        _ => {}
    }
}

fn message(message: &Value, found: &mut Vec<Record>) {
    match message["role"].as_str().unwrap_or_default() {
        "user" => found.push(Record::User(texts(&message["content"], &["text"]))),
        "toolResult" => found.push(Record::Result {
            id: text(&message["toolCallId"]),
        }),
        "assistant" => {
            answer(message, ("toolCall", "arguments"), found);
            let usage = &message["usage"];
            found.push(Record::Usage {
                tokens: usage["totalTokens"].as_u64(),
                window: usage["contextWindow"].as_u64(),
            });
            ended(message, found);
        }
        _ => {}
    }
}

fn ended(message: &Value, found: &mut Vec<Record>) {
    let error = match message["stopReason"].as_str().unwrap_or_default() {
        "toolUse" | "" => return,
        "error" => Some(match message["errorMessage"].as_str() {
            Some(said) => said.to_owned(),
            None => "the model failed".to_owned(),
        }),
        "aborted" => Some("cancelled".to_owned()),
        _ => None,
    };
    found.push(Record::Ended {
        error,
        output: None,
        name: "stopReason",
    });
}
