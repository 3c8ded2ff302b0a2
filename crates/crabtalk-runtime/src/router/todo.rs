//! `todo`: an agent's plan as a list that people see.
//!
//! Invariant: the last valid call in the history contains the list, which is stored
//! nowhere else.

use crabtalk_domain::tool::{ToolOutput, ToolSpec};
use crabtalk_domain::{Message, Permission};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

pub(super) const NAME: &str = "todo";

/// Maximum items of a list: more than a person follows on a screen.
const MAX_ITEMS: usize = 50;

/// Maximum characters of an item: two lines of a terminal.
const MAX_ITEM_CHARS: usize = 200;

static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: NAME.into(),
        description:
            "Show the user your plan for work of three or more steps. Send the whole list \
                      when you plan, and again whenever an item begins or is done."
                .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "maxItems": MAX_ITEMS,
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string", "maxLength": MAX_ITEM_CHARS},
                            "status": {"enum": ["pending", "in_progress", "done"]}
                        },
                        "required": ["text", "status"]
                    }
                }
            },
            "required": ["items"]
        })
        .into(),
        default_permission: Permission::Allow,
    })
});

pub(super) fn spec() -> Arc<ToolSpec> {
    Arc::clone(&SPEC)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Pending,
    InProgress,
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    text: String,
    status: Status,
}

/// Validates a list; the call itself is its storage.
pub(super) fn call(arguments: &Value) -> ToolOutput {
    match items(arguments) {
        Ok(items) if items.is_empty() => ToolOutput::ok("the list is empty"),
        Ok(items) => {
            let done = items.iter().filter(|item| item.status == Status::Done);
            ToolOutput::ok(format!("{} of {} done", done.count(), items.len()))
        }
        Err(error) => ToolOutput::error(format!("{error}; the list is unchanged")),
    }
}

fn items(arguments: &Value) -> Result<Vec<Item>, String> {
    let Some(list) = arguments["items"].as_array() else {
        return Err("give the whole list under \"items\", an array".into());
    };
    if list.len() > MAX_ITEMS {
        return Err(format!(
            "{} items are too many: merge some, the limit is {MAX_ITEMS}",
            list.len()
        ));
    }
    let numbered = list.iter().zip(1..);
    numbered
        .map(|(value, number)| item(value, number))
        .collect()
}

fn item(value: &Value, number: usize) -> Result<Item, String> {
    let text = value["text"].as_str().unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.chars().count() {
        0 => return Err(format!("item {number} needs a \"text\"")),
        chars if chars > MAX_ITEM_CHARS => {
            return Err(format!(
                "the text of item {number} has {chars} characters: shorten it to {MAX_ITEM_CHARS}"
            ));
        }
        _ => {}
    }
    let status = match value["status"].as_str() {
        None if value["status"].is_null() => Status::Pending,
        Some("pending") => Status::Pending,
        Some("in_progress") => Status::InProgress,
        Some("done") => Status::Done,
        _ => {
            return Err(format!(
                "the status of item {number} is {}: use pending, in_progress or done",
                value["status"]
            ));
        }
    };
    Ok(Item { text, status })
}

/// Formats the list; empty if every item is done.
fn lines(items: &[Item]) -> String {
    let mut text = String::new();
    if items.iter().all(|item| item.status == Status::Done) {
        return text;
    }
    for item in items {
        let mark = match item.status {
            Status::Pending => ' ',
            Status::InProgress => '>',
            Status::Done => 'x',
        };
        let _ = write!(text, "\n[{mark}] {}", item.text);
    }
    text
}

/// The last list of a history, formatted; empty if every item is done, `None` without
/// a call.
pub(crate) fn last_list(history: &[Arc<Message>]) -> Option<String> {
    let mut calls = history
        .iter()
        .rev()
        .flat_map(|message| message.tool_calls.iter().rev());
    calls.find_map(|call| {
        let arguments = (call.name == NAME).then_some(call.arguments.as_str())?;
        let items = items(&serde_json::from_str(arguments).ok()?).ok()?;
        Some(lines(&items))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::ToolCall;

    #[test]
    fn lists_are_checked_item_by_item() {
        let long = "x".repeat(MAX_ITEM_CHARS + 1);
        let item = |text: &str, status: Value| json!({"items": [{"text": text, "status": status}]});
        for (arguments, want) in [
            (item("a", json!("done")), Ok("1 of 1 done")),
            (item(" a\n b ", json!("in_progress")), Ok("0 of 1 done")),
            (item("a", Value::Null), Ok("0 of 1 done")),
            (json!({"items": []}), Ok("the list is empty")),
            (json!({}), Err("under \"items\"")),
            (json!({"items": "a"}), Err("under \"items\"")),
            (json!({"items": ["a"]}), Err("item 1 needs a \"text\"")),
            (item(" ", json!("done")), Err("item 1 needs a \"text\"")),
            (item(&long, json!("done")), Err("has 201 characters")),
            (
                item("a", json!("over")),
                Err("use pending, in_progress or done"),
            ),
            (item("a", json!(3)), Err("use pending, in_progress or done")),
            (
                json!({"items": vec![json!({"text": "a"}); MAX_ITEMS + 1]}),
                Err("51 items are too many"),
            ),
        ] {
            let output = call(&arguments);
            match want {
                Ok(want) => assert_eq!((&*output.content, output.is_error), (want, false)),
                Err(want) => {
                    assert!(output.is_error, "{arguments}");
                    assert!(output.content.contains(want), "{}", output.content);
                    assert!(output.content.ends_with("the list is unchanged"));
                }
            }
        }
    }

    #[test]
    fn last_valid_call_is_the_list() {
        let called = |arguments: Value| {
            let mut message = Message::assistant("");
            message.tool_calls.push(ToolCall {
                id: "1".into(),
                name: NAME.into(),
                arguments: arguments.to_string(),
            });
            Arc::new(message)
        };
        let first = called(json!({"items": [
            {"text": "a", "status": "done"}, {"text": "b", "status": "in_progress"}, {"text": "c"},
        ]}));
        let invalid = called(json!({"items": 1}));
        let done = called(json!({"items": [{"text": "a", "status": "done"}]}));
        let want = "\n[x] a\n[>] b\n[ ] c".to_owned();
        assert_eq!(last_list(&[]), None);
        assert_eq!(last_list(&[first.clone(), invalid]), Some(want));
        assert_eq!(last_list(&[first, done]), Some(String::new()));
    }
}
