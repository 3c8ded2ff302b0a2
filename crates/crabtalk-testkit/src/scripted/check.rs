//! Reasons why a provider would refuse a request.

mod bedrock;
mod google;
mod responses;

use super::Format;
use serde_json::Value;
use std::collections::BTreeSet;

/// Maximum number of images in a request, as in Bedrock.
const MAX_IMAGES: usize = 20;

/// Maximum number of cache marks in a request, as in Anthropic's API.
const MAX_MARKS: usize = 4;

/// All problems of a request's body.
pub(super) fn problems(format: Format, path: &str, body: &Value) -> Vec<String> {
    if !body.is_object() {
        return vec!["the body is no JSON object".into()];
    }
    if path.ends_with("/responses") {
        return responses::problems(body);
    }
    match format {
        Format::OpenAi => common(body, openai),
        Format::Anthropic => common(body, anthropic),
        Format::Google => google::problems(path, body),
        Format::Bedrock => bedrock::problems(path, body),
    }
}

/// The checks that two formats share, followed by the format's own.
fn common(body: &Value, rest: impl Fn(&Value, &[Value], &mut Vec<String>)) -> Vec<String> {
    let mut found = Vec::new();
    if body["model"].as_str().is_none_or(str::is_empty) {
        found.push("no model".into());
    }
    if body["stream"] != true {
        found.push("no stream asked for".into());
    }
    let messages = body["messages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if messages.is_empty() {
        found.push("no messages".into());
    }
    rest(body, messages, &mut found);
    if let Some(framed) = messages.iter().position(is_framed_twice) {
        found.push(format!(
            "message {framed}: a <from> tag within a <from> tag"
        ));
    }
    found
}

/// Whether a text with guest framing was framed again.
fn is_framed_twice(message: &Value) -> bool {
    message["content"]
        .as_str()
        .is_some_and(|text| text.matches("<from agent=").count() > 1)
}

fn tool_names(tools: &Value, name: impl Fn(&Value) -> &Value, found: &mut Vec<String>) {
    let mut names = BTreeSet::new();
    for tool in tools.as_array().into_iter().flatten() {
        let name = name(tool).as_str().unwrap_or_default();
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
            found.push(format!("{name:?} is no name of a tool"));
        }
        if !names.insert(name) {
            found.push(format!("two tools named {name:?}"));
        }
    }
}

/// Whether data is the base64 of an image of one of these types.
fn is_image(media_type: &Value, data: &Value, types: &[&str]) -> bool {
    let known = media_type.as_str().is_some_and(|t| types.contains(&t));
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    known
        && data.as_str().is_some_and(|text| {
            !text.is_empty() && text.len().is_multiple_of(4) && text.chars().all(allowed)
        })
}

fn too_many_images(body: &Value, field: &str, found: &mut Vec<String>) {
    let images = body.to_string().matches(field).count();
    if images > MAX_IMAGES {
        found.push(format!("{images} images"));
    }
}

/// Whether content consists of texts and images, as allowed for a user.
fn is_shown(content: &Value) -> bool {
    let types = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let good = |part: &Value| match part["type"].as_str() {
        Some("text") => part["text"].as_str().is_some_and(|text| !text.is_empty()),
        Some("image_url") => {
            let url = part["image_url"]["url"].as_str().unwrap_or_default();
            let url = url.strip_prefix("data:");
            url.and_then(|url| url.split_once(";base64,"))
                .is_some_and(|(kind, data)| is_image(&kind.into(), &data.into(), &types))
        }
        _ => false,
    };
    content
        .as_array()
        .is_some_and(|parts| !parts.is_empty() && parts.iter().all(good))
}

fn openai(body: &Value, messages: &[Value], found: &mut Vec<String>) {
    tool_names(&body["tools"], |tool| &tool["function"]["name"], found);
    too_many_images(body, "\"image_url\":{", found);
    let is_strict = body["model"]
        .as_str()
        .is_some_and(|m| m.contains("mistral"));
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut ever: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let before = at.checked_sub(1).map(|before| &messages[before]["role"]);
        if is_strict && role == "user" && before.is_some_and(|before| before == "tool") {
            found.push(format!("message {at}: role user after role tool"));
        }
        if !["system", "user", "assistant", "tool"].contains(&role) {
            found.push(format!("message {at}: role {role:?}"));
        }
        let calls = message["tool_calls"].as_array();
        let is_user = role == "user" && is_shown(&message["content"]);
        if !message["content"].is_string() && !is_user && (calls.is_none() || role != "assistant") {
            found.push(format!("message {at}: no content"));
        }
        let says_nothing = message["content"].as_str().is_none_or(str::is_empty);
        if role == "assistant" && says_nothing && calls.is_none_or(Vec::is_empty) {
            // OpenAI accepts it; Mistral and others do not.
            found.push(format!("message {at}: neither content nor tool_calls"));
        }
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                found.push(format!("message {at}: result of no call {id:?}"));
            }
            continue;
        }
        unanswered(&mut open, at, found);
        for call in calls.into_iter().flatten() {
            let id = call["id"].as_str().unwrap_or_default();
            open.insert(id);
            if id.is_empty() || !ever.insert(id) {
                found.push(format!("message {at}: call id {id:?}"));
            }
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            let parsed = serde_json::from_str::<Value>(arguments);
            if !parsed.is_ok_and(|arguments| arguments.is_object()) {
                found.push(format!(
                    "message {at}: arguments {arguments:?} are no object"
                ));
            }
        }
    }
    unanswered(&mut open, messages.len(), found);
}

