//! Writes requests for Bedrock's Converse API.
//! Invariants: only reasoning with Claude's signature is sent back; cache points
//! are set only for models that support them, since others refuse the request.

use crate::blocks::{Blocks, blocks};
use crate::body::{self, arguments, strict_id};
use crate::claude;
use crate::known;
use crate::sight::Sight;
use crate::signature::Signature;
use crate::turns::{Names, turns};
use bytes::Bytes;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::{Image, ImageType, Message, ToolCall};
use serde_json::{Value, json};

const NAMES: Names = Names {
    model: "assistant",
    parts: "content",
};

/// Highest output limit: no step needs a longer answer, and the limit counts against the context.
const MAX_OUTPUT: u64 = 32_000;

/// Replaces an empty result, which Bedrock refuses.
const NO_WORDS: &str = "(no output)";

/// Claude models without caching on Bedrock.
const WITHOUT_CACHE: [&str; 6] = [
    "claude-v",
    "claude-instant",
    "claude-3-haiku",
    "claude-3-sonnet",
    "claude-3-opus",
    "claude-3-5-sonnet",
];

/// The parts of a request that a model's cache can keep.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cache {
    Nothing,
    /// The system prompt and messages.
    Text,
    /// The system prompt, messages and tools.
    Everything,
}

impl Cache {
    fn of(model_id: &str) -> Self {
        let name = known::bare(model_id);
        if name.starts_with("claude-") {
            if WITHOUT_CACHE.iter().any(|old| name.starts_with(old)) {
                Self::Nothing
            } else {
                Self::Everything
            }
        } else if name.starts_with("amazon.nova") {
            Self::Text
        } else {
            Self::Nothing
        }
    }
}

/// Marks the end of a prefix that the next request repeats.
fn cache_point() -> Value {
    json!({"cachePoint": {"type": "default"}})
}

struct Format;

impl Blocks for Format {
    fn text(text: &str) -> Value {
        json!({"text": text})
    }

    fn thought(text: &str, signature: Signature<'_>) -> Option<Value> {
        let reasoning = match signature {
            Signature::Claude(signature) => {
                json!({"reasoningText": {"text": text, "signature": signature}})
            }
            Signature::BedrockRedacted(data) => json!({"redactedContent": data}),
            Signature::Redacted(_)
            | Signature::GoogleCall(..)
            | Signature::GoogleText(_)
            | Signature::Missing => return None,
        };
        Some(json!({"reasoningContent": reasoning}))
    }

    fn image(image: &Image) -> Value {
        let format = match image.media_type() {
            ImageType::Png => "png",
            ImageType::Jpeg => "jpeg",
            ImageType::Gif => "gif",
            ImageType::Webp => "webp",
        };
        json!({"image": {"format": format, "source": {"bytes": image.base64()}}})
    }

    fn call(call: &ToolCall) -> Value {
        json!({"toolUse": {
            "toolUseId": strict_id(&call.id),
            "name": call.name,
            "input": arguments(call),
        }})
    }

    fn result(message: &Message, content: &str, images: Vec<Value>) -> Value {
        let text = match content.trim().is_empty() {
            true => NO_WORDS,
            false => content,
        };
        let content: Value = std::iter::once(Self::text(text)).chain(images).collect();
        let id = strict_id(&message.tool_call_id);
        let mut result = json!({"toolUseId": id, "content": content});
        if message.is_error {
            result["status"] = "error".into();
        }
        json!({"toolResult": result})
    }
}

/// The request body. The model is part of the address.
pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>) -> Bytes {
    let cache = Cache::of(model_id);
    let point = || (cache != Cache::Nothing).then(cache_point);
    let mut fields = json!({});
    let output = known::output(model_id).map(|output| output.min(MAX_OUTPUT));
    if let Some(output) = output {
        fields["inferenceConfig"] = json!({"maxTokens": output});
    }
    let is_claude = known::bare(model_id).starts_with("claude-");
    let thinking = output
        .filter(|_| is_claude)
        .and_then(|output| claude::thinking(model_id, request, output));
    if let Some(thinking) = thinking {
        fields["additionalModelRequestFields"] = json!({"thinking": thinking});
    }
    // Calls can only be forbidden by offering no tools.
    let with_tools = !request.tools.is_empty() && request.tool_choice != ToolChoice::None;
    if with_tools {
        fields["toolConfig"] = tool_config(request, cache);
    }
    if !request.system.trim().is_empty() {
        let system = std::iter::once(Format::text(&request.system));
        fields["system"] = system.chain(point()).collect();
    }
    let messages = turns(
        request,
        sight,
        &NAMES,
        |message, _| blocks::<Format>(message, request.has_guests, !with_tools),
        |blocks| blocks.extend(point()),
    );
    body::json(&fields, None::<()>, ("messages", messages))
}

fn tool_config(request: &Request, cache: Cache) -> Value {
    let tools = request.tools.iter().map(|tool| {
        let mut spec = json!({"name": tool.name, "inputSchema": {"json": tool.parameters}});
        let description = tool.description.as_str();
        // Bedrock refuses an empty description.
        if !description.trim().is_empty() {
            spec["description"] = description.into();
        }
        json!({"toolSpec": spec})
    });
    let point = (cache == Cache::Everything).then(cache_point);
    let tools: Value = tools.chain(point).collect();
    let choice = match &request.tool_choice {
        ToolChoice::Auto | ToolChoice::None => return json!({"tools": tools}),
        ToolChoice::Required => json!({"any": {}}),
        ToolChoice::Named(name) => json!({"tool": {"name": name}}),
    };
    json!({"tools": tools, "toolChoice": choice})
}
