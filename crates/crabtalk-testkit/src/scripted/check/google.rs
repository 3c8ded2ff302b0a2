//! Checks for requests that Google would refuse.

use super::{is_image, tool_names};
use serde_json::Value;

/// Known fields of a request; others are refused by name.
const FIELDS: [&str; 5] = [
    "contents",
    "generationConfig",
    "systemInstruction",
    "toolConfig",
    "tools",
];

pub(super) fn problems(path: &str, body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if !path.contains("/models/") || !path.contains(":streamGenerateContent?alt=sse") {
        found.push(format!("{path} is no address of a model"));
    }
    for (field, _) in body.as_object().into_iter().flatten() {
        if !FIELDS.contains(&field.as_str()) {
            found.push(format!("unknown name {field:?}"));
        }
    }
    tool_names(
        &body["tools"][0]["functionDeclarations"],
        |tool| &tool["name"],
        &mut found,
    );
    let contents = body["contents"].as_array().map_or(&[][..], Vec::as_slice);
    if contents.is_empty() {
        found.push("contents is not specified".into());
    }
    // Gemini 3 requires a signature on the first call of every step.
    let wants_proofs = path.contains("/gemini-3");
    let mut open: Vec<&str> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let want = if at % 2 == 0 { "user" } else { "model" };
        if content["role"] != want {
            found.push(format!("content {at}: role {}", content["role"]));
        }
        let parts = content["parts"].as_array().map_or(&[][..], Vec::as_slice);
        if parts.is_empty() {
            found.push(format!("content {at}: no parts"));
        }
        let called: Vec<&str> = names(parts, "functionCall");
        let mut answered = names(parts, "functionResponse");
        let mut asked = std::mem::take(&mut open);
        answered.sort_unstable();
        asked.sort_unstable();
        if answered != asked {
            found.push(format!(
                "content {at}: calls {asked:?}, results {answered:?}"
            ));
        }
        let first = parts.iter().find(|part| part["functionCall"].is_object());
        if wants_proofs && first.is_some_and(|call| !call["thoughtSignature"].is_string()) {
            found.push(format!(
                "content {at}: a call is missing a thought_signature"
            ));
        }
        open = called;
        parts
            .iter()
            .filter(|part| is_bad(part, wants_proofs))
            .for_each(|part| found.push(format!("content {at}: a bad part {part}")));
    }
    if !open.is_empty() {
        found.push(format!("calls {open:?} without results"));
    }
    if contents.len().is_multiple_of(2) {
        found.push("the last content is not the user's".into());
    }
    found
}

fn names<'a>(parts: &'a [Value], field: &str) -> Vec<&'a str> {
    let all = parts.iter().filter(|part| part[field].is_object());
    all.map(|part| part[field]["name"].as_str().unwrap_or_default())
        .collect()
}

/// Whether a part is invalid; `nested` allows images in a result.
fn is_bad(part: &Value, nested: bool) -> bool {
    let call = &part["functionCall"];
    let result = &part["functionResponse"];
    let has_text = part["text"].as_str().is_some_and(|text| !text.is_empty());
    let is_picture = |part: &Value| {
        let image = &part["inlineData"];
        let types = ["image/png", "image/jpeg", "image/webp"];
        is_image(&image["mimeType"], &image["data"], &types)
    };
    let inner = result["parts"].as_array().map_or(&[][..], Vec::as_slice);
    if !inner.iter().all(|part| nested && is_picture(part)) {
        return true;
    }
    let good = has_text
        || is_picture(part)
        || call["args"].is_object() && call["name"].is_string()
        || result["response"].is_object() && result["name"].is_string();
    !good
}
