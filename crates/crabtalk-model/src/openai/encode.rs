//! Writes requests for OpenAI's Chat Completions API.
//! Invariant: results directly follow their call and each other.

use crate::body::{self, arguments, says_something};
use crate::known;
use crate::sight::Sight;
use bytes::Bytes;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::tool::{Schema, ToolSpec};
use crabtalk_domain::{Image, Message, Role, ToolCall};
use serde::Serialize;
use serde_json::{Value, json};

/// Reasoning effort if `thinking` is on: the middle of the scale.
const REASONING_EFFORT: &str = "medium";

/// Inserted between results and a user message for models that require an answer there.
const BRIDGE: &str = "I have the results.";

pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>) -> Bytes {
    let mut fields = json!({
        "model": model_id,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if request.thinking {
        fields["reasoning_effort"] = REASONING_EFFORT.into();
    }
    if let Some(choice) = choice(request) {
        fields["tool_choice"] = choice;
    }
    let tools: Vec<Tool<'_>> = request.tools.iter().map(|tool| Tool::of(tool)).collect();
    let tools = (!tools.is_empty()).then_some(tools);
    let messages = messages(request, sight, known::is_strict(model_id));
    body::json(&fields, tools, ("messages", messages))
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Schema,
}

impl<'a> Tool<'a> {
    fn of(tool: &'a ToolSpec) -> Self {
        Self {
            r#type: "function",
            function: Function {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.parameters,
            },
        }
    }
}

fn choice(request: &Request) -> Option<Value> {
    match &request.tool_choice {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => Some(json!({"type": "function", "function": {"name": name}})),
    }
}

/// The messages. A result may contain only text, and results must not be separated: their
/// images follow the last result in a separate message. `strict` inserts [`BRIDGE`] where
/// required.
fn messages(request: &Request, sight: &Sight<'_>, strict: bool) -> Vec<Value> {
    let mut out = Vec::new();
    if !request.system.is_empty() {
        out.push(json!({"role": "system", "content": *request.system}));
    }
    let (mut images, mut follows_results) = (Vec::new(), false);
    for message in request.messages() {
        let message = &*sight.of(message);
        if message.role != Role::Tool {
            show(&mut out, &mut images, strict);
        }
        if !says_something(message) {
            continue;
        }
        if strict && message.role == Role::User && follows_results {
            out.push(bridge());
        }
        follows_results = message.role == Role::Tool;
        out.push(said(message, request.has_guests));
        if message.role == Role::Tool && !message.images.is_empty() {
            let id = &message.tool_call_id;
            images.push(text(&format!("[images from the tool call {id}]")));
            images.extend(message.images.iter().map(shown));
        }
    }
    show(&mut out, &mut images, strict);
    out
}

/// Appends a message with the images of the preceding results.
fn show(out: &mut Vec<Value>, images: &mut Vec<Value>, strict: bool) {
    if images.is_empty() {
        return;
    }
    if strict {
        out.push(bridge());
    }
    let content = std::mem::take(images);
    out.push(json!({"role": "user", "content": content}));
}

fn bridge() -> Value {
    json!({"role": "assistant", "content": BRIDGE})
}

fn said(message: &Message, has_guests: bool) -> Value {
    let content = message.rendered(has_guests);
    match message.role {
        Role::User if message.images.is_empty() => json!({"role": "user", "content": content}),
        Role::User => {
            let text = (!message.content.trim().is_empty()).then(|| text(&content));
            let parts = text.into_iter().chain(message.images.iter().map(shown));
            json!({"role": "user", "content": parts.collect::<Value>()})
        }
        Role::Assistant if message.tool_calls.is_empty() => {
            json!({"role": "assistant", "content": content})
        }
        Role::Assistant => {
            // Null if the text is empty.
            let content = (!content.is_empty()).then_some(content);
            let calls: Value = message.tool_calls.iter().map(call).collect();
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        Role::Tool => {
            json!({"role": "tool", "tool_call_id": message.tool_call_id, "content": content})
        }
    }
}

fn call(call: &ToolCall) -> Value {
    json!({"id": call.id, "type": "function", "function": {
        "name": call.name,
        "arguments": arguments(call).get(),
    }})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn shown(image: &Image) -> Value {
    let url = format!("data:{};base64,{}", image.media_type(), image.base64());
    json!({"type": "image_url", "image_url": {"url": url}})
}