fn unanswered(open: &mut BTreeSet<&str>, at: usize, found: &mut Vec<String>) {
    for id in std::mem::take(open) {
        found.push(format!("message {at}: call {id:?} has no result"));
    }
}

/// The reasoning budget within the output limit.
fn budget(body: &Value, found: &mut Vec<String>) -> u64 {
    let most = body["max_tokens"].as_u64().unwrap_or(0);
    if most == 0 {
        found.push("no max_tokens".into());
    }
    let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or(0);
    if budget > 0 && (budget < 1024 || budget >= most) {
        found.push("budget_tokens must be 1024 or more and less than max_tokens".into());
    }
    budget
}

fn anthropic(body: &Value, messages: &[Value], found: &mut Vec<String>) {
    tool_names(&body["tools"], |tool| &tool["name"], found);
    too_many_images(body, "\"type\":\"image\"", found);
    let budget = budget(body, found);
    let marks = body.to_string().matches("\"cache_control\"").count();
    if marks > MAX_MARKS {
        found.push(format!("{marks} cache marks"));
    }
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut ever: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let want = if at % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != want {
            found.push(format!(
                "message {at}: role {} instead of {want}",
                message["role"]
            ));
        }
        let blocks = message["content"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if blocks.is_empty() {
            found.push(format!("message {at}: no blocks"));
        }
        if blocks.last().is_some_and(is_reasoning) {
            found.push(format!(
                "message {at}: the final block of an assistant's message is thinking"
            ));
        }
        let mut called = BTreeSet::new();
        let mut results_over = false;
        for block in blocks {
            match block["type"].as_str().unwrap_or_default() {
                "tool_result" => {
                    let id = block["tool_use_id"].as_str().unwrap_or_default();
                    if !open.remove(id) || results_over {
                        found.push(format!("message {at}: result {id:?} out of place"));
                    }
                    result_block(at, block, found);
                }
                "tool_use" => {
                    let id = block["id"].as_str().unwrap_or_default();
                    called.insert(id);
                    if !is_plain(id) || !ever.insert(id) || !block["input"].is_object() {
                        found.push(format!("message {at}: call {id:?} is wrong"));
                    }
                    if body["tools"].as_array().is_none_or(Vec::is_empty) {
                        found.push(format!("message {at}: a call, but no tools"));
                    }
                }
                kind => {
                    results_over = true;
                    other_block(at, kind, block, found);
                }
            }
        }
        unanswered(&mut open, at, found);
        open = called;
    }
    unanswered(&mut open, messages.len(), found);
    if budget > 0 {
        begins_with_reasoning(messages, found);
    }
    if messages.len().is_multiple_of(2) {
        found.push("the last message is not the user's".into());
    }
}

fn is_reasoning(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

/// Whether an id has only allowed characters.
fn is_plain(id: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !id.is_empty() && id.chars().all(allowed)
}

/// With thinking on, an unfinished group of calls must begin with reasoning.
fn begins_with_reasoning(messages: &[Value], found: &mut Vec<String>) {
    let holds = |message: &Value, kind: &str| {
        let mut blocks = message["content"].as_array().into_iter().flatten();
        blocks.any(|block| block["type"] == kind)
    };
    let [.., calls, results] = messages else {
        return;
    };
    if holds(results, "tool_result") && !calls["content"].get(0).is_some_and(is_reasoning) {
        found.push("thinking is on, but the last calls do not begin with a thought".into());
    }
}

/// A result is a text, or blocks of texts and images; an error has no images.
fn result_block(at: usize, block: &Value, found: &mut Vec<String>) {
    for inner in block["content"].as_array().into_iter().flatten() {
        let kind = inner["type"].as_str().unwrap_or_default();
        if !["text", "image"].contains(&kind) || kind == "image" && block["is_error"] == true {
            found.push(format!("message {at}: a {kind:?} in a result"));
        }
        other_block(at, kind, inner, found);
    }
}

fn other_block(at: usize, kind: &str, block: &Value, found: &mut Vec<String>) {
    let empty = |field: &str| {
        block[field]
            .as_str()
            .is_none_or(|text| text.trim().is_empty())
    };
    let wrong = match kind {
        "text" => empty("text"),
        "thinking" => empty("signature") || !block["cache_control"].is_null(),
        "redacted_thinking" => empty("data"),
        "image" => {
            let source = &block["source"];
            let types = ["image/png", "image/jpeg", "image/gif", "image/webp"];
            source["type"] != "base64" || !is_image(&source["media_type"], &source["data"], &types)
        }
        _ => true,
    };
    if wrong {
        found.push(format!("message {at}: a bad block of type {kind:?}"));
    }
}
