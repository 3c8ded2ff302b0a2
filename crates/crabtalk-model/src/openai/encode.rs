//! Writes requests.
//! Invariant: what two consecutive requests of a conversation share are the
//! same bytes at the same place, so that provider caches hit; the messages
//! therefore come last.

use crate::format::{OPENAI, WITH_GUESTS, arguments, push_json};
use crate::sight::Sight;
use bytes::Bytes;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::{Message, Role};
use std::borrow::Cow;

/// Effort asked for when an agent's `thinking` is on: the middle of the scale.
const REASONING_EFFORT: &str = "medium";

/// The whole request body.
pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>) -> Bytes {
    let mut out = Vec::with_capacity(4096 + request.history.len() * 256);
    out.extend_from_slice(b"{\"model\":");
    push_json(&mut out, model_id);
    out.extend_from_slice(b",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    if request.thinking {
        out.extend_from_slice(b",\"reasoning_effort\":");
        push_json(&mut out, REASONING_EFFORT);
    }
    if !request.tools.is_empty() {
        push_tools(&mut out, request);
    }
    out.extend_from_slice(b",\"messages\":[");
    let mut first = true;
    if !request.system.is_empty() {
        out.extend_from_slice(b"{\"role\":\"system\",\"content\":");
        push_json(&mut out, &*request.system);
        out.push(b'}');
        first = false;
    }
    let format = if request.has_guests {
        OPENAI | WITH_GUESTS
    } else {
        OPENAI
    };
    // Results hold text alone, and nothing may come between them: their images
    // follow the last one in a message of their own.
    let mut images: Vec<Cow<'_, [u8]>> = Vec::new();
    for (at, message) in request.messages().enumerate() {
        if message.role != Role::Tool {
            push_images(&mut out, &mut images);
        }
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        let bytes = match sight.of(at, message) {
            Some(seen) => Cow::Owned(encode(&seen, request.has_guests)),
            None => message
                .encoded
                .get_or_encode(format, || encode(message, request.has_guests)),
        };
        if message.images.is_empty() {
            out.extend_from_slice(&bytes);
        } else {
            out.extend_from_slice(parts(&bytes).0);
            images.push(bytes);
        }
    }
    push_images(&mut out, &mut images);
    out.extend_from_slice(b"]}");
    // It is kept until the answer begins, in case it has to be sent again.
    out.shrink_to_fit();
    out.into()
}

fn push_tools(out: &mut Vec<u8>, request: &Request) {
    for (at, tool) in request.tools.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b",\"tools\":[" } else { b"," });
        out.extend_from_slice(b"{\"type\":\"function\",\"function\":{\"name\":");
        push_json(out, &tool.name);
        out.extend_from_slice(b",\"description\":");
        push_json(out, &tool.description);
        out.extend_from_slice(b",\"parameters\":");
        push_json(out, &tool.parameters);
        out.extend_from_slice(b"}}");
    }
    out.push(b']');
    match &request.tool_choice {
        ToolChoice::Auto => {}
        ToolChoice::None => out.extend_from_slice(b",\"tool_choice\":\"none\""),
        ToolChoice::Required => out.extend_from_slice(b",\"tool_choice\":\"required\""),
        ToolChoice::Named(name) => {
            out.extend_from_slice(
                b",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":",
            );
            push_json(out, name);
            out.extend_from_slice(b"}}");
        }
    }
}

fn encode(message: &Message, has_guests: bool) -> Vec<u8> {
    let content = message.rendered(has_guests);
    let mut out = Vec::with_capacity(content.len() + 64);
    out.extend_from_slice(b"{\"role\":\"");
    out.extend_from_slice(message.role.as_str().as_bytes());
    out.push(b'"');
    if message.role == Role::Tool {
        out.extend_from_slice(b",\"tool_call_id\":");
        push_json(&mut out, &message.tool_call_id);
    }
    out.extend_from_slice(b",\"content\":");
    if content.is_empty() && !message.tool_calls.is_empty() {
        out.extend_from_slice(b"null");
    } else {
        push_json(&mut out, &*content);
    }
    for (at, call) in message.tool_calls.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b",\"tool_calls\":[" } else { b"," });
        out.extend_from_slice(b"{\"id\":");
        push_json(&mut out, &call.id);
        out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
        push_json(&mut out, &call.name);
        out.extend_from_slice(b",\"arguments\":");
        push_json(&mut out, &*arguments(call));
        out.extend_from_slice(b"}}");
    }
    if !message.tool_calls.is_empty() {
        out.push(b']');
    }
    out.push(b'}');
    if !message.images.is_empty() {
        encode_images(&mut out, message);
    }
    out
}

/// Between a result and its images in kept bytes; JSON has no such byte.
const SEAM: u8 = 0;

/// A result, and the content of the message with its images.
fn parts(bytes: &[u8]) -> (&[u8], &[u8]) {
    let seam = bytes.iter().position(|byte| *byte == SEAM);
    seam.map_or((bytes, &[]), |at| (&bytes[..at], &bytes[at + 1..]))
}

fn encode_images(out: &mut Vec<u8>, message: &Message) {
    out.push(SEAM);
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    let id = &message.tool_call_id;
    push_json(out, &format!("[what the tool call {id} shows]"));
    out.push(b'}');
    for image in &message.images {
        out.extend_from_slice(b",{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:");
        out.extend_from_slice(image.media_type().as_str().as_bytes());
        out.extend_from_slice(b";base64,");
        out.extend_from_slice(image.base64().as_bytes());
        out.extend_from_slice(b"\"}}");
    }
}

/// Appends the message with the images of the results before it, if any.
fn push_images(out: &mut Vec<u8>, results: &mut Vec<Cow<'_, [u8]>>) {
    let mut open = false;
    for bytes in results.drain(..) {
        let (_, content) = parts(&bytes);
        if content.is_empty() {
            continue;
        }
        out.extend_from_slice(if open {
            b","
        } else {
            b",{\"role\":\"user\",\"content\":["
        });
        out.extend_from_slice(content);
        open = true;
    }
    if open {
        out.extend_from_slice(b"]}");
    }
}
