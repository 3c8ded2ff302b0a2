//! Replies in Google's format.

use super::figures::{ANSWER_TOKENS, CACHED_TOKENS, PROMPT_TOKENS};
use super::{Action, FinishReason, Part, Reply};
use serde_json::{Value, json};

/// Data of an event with these parts; every event repeats the usage.
pub fn event(parts: &[Value], finish: Option<&str>) -> String {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(reason) = finish {
        candidate["finishReason"] = reason.into();
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage(),
        "modelVersion": "the-id", "responseId": "r",
    })
    .to_string()
}

/// The usage.
pub fn usage() -> Value {
    json!({
        "promptTokenCount": PROMPT_TOKENS, "candidatesTokenCount": ANSWER_TOKENS - 2,
        "totalTokenCount": PROMPT_TOKENS + ANSWER_TOKENS,
        "cachedContentTokenCount": CACHED_TOKENS, "thoughtsTokenCount": 2,
    })
}

/// A text answer.
pub fn text(text: &str) -> Reply {
    answer(&[Part::text(&[text])], FinishReason::Done)
}

/// An answer with these parts. A reasoning signature is in the following part: the
/// next call, or the last piece of text.
pub fn answer(parts: &[Part], end: FinishReason) -> Reply {
    let mut events: Vec<Value> = Vec::new();
    let mut proof = String::new();
    for part in parts {
        match part {
            Part::Text(pieces) => {
                events.extend(pieces.iter().map(|piece| json!({ "text": piece })));
            }
            Part::Thinking { text, proof: given } => {
                events.push(json!({"text": text, "thought": true}));
                proof.clone_from(given);
                continue;
            }
            Part::Call {
                id,
                name,
                arguments,
            } => {
                let args: Value = serde_json::from_str(&arguments.concat()).unwrap_or(json!({}));
                events.push(json!({"functionCall": {"id": id, "name": name, "args": args}}));
            }
        }
        if let Some(last) = events.last_mut().filter(|_| !proof.is_empty()) {
            last["thoughtSignature"] = std::mem::take(&mut proof).into();
        }
    }
    let reason = match end {
        // Calls have no separate reason here.
        FinishReason::Done | FinishReason::Calls => "STOP",
        FinishReason::Length => "MAX_TOKENS",
        FinishReason::Filtered => "SAFETY",
    };
    let mut data: Vec<String> = events
        .into_iter()
        .map(|part| event(&[part], None))
        .collect();
    data.push(event(&[json!({"text": ""})], Some(reason)));
    Reply::events(data)
}

/// An answer that is not streamed.
pub fn whole(text: &str) -> Value {
    serde_json::from_str(&event(&[json!({ "text": text })], Some("STOP"))).expect("made of JSON")
}

/// A prompt that a filter blocked.
pub fn blocked(reason: &str) -> Reply {
    let data = json!({"promptFeedback": {"blockReason": reason}, "usageMetadata": usage()});
    Reply::events([data.to_string()])
}

/// An error; `class` is the name of its status.
pub fn refusal(status: u16, class: &str, message: &str) -> Reply {
    let error = json!({"code": status, "message": message, "status": class});
    Reply::json(status, &json!({ "error": error }))
}

/// The error for an invalid key, which has the status of a bad request.
pub fn bad_key() -> Reply {
    let detail = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID",
    });
    let error = json!({
        "code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT",
        "details": [detail],
    });
    Reply::json(400, &json!({ "error": error }))
}

/// A 429 with the retry delay in its body.
pub fn exhausted(delay: &str) -> Reply {
    let detail = json!({
        "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay,
    });
    let error = json!({
        "code": 429, "message": "Resource has been exhausted", "status": "RESOURCE_EXHAUSTED",
        "details": [detail],
    });
    Reply::json(429, &json!({ "error": error }))
}

/// An error event within a stream.
pub fn failure(message: &str) -> Action {
    let error = json!({"code": 503, "message": message, "status": "UNAVAILABLE"});
    Action::Event(json!({ "error": error }).to_string())
}
