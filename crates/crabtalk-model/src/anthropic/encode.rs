//! Writes requests for Anthropic's Messages API.
//! Invariant: only thinking blocks with Claude's signature are sent back.

use crate::blocks::{Blocks, blocks};
use crate::body::{self, arguments, strict_id};
use crate::claude;
use crate::known;
use crate::sight::Sight;
use crate::signature::Signature;
use crate::turns::{Names, turns};
use bytes::Bytes;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::tool::Schema;
use crabtalk_domain::{Image, Message, ToolCall};
use serde::Serialize;
use serde_json::{Value, json};

/// Output limit of a model that is not in the built-in table.
const DEFAULT_OUTPUT: u64 = 8_192;
/// Highest output limit: no step needs a longer answer, and the limit counts against the context.
const MAX_OUTPUT: u64 = 32_000;

const NAMES: Names = Names {
    model: "assistant",
    parts: "content",
};

/// Marks a block as the end of a prefix that the next request repeats.
fn mark(block: &mut Value) {
    // Thinking blocks cannot be marked.
    if block.get("thinking").is_none() && block.get("data").is_none() {
        block["cache_control"] = marker();
    }
}

fn marker() -> Value {
    json!({"type": "ephemeral"})
}

struct Format;

impl Blocks for Format {
    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    fn thought(text: &str, signature: Signature<'_>) -> Option<Value> {
        match signature {
            Signature::Claude(signature) => {
                Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
            }
            Signature::Redacted(data) => Some(json!({"type": "redacted_thinking", "data": data})),
            Signature::GoogleCall(..)
            | Signature::GoogleText(_)
            | Signature::BedrockRedacted(_)
            | Signature::Missing => None,
        }
    }

    fn image(image: &Image) -> Value {
        json!({"type": "image", "source": {
            "type": "base64",
            "media_type": image.media_type().as_str(),
            "data": image.base64(),
        }})
    }

    fn call(call: &ToolCall) -> Value {
        json!({
            "type": "tool_use",
            "id": strict_id(&call.id),
            "name": call.name,
            "input": arguments(call),
        })
    }

    fn result(message: &Message, content: &str, images: Vec<Value>) -> Value {
        let mut block = json!({
            "type": "tool_result",
            "tool_use_id": strict_id(&message.tool_call_id),
        });
        let text = (!content.trim().is_empty()).then_some(content);
        if !images.is_empty() {
            block["content"] = text.map(Self::text).into_iter().chain(images).collect();
        } else if let Some(text) = text {
            block["content"] = text.into();
        }
        if message.is_error {
            block["is_error"] = true.into();
        }
        block
    }
}

pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>) -> Bytes {
    let output = known::output(model_id)
        .unwrap_or(DEFAULT_OUTPUT)
        .min(MAX_OUTPUT);
    let mut fields = json!({"model": model_id, "max_tokens": output, "stream": true});
    if let Some(thinking) = claude::thinking(model_id, request, output) {
        fields["thinking"] = thinking;
    }
    if let Some(choice) = choice(request) {
        fields["tool_choice"] = choice;
    }
    if !request.system.trim().is_empty() {
        let mut system = Format::text(&request.system);
        mark(&mut system);
        fields["system"] = json!([system]);
    }
    let as_text = request.tools.is_empty();
    let messages = turns(
        request,
        sight,
        &NAMES,
        |message, _| blocks::<Format>(message, request.has_guests, as_text),
        |blocks| blocks.last_mut().into_iter().for_each(mark),
    );
    let tools = (!as_text).then(|| tools(request));
    body::json(&fields, tools, ("messages", messages))
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Schema,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

fn tools(request: &Request) -> Vec<Tool<'_>> {
    let tools = request.tools.iter().map(|tool| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.parameters,
        cache_control: None,
    });
    let mut tools: Vec<Tool<'_>> = tools.collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(marker());
    }
    tools
}

fn choice(request: &Request) -> Option<Value> {
    match &request.tool_choice {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"type": "none"})),
        ToolChoice::Required => Some(json!({"type": "any"})),
        ToolChoice::Named(name) => Some(json!({"type": "tool", "name": name})),
    }
}
