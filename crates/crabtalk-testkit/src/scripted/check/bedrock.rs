//! Checks for requests that Bedrock would refuse.

use super::{is_image, too_many_images, tool_names, unanswered};
use serde_json::Value;
use std::collections::BTreeSet;

/// Maximum number of cache points in a request.
const MAX_POINTS: usize = 4;

/// Models with cache points in these tests.
const CACHING: [&str; 2] = ["anthropic.claude", "amazon.nova"];

pub(super) fn problems(path: &str, body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if !path.contains("/model/") || !path.ends_with("/converse-stream") || path.contains(':') {
        found.push(format!("{path} is no address of a model"));
    }
    let tools = body["toolConfig"]["tools"].as_array();
    let specs: Vec<Value> = tools
        .into_iter()
        .flatten()
        .filter(|tool| tool["toolSpec"].is_object())
        .cloned()
        .collect();
    let specs = Value::Array(specs);
    tool_names(&specs, |tool| &tool["toolSpec"]["name"], &mut found);
    let points = body.to_string().matches("\"cachePoint\"").count();
    let may_cache = CACHING.iter().any(|name| path.contains(name));
    if points > MAX_POINTS || points > 0 && !may_cache {
        found.push(format!("{points} cache points"));
    }
    too_many_images(body, "\"image\":{", &mut found);
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut ever: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let want = if at % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != want {
            found.push(format!("message {at}: role {}", message["role"]));
        }
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        if blocks.is_empty() {
            found.push(format!("message {at}: no blocks"));
        }
        let last = blocks
            .iter()
            .rfind(|block| !block["cachePoint"].is_object());
        if last.is_some_and(|block| block["reasoningContent"].is_object()) {
            found.push(format!(
                "message {at}: the final block of an assistant's message is reasoning"
            ));
        }
        let mut called = BTreeSet::new();
        for block in blocks {
            if let Some(id) = block["toolResult"]["toolUseId"].as_str() {
                if !open.remove(id) {
                    found.push(format!("message {at}: result {id:?} out of place"));
                }
            } else if let Some(id) = block["toolUse"]["toolUseId"].as_str() {
                if specs.as_array().is_none_or(Vec::is_empty) {
                    found.push(format!("message {at}: a call, but no tools"));
                }
                called.insert(id);
                if !ever.insert(id) {
                    found.push(format!("message {at}: call id {id:?} twice"));
                }
            }
            if is_bad(block) {
                found.push(format!("message {at}: a bad block {block}"));
            }
        }
        unanswered(&mut open, at, &mut found);
        open = called;
    }
    unanswered(&mut open, messages.len(), &mut found);
    if messages.len().is_multiple_of(2) {
        found.push("the last message is not the user's".into());
    }
    found
}

fn is_bad(block: &Value) -> bool {
    let has_words = |text: &Value| text.as_str().is_some_and(|text| !text.trim().is_empty());
    let is_id = |id: &Value| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        id.as_str()
            .is_some_and(|id| (1..=64).contains(&id.len()) && id.chars().all(allowed))
    };
    let Some((kind, inner)) = block.as_object().and_then(|fields| {
        let one = fields.len() == 1;
        fields.iter().next().filter(|_| one)
    }) else {
        return true;
    };
    let good = match kind.as_str() {
        "text" => has_words(inner),
        "cachePoint" => inner["type"] == "default",
        "toolUse" => is_id(&inner["toolUseId"]) && inner["input"].is_object(),
        "toolResult" => {
            let content = inner["content"].as_array().map_or(&[][..], Vec::as_slice);
            let good = |part: &Value| has_words(&part["text"]) || is_picture(&part["image"]);
            is_id(&inner["toolUseId"]) && !content.is_empty() && content.iter().all(good)
        }
        "image" => is_picture(inner),
        "reasoningContent" => {
            has_words(&inner["reasoningText"]["signature"]) || has_words(&inner["redactedContent"])
        }
        _ => false,
    };
    !good
}

fn is_picture(image: &Value) -> bool {
    let formats = ["png", "jpeg", "gif", "webp"];
    is_image(&image["format"], &image["source"]["bytes"], &formats)
}
