//! Chats of gemini: messages of a type. None of them says that a turn ended; a
//! hook does.

use super::{Record, text, texts, tool};
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
            let said = texts(&line["content"], &["text"]);
            if !said.is_empty() {
                found.push(Record::Text(said));
            }
            for call in line["toolCalls"].as_array().into_iter().flatten() {
                let name = call["name"].as_str().unwrap_or_default();
                let (tool, subject) = tool(name, &call["args"]);
                found.push(Record::Call {
                    id: text(&call["id"]),
                    tool,
                    subject,
                });
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
