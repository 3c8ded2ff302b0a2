//! Replies in OpenAI's format.

use super::figures::{ANSWER_TOKENS, CACHED_TOKENS, PROMPT_TOKENS};
use super::{Action, FinishReason, Part, Reply};
use serde_json::{Value, json};

/// Data of an event with this delta.
pub fn delta(delta: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [choice],
    })
    .to_string()
}

/// Data of the event with the stop reason.
pub fn finish(reason: &str) -> String {
    let choice = json!({"index": 0, "delta": {}, "finish_reason": reason});
    json!({"object": "chat.completion.chunk", "choices": [choice]}).to_string()
}

/// Data of the last event, with the usage, as requested by `include_usage`.
pub fn usage(prompt: u64, completion: u64, cached: u64) -> String {
    json!({"object": "chat.completion.chunk", "choices": [], "usage": {
        "prompt_tokens": prompt, "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }})
    .to_string()
}

/// A fragment of a tool call; the first fragment has id and name.
pub fn fragment(index: u32, begin: Option<(&str, &str)>, arguments: &str) -> String {
    let call = match begin {
        Some((id, name)) => json!({
            "index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": arguments},
        }),
        None => json!({"index": index, "function": {"arguments": arguments}}),
    };
    delta(&json!({ "tool_calls": [call] }))
}

/// A text answer in pieces.
pub fn pieces(pieces: &[&str]) -> Reply {
    let mut events = vec![delta(&json!({"role": "assistant", "content": ""}))];
    events.extend(
        pieces
            .iter()
            .map(|piece| delta(&json!({ "content": piece }))),
    );
    ended(events, "stop")
}

/// A text answer.
pub fn text(text: &str) -> Reply {
    pieces(&[text])
}

/// Whole tool calls, with ids made of `id` and the index.
pub fn tools(id: &str, calls: &[(&str, Value)]) -> Reply {
    let events = (0..).zip(calls).map(|(index, (name, arguments))| {
        fragment(
            index,
            Some((&format!("{id}_{index}"), name)),
            &arguments.to_string(),
        )
    });
    ended(events.collect(), "tool_calls")
}

/// An answer with these parts; the format has no signatures.
pub fn answer(parts: &[Part], end: FinishReason) -> Reply {
    let mut events = vec![delta(&json!({"role": "assistant", "content": ""}))];
    let mut calls = 0;
    for part in parts {
        match part {
            Part::Text(pieces) => {
                events.extend(pieces.iter().map(|p| delta(&json!({ "content": p }))));
            }
            Part::Thinking { text, .. } => {
                events.push(delta(&json!({ "reasoning_content": text })));
            }
            Part::Call {
                id,
                name,
                arguments,
            } => {
                events.push(fragment(calls, Some((id, name)), ""));
                events.extend(arguments.iter().map(|piece| fragment(calls, None, piece)));
                calls += 1;
            }
        }
    }
    let reason = match end {
        FinishReason::Done => "stop",
        FinishReason::Calls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::Filtered => "content_filter",
    };
    events.extend([
        finish(reason),
        usage(PROMPT_TOKENS, ANSWER_TOKENS, CACHED_TOKENS),
        "[DONE]".to_owned(),
    ]);
    Reply::events(events)
}

/// An answer that is not streamed.
pub fn whole(text: &str) -> Value {
    let message = json!({"role": "assistant", "content": text});
    json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
}

/// Events with a regular end: stop reason, usage, terminator.
pub fn ended(events: Vec<String>, reason: &str) -> Reply {
    let end = [finish(reason), usage(10, 5, 4), "[DONE]".to_owned()];
    Reply::new(events.into_iter().chain(end).map(Action::Event))
}
