//! Replies in Anthropic's format.

use super::{Action, FinishReason, Part, Reply};
use serde_json::{Value, json};

/// An event; its type is in the data and in the event field.
pub fn event(data: &Value) -> Action {
    let kind = data["type"].as_str().unwrap_or_default();
    Action::Body(format!("event: {kind}\ndata: {data}\n\n"))
}

/// A block of an answer.
#[derive(Debug, Clone)]
pub enum Block {
    /// Text in pieces.
    Text(Vec<String>),
    /// Reasoning with its signature.
    Thinking(String, String),
    /// Redacted reasoning.
    Redacted(String),
    /// A call: id, name, pieces of the input.
    Tool(String, String, Vec<String>),
}

impl Block {
    /// A block of text.
    pub fn text(text: &str) -> Self {
        Self::Text(vec![text.into()])
    }

    /// A call with its whole input.
    pub fn tool(id: &str, name: &str, input: &Value) -> Self {
        Self::Tool(id.into(), name.into(), vec![input.to_string()])
    }

    fn begin(&self) -> Value {
        match self {
            Self::Text(_) => json!({"type": "text", "text": ""}),
            Self::Thinking(..) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Self::Redacted(data) => json!({"type": "redacted_thinking", "data": data}),
            Self::Tool(id, name, _) => {
                json!({"type": "tool_use", "id": id, "name": name, "input": {}})
            }
        }
    }

    fn deltas(&self) -> Vec<Value> {
        match self {
            Self::Text(pieces) => pieces
                .iter()
                .map(|text| json!({"type": "text_delta", "text": text}))
                .collect(),
            Self::Thinking(text, signature) => vec![
                json!({"type": "thinking_delta", "thinking": text}),
                json!({"type": "signature_delta", "signature": signature}),
            ],
            Self::Redacted(_) => Vec::new(),
            Self::Tool(_, _, pieces) => pieces
                .iter()
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect(),
        }
    }
}

/// An answer with these blocks and a ping.
pub fn blocks(blocks: &[Block]) -> Reply {
    let calls = blocks.iter().any(|block| matches!(block, Block::Tool(..)));
    blocks_until(blocks, if calls { "tool_use" } else { "end_turn" })
}

/// An answer with these parts.
pub fn answer(parts: &[Part], end: FinishReason) -> Reply {
    let block = |part: &Part| match part {
        Part::Text(pieces) => Block::Text(pieces.clone()),
        Part::Thinking { text, proof } => Block::Thinking(text.clone(), proof.clone()),
        Part::Call {
            id,
            name,
            arguments,
        } => Block::Tool(id.clone(), name.clone(), arguments.clone()),
    };
    let reason = match end {
        FinishReason::Done => "end_turn",
        FinishReason::Calls => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::Filtered => "refusal",
    };
    blocks_until(&parts.iter().map(block).collect::<Vec<_>>(), reason)
}

/// An answer that is not streamed.
pub fn whole(text: &str) -> Value {
    json!({
        "type": "message", "role": "assistant", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": text}],
    })
}

/// An error status.
pub fn refusal(status: u16, class: &str, message: &str) -> Reply {
    let error = json!({"type": class, "message": message});
    Reply::json(status, &json!({"type": "error", "error": error}))
}

fn blocks_until(blocks: &[Block], reason: &str) -> Reply {
    let usage = json!({
        "input_tokens": 6, "output_tokens": 1,
        "cache_creation_input_tokens": 3, "cache_read_input_tokens": 4,
    });
    let message = json!({"id": "msg_1", "role": "assistant", "content": [], "usage": usage});
    let mut actions = vec![
        event(&json!({"type": "message_start", "message": message})),
        event(&json!({"type": "ping"})),
    ];
    for (index, block) in blocks.iter().enumerate() {
        let begin = json!({
            "type": "content_block_start", "index": index, "content_block": block.begin(),
        });
        actions.push(event(&begin));
        actions.extend(block.deltas().into_iter().map(|delta| {
            event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
        }));
        actions.push(event(
            &json!({"type": "content_block_stop", "index": index}),
        ));
    }
    actions.extend([
        event(&json!({
            "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 5},
        })),
        event(&json!({"type": "message_stop"})),
    ]);
    Reply::new(actions)
}

/// A text answer.
pub fn text(text: &str) -> Reply {
    blocks(&[Block::text(text)])
}

/// An error event within a stream.
pub fn error(kind: &str, message: &str) -> Action {
    event(&json!({"type": "error", "error": {"type": kind, "message": message}}))
}
