//! Replies in Bedrock's format, including frames.

use super::figures::{ANSWER_TOKENS, CACHED_TOKENS, PROMPT_TOKENS};
use super::{Action, FinishReason, Part, Reply};
use serde_json::{Value, json};

/// Tokens written to the cache, which the format counts separately.
const WRITTEN_TOKENS: u64 = 3;

/// The bytes of an event.
pub fn frame(name: &str, payload: &str) -> Vec<u8> {
    let headers = [
        (":event-type", name),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    framed(&headers, payload)
}

/// The bytes of a frame with these headers.
pub fn framed(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).expect("a short name"));
        head.extend_from_slice(name.as_bytes());
        // The header type for text.
        head.push(7);
        let length = u16::try_from(value.len()).expect("a short value");
        head.extend_from_slice(&length.to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let number = |length: usize| {
        u32::try_from(length)
            .expect("a frame of a test")
            .to_be_bytes()
    };
    let mut out = number(16 + head.len() + payload.len()).to_vec();
    out.extend_from_slice(&number(head.len()));
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(payload.as_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out
}

/// An event.
pub fn event(name: &str, data: &Value) -> Action {
    Action::Bytes(frame(name, &data.to_string()))
}

/// An exception within a stream.
pub fn exception(class: &str, message: &str) -> Action {
    let headers = [
        (":exception-type", class),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    Action::Bytes(framed(&headers, &json!({ "message": message }).to_string()))
}

/// The first frames of a stream.
pub fn head() -> Action {
    let kind = "application/vnd.amazon.eventstream";
    Action::Head {
        status: 200,
        headers: vec![("content-type".into(), kind.into())],
    }
}

fn delta(index: usize, delta: &Value) -> Action {
    // Padding hides the length of the text.
    let data = json!({"contentBlockIndex": index, "delta": delta, "p": "abcdefghij"});
    event("contentBlockDelta", &data)
}

/// A text answer.
pub fn text(text: &str) -> Reply {
    answer(&[Part::text(&[text])], FinishReason::Done)
}

/// An answer with these parts.
pub fn answer(parts: &[Part], end: FinishReason) -> Reply {
    let mut actions = vec![head(), event("messageStart", &json!({"role": "assistant"}))];
    for (index, part) in parts.iter().enumerate() {
        match part {
            Part::Text(pieces) => {
                actions.extend(pieces.iter().map(|p| delta(index, &json!({ "text": p }))));
            }
            Part::Thinking { text, proof } => actions.extend([
                delta(index, &json!({"reasoningContent": {"text": text}})),
                delta(index, &json!({"reasoningContent": {"signature": proof}})),
            ]),
            Part::Call {
                id,
                name,
                arguments,
            } => {
                actions.push(begin(index, id, name));
                actions.extend(arguments.iter().map(|piece| input(index, piece)));
            }
        }
        actions.push(event(
            "contentBlockStop",
            &json!({"contentBlockIndex": index}),
        ));
    }
    actions.extend(ended(end));
    Reply::new(actions)
}

/// The start of a call.
pub fn begin(index: usize, id: &str, name: &str) -> Action {
    let start = json!({"toolUse": {"toolUseId": id, "name": name}});
    event(
        "contentBlockStart",
        &json!({"contentBlockIndex": index, "start": start}),
    )
}

/// A piece of a call's arguments.
pub fn input(index: usize, piece: &str) -> Action {
    delta(index, &json!({"toolUse": {"input": piece}}))
}

/// The stop reason and the usage.
pub fn ended(end: FinishReason) -> [Action; 2] {
    let reason = match end {
        FinishReason::Done => "end_turn",
        FinishReason::Calls => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::Filtered => "content_filtered",
    };
    [
        event("messageStop", &json!({ "stopReason": reason })),
        event(
            "metadata",
            &json!({"usage": usage(), "metrics": {"latencyMs": 1}}),
        ),
    ]
}

fn usage() -> Value {
    json!({
        "inputTokens": PROMPT_TOKENS - CACHED_TOKENS - WRITTEN_TOKENS,
        "outputTokens": ANSWER_TOKENS, "totalTokens": PROMPT_TOKENS + ANSWER_TOKENS,
        "cacheReadInputTokens": CACHED_TOKENS, "cacheWriteInputTokens": WRITTEN_TOKENS,
    })
}

/// An answer that is not streamed.
pub fn whole(text: &str) -> Value {
    json!({
        "output": {"message": {"role": "assistant", "content": [{ "text": text }]}},
        "stopReason": "end_turn", "usage": usage(),
    })
}

/// An error status; its kind is in a header.
pub fn refusal(status: u16, class: &str, message: &str) -> Reply {
    let class = format!("{class}:http://internal.amazon.com/coral/");
    let headers = [
        ("content-type", "application/json"),
        ("x-amzn-errortype", class.as_str()),
    ];
    Reply::page(status, &headers, &json!({ "message": message }).to_string())
}
