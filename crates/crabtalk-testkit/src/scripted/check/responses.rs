//! Checks for requests of the Responses API.

use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn problems(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if body["model"].as_str().is_none_or(str::is_empty) {
        found.push("no model".into());
    }
    let items = body["input"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if items.is_empty() {
        found.push("no input".into());
    }
    let mut open = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str().unwrap_or("message") {
            "function_call" => drop(open.insert(id)),
            "function_call_output" if !open.remove(id) => {
                found.push(format!("item {at}: output of no call {id:?}"));
            }
            "message" if item["content"].is_null() => {
                found.push(format!("item {at}: no content"));
            }
            _ => {}
        }
    }
    for id in open {
        found.push(format!("call {id:?} has no output"));
    }
    found
}
