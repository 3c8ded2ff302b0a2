//! Chats of gemini: typed messages. They do not record the end of a turn; a
//! hook reports it.

use super::{Record, call_of, said, text, texts};
use serde_json::Value;

pub(super) fn read(line: &Value, found: &mut Vec<Record>) {
    if let Some(session) = line["sessionId"].as_str() {
        found.push(Record::Head {
            session: session.to_owned(),
            folder: String::new(),
        });
    }
    match line["type"].as_str().unwrap_or_default() {
        "user" => found.push(Record::User(texts(&line["content"], &["text"]))),
        "gemini" => {
            said(&line["content"], found);
            for call in line["toolCalls"].as_array().into_iter().flatten() {
                found.push(call_of(call, "args"));
                if !call["result"].is_null() {
                    found.push(Record::Result {
                        id: text(&call["id"]),
                    });
                }
            }
            found.push(Record::Usage {
                tokens: line["tokens"]["total"].as_u64(),
                window: None,
            });
        }
        _ => {}
    }
}
