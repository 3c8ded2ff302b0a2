//! Writes requests.
//! Invariant: what two consecutive requests of a conversation share are the
//! same bytes at the same place, so that provider caches hit; the messages
//! therefore come last.

use crate::body::{Body, Script, Writer, push_messages};
use crate::format::{OPENAI, STRICT_ORDER, WITH_GUESTS, arguments, push_json, says_something};
use crate::head::Heads;
use crate::known;
use crate::sight::Sight;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::{Message, Role};

/// Effort asked for when an agent's `thinking` is on: the middle of the scale.
const REASONING_EFFORT: &str = "medium";

/// The whole request body.
pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>, heads: &Heads) -> Body {
    let mut writer = Writer::new();
    let out = &mut writer.out;
    out.extend_from_slice(b"{\"model\":");
    push_json(out, model_id);
    out.extend_from_slice(b",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    if request.thinking {
        out.extend_from_slice(b",\"reasoning_effort\":");
        push_json(out, REASONING_EFFORT);
    }
    heads.push(&mut writer, request, 0, |out| {
        if !request.tools.is_empty() {
            push_tools(out, request);
        }
        out.extend_from_slice(b",\"messages\":[");
        if !request.system.is_empty() {
            out.extend_from_slice(b"{\"role\":\"system\",\"content\":");
            push_json(out, &*request.system);
            out.extend_from_slice(b"},");
        }
    });
    let has_guests = request.has_guests;
    let strict = known::is_strict(model_id);
    let mut format = OPENAI | if has_guests { WITH_GUESTS } else { 0 };
    format |= if strict { STRICT_ORDER } else { 0 };
    let messages = Messages {
        sight,
        has_guests,
        strict,
        images: Vec::new(),
    };
    let volatile = request.message_count().saturating_sub(1);
    push_messages(&mut writer, request, sight, format, volatile, messages);
    // A comma follows every message.
    if writer.out.last() == Some(&b',') {
        writer.out.pop();
    }
    writer.out.extend_from_slice(b"]}");
    writer.finish()
}

/// Stands between results and a user's message where that is demanded.
const BRIDGE: &[u8] = b"{\"role\":\"assistant\",\"content\":\"I have the results.\"},";

/// Results hold text alone, and nothing may come between them: their images
/// follow the last one in a message of their own.
struct Messages<'s> {
    sight: &'s Sight<'s>,
    has_guests: bool,
    /// Whether [`BRIDGE`] is wanted.
    strict: bool,
    /// Content of that message.
    images: Vec<u8>,
}

impl<'a> Script<'a> for Messages<'_> {
    /// `open` is whether results were the last.
    fn message(
        &mut self,
        out: &mut Vec<u8>,
        open: &mut Option<bool>,
        _: usize,
        message: &'a Message,
    ) {
        if !says_something(message) {
            return;
        }
        if self.strict && message.role == Role::User && *open == Some(true) {
            out.extend_from_slice(BRIDGE);
        }
        *open = Some(message.role == Role::Tool);
        let seen = self.sight.of(message);
        let message = seen.as_ref().unwrap_or(message);
        encode(out, message, self.has_guests);
        out.push(b',');
        if !message.images.is_empty() {
            encode_images(&mut self.images, message);
        }
    }

    fn settle(&mut self, out: &mut Vec<u8>) {
        if let Some(content) = self.images.strip_prefix(b",") {
            if self.strict {
                out.extend_from_slice(BRIDGE);
            }
            out.extend_from_slice(b"{\"role\":\"user\",\"content\":[");
            out.extend_from_slice(content);
            out.extend_from_slice(b"]},");
            self.images.clear();
        }
    }
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

fn encode(out: &mut Vec<u8>, message: &Message, has_guests: bool) {
    let content = message.rendered(has_guests);
    out.extend_from_slice(b"{\"role\":\"");
    out.extend_from_slice(message.role.as_str().as_bytes());
    out.push(b'"');
    if message.role == Role::Tool {
        out.extend_from_slice(b",\"tool_call_id\":");
        push_json(out, &message.tool_call_id);
    }
    out.extend_from_slice(b",\"content\":");
    if content.is_empty() && !message.tool_calls.is_empty() {
        out.extend_from_slice(b"null");
    } else {
        push_json(out, &*content);
    }
    for (at, call) in message.tool_calls.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b",\"tool_calls\":[" } else { b"," });
        out.extend_from_slice(b"{\"id\":");
        push_json(out, &call.id);
        out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
        push_json(out, &call.name);
        out.extend_from_slice(b",\"arguments\":");
        push_json(out, &*arguments(call));
        out.extend_from_slice(b"}}");
    }
    if !message.tool_calls.is_empty() {
        out.push(b']');
    }
    out.push(b'}');
}

/// Appends content with the images of a result, after a comma.
fn encode_images(out: &mut Vec<u8>, message: &Message) {
    out.extend_from_slice(b",{\"type\":\"text\",\"text\":");
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
