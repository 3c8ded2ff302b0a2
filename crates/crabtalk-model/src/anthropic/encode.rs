//! Writes requests.
//! Invariant: only thinking that Claude signed goes back.

use crate::body::{Body, Writer};
use crate::claude;
use crate::format::{
    ANTHROPIC, WITH_GUESTS, WITHOUT_TOOLS, arguments, push_json, says_something, strict_id,
};
use crate::head::Heads;
use crate::known;
use crate::sight::Sight;
use crate::signature::Signature;
use crate::turns::{self, Words, separate};
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::{Message, Role, ToolCall};

/// Written at most by a model that is not known.
const DEFAULT_OUTPUT: u64 = 8_192;
/// Nothing needs longer answers, and room for them counts against the context.
const MAX_OUTPUT: u64 = 32_000;
const WORDS: Words = Words {
    assistant: "assistant",
    pieces: "content",
};

const MARK: &[u8] = b",\"cache_control\":{\"type\":\"ephemeral\"}";

/// The whole request body.
pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>, heads: &Heads) -> Body {
    let mut writer = Writer::new();
    let out = &mut writer.out;
    out.extend_from_slice(b"{\"model\":");
    push_json(out, model_id);
    out.extend_from_slice(b",\"max_tokens\":");
    let output = known::output(model_id)
        .unwrap_or(DEFAULT_OUTPUT)
        .min(MAX_OUTPUT);
    push_json(out, &output);
    out.extend_from_slice(b",\"stream\":true");
    if let Some(thinking) = claude::thinking(model_id, request, output) {
        out.extend_from_slice(b",\"thinking\":");
        out.extend_from_slice(thinking.as_bytes());
    }
    heads.push(&mut writer, request, 0, |out| {
        push_tools(out, request);
        if !request.system.trim().is_empty() {
            out.extend_from_slice(b",\"system\":[{\"type\":\"text\",\"text\":");
            push_json(out, &*request.system);
            out.extend_from_slice(MARK);
            out.extend_from_slice(b"}]");
        }
    });
    push_messages(&mut writer, request, sight);
    writer.out.push(b'}');
    writer.finish()
}

fn push_tools(out: &mut Vec<u8>, request: &Request) {
    if request.tools.is_empty() {
        return;
    }
    for (at, tool) in request.tools.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b",\"tools\":[" } else { b"," });
        out.extend_from_slice(b"{\"name\":");
        push_json(out, &tool.name);
        out.extend_from_slice(b",\"description\":");
        push_json(out, &tool.description);
        out.extend_from_slice(b",\"input_schema\":");
        push_json(out, &tool.parameters);
        if at + 1 == request.tools.len() {
            out.extend_from_slice(MARK);
        }
        out.push(b'}');
    }
    out.push(b']');
    match &request.tool_choice {
        ToolChoice::Auto => {}
        ToolChoice::None => out.extend_from_slice(b",\"tool_choice\":{\"type\":\"none\"}"),
        ToolChoice::Required => out.extend_from_slice(b",\"tool_choice\":{\"type\":\"any\"}"),
        ToolChoice::Named(name) => {
            out.extend_from_slice(b",\"tool_choice\":{\"type\":\"tool\",\"name\":");
            push_json(out, name);
            out.push(b'}');
        }
    }
}

fn push_messages(writer: &mut Writer, request: &Request, sight: &Sight<'_>) {
    let mut format = ANTHROPIC;
    format |= if request.has_guests { WITH_GUESTS } else { 0 };
    format |= if request.tools.is_empty() {
        WITHOUT_TOOLS
    } else {
        0
    };
    writer.out.extend_from_slice(b",\"messages\":");
    let encode = |message: &Message, _: &[ToolCall]| encode(message, format);
    turns::push(
        writer,
        request,
        sight,
        &WORDS,
        format,
        encode,
        |out, blocks| {
            if let Some((end, start)) = blocks.split_last() {
                out.extend_from_slice(start);
                out.extend_from_slice(MARK);
                out.push(*end);
            }
        },
    );
}

/// The blocks of a message, joined by commas; nothing for an empty message,
/// since empty blocks are refused.
fn encode(message: &Message, format: u32) -> Vec<u8> {
    if !says_something(message) {
        return Vec::new();
    }
    let content = message.rendered(format & WITH_GUESTS != 0);
    let as_text = format & WITHOUT_TOOLS != 0;
    let mut out = Vec::with_capacity(content.len() + 64);
    if message.role == Role::Tool {
        push_result(&mut out, message, &content, as_text);
        return out;
    }
    // What a guest thought is nothing that the speaker could prove.
    if message.agent.is_empty() {
        for block in &message.thinking {
            match Signature::read(&block.signature) {
                Signature::Claude(signature) => {
                    separate(&mut out);
                    out.extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":");
                    push_json(&mut out, &block.text);
                    out.extend_from_slice(b",\"signature\":");
                    push_json(&mut out, signature);
                    out.push(b'}');
                }
                Signature::Redacted(data) => {
                    separate(&mut out);
                    out.extend_from_slice(b"{\"type\":\"redacted_thinking\",\"data\":");
                    push_json(&mut out, data);
                    out.push(b'}');
                }
                Signature::GoogleCall(..)
                | Signature::GoogleText(_)
                | Signature::BedrockRedacted(_)
                | Signature::Missing => {}
            }
        }
    }
    if !content.trim().is_empty() {
        push_text(&mut out, &content);
    }
    for call in &message.tool_calls {
        if as_text {
            push_text(
                &mut out,
                &format!("[called the tool {} with {}]", call.name, arguments(call)),
            );
            continue;
        }
        separate(&mut out);
        out.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
        push_json(&mut out, &*strict_id(&call.id));
        out.extend_from_slice(b",\"name\":");
        push_json(&mut out, &call.name);
        out.extend_from_slice(b",\"input\":");
        out.extend_from_slice(arguments(call).as_bytes());
        out.push(b'}');
    }
    out
}

fn push_result(out: &mut Vec<u8>, message: &Message, content: &str, as_text: bool) {
    if as_text {
        let verb = if message.is_error {
            "failed"
        } else {
            "answered"
        };
        push_text(out, &format!("[the tool {verb}: {content}]"));
        return push_images(out, message);
    }
    out.extend_from_slice(b"{\"type\":\"tool_result\",\"tool_use_id\":");
    push_json(out, &*strict_id(&message.tool_call_id));
    if !message.images.is_empty() {
        let mut blocks = Vec::new();
        if !content.trim().is_empty() {
            push_text(&mut blocks, content);
        }
        push_images(&mut blocks, message);
        out.extend_from_slice(b",\"content\":[");
        out.append(&mut blocks);
        out.push(b']');
    } else if !content.trim().is_empty() {
        out.extend_from_slice(b",\"content\":");
        push_json(out, content);
    }
    if message.is_error {
        out.extend_from_slice(b",\"is_error\":true");
    }
    out.push(b'}');
}

fn push_images(out: &mut Vec<u8>, message: &Message) {
    for image in &message.images {
        separate(out);
        out.extend_from_slice(
            b"{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"",
        );
        out.extend_from_slice(image.media_type().as_str().as_bytes());
        out.extend_from_slice(b"\",\"data\":\"");
        out.extend_from_slice(image.base64().as_bytes());
        out.extend_from_slice(b"\"}}");
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    separate(out);
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    push_json(out, text);
    out.push(b'}');
}
