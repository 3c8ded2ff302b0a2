//! Replies of the Responses API, for programs that use it.

use super::Reply;
use serde_json::{Value, json};

/// A text answer to a request with this many tokens.
pub fn text(text: &str, tokens: u64) -> Reply {
    answer(text, None, tokens)
}

/// A text answer with a tool call.
pub fn tool(id: &str, name: &str, arguments: &Value) -> Reply {
    let call = json!({
        "id": format!("fc_{id}"), "type": "function_call", "status": "completed",
        "name": name, "call_id": id, "arguments": arguments.to_string(),
    });
    answer("I will run a command.", Some(call), 1000)
}

fn answer(text: &str, call: Option<Value>, tokens: u64) -> Reply {
    let message = |status: &str, content: Value| {
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "status": status,
            "content": content,
        })
    };
    let said = json!([{"type": "output_text", "text": text, "annotations": []}]);
    let done = message("completed", said);
    let response = |status: &str, output: &[Value], usage: Value| {
        json!({
            "id": "resp_1", "object": "response", "created_at": 1, "model": "scripted",
            "status": status, "output": output, "usage": usage,
        })
    };
    let usage = json!({
        "input_tokens": tokens, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens + 20,
    });
    let mut events = vec![
        json!({"type": "response.created", "response": response("in_progress", &[], Value::Null)}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": message("in_progress", json!([]))}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": text}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": done}),
    ];
    let mut output = vec![done];
    if let Some(call) = call {
        events.push(json!({"type": "response.output_item.done", "output_index": 1, "item": call}));
        output.push(call);
    }
    events.push(
        json!({"type": "response.completed", "response": response("completed", &output, usage)}),
    );
    let numbered = (1..).zip(events).map(|(number, mut event)| {
        event["sequence_number"] = Value::from(number);
        event.to_string()
    });
    Reply::events(numbered)
}
