//! Writes requests.
//! Invariants: only reasoning that Claude signed goes back; marks for the cache
//! are set only for models that know them, since others refuse the request.

use crate::body::{Body, Writer};
use crate::claude;
use crate::format::{
    BEDROCK, WITH_GUESTS, WITHOUT_TOOLS, arguments, push_json, says_something, strict_id,
};
use crate::head::Heads;
use crate::known;
use crate::sight::Sight;
use crate::signature::Signature;
use crate::turns::{self, Words, separate};
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::{ImageType, Message, Role, ToolCall};

/// Nothing needs longer answers, and room for them counts against the context.
const MAX_OUTPUT: u64 = 32_000;

/// A piece of its own here.
const MARK: &[u8] = b",{\"cachePoint\":{\"type\":\"default\"}}";

/// Stands for a result without words; a result must not be empty here.
const NO_WORDS: &str = "(no output)";

const WORDS: Words = Words {
    assistant: "assistant",
    pieces: "content",
};

/// Claudes from before Bedrock cached for them.
const WITHOUT_CACHE: [&str; 6] = [
    "claude-v",
    "claude-instant",
    "claude-3-haiku",
    "claude-3-sonnet",
    "claude-3-opus",
    "claude-3-5-sonnet",
];

/// What a model's cache can be told to keep.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cache {
    Nothing,
    /// System prompt and messages.
    Text,
    /// Tools as well.
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

/// The whole request body. The model is part of the address.
pub(crate) fn body(model_id: &str, request: &Request, sight: &Sight<'_>, heads: &Heads) -> Body {
    let cache = Cache::of(model_id);
    let mut writer = Writer::new();
    let out = &mut writer.out;
    out.push(b'{');
    push_limits(out, model_id, request);
    // There is no way to forbid calls but to offer no tools.
    let with_tools = !request.tools.is_empty() && request.tool_choice != ToolChoice::None;
    heads.push(&mut writer, request, cache as u32, |out| {
        if with_tools {
            push_tools(out, request, cache);
        }
        if !request.system.trim().is_empty() {
            out.extend_from_slice(b"\"system\":[{\"text\":");
            push_json(out, &*request.system);
            out.push(b'}');
            if cache != Cache::Nothing {
                out.extend_from_slice(MARK);
            }
            out.extend_from_slice(b"],");
        }
        out.extend_from_slice(b"\"messages\":");
    });
    let mut format = BEDROCK;
    format |= if request.has_guests { WITH_GUESTS } else { 0 };
    format |= if with_tools { 0 } else { WITHOUT_TOOLS };
    // Marks move with the last messages, which are never kept.
    let encode = |message: &Message, _: &[ToolCall]| encode(message, format);
    let mark = |out: &mut Vec<u8>, blocks: &[u8]| {
        out.extend_from_slice(blocks);
        if cache != Cache::Nothing {
            out.extend_from_slice(MARK);
        }
    };
    turns::push(&mut writer, request, sight, &WORDS, format, encode, mark);
    writer.out.push(b'}');
    writer.finish()
}

fn push_limits(out: &mut Vec<u8>, model_id: &str, request: &Request) {
    let Some(output) = known::output(model_id) else {
        return;
    };
    let output = output.min(MAX_OUTPUT);
    out.extend_from_slice(b"\"inferenceConfig\":{\"maxTokens\":");
    push_json(out, &output);
    out.extend_from_slice(b"},");
    let is_claude = known::bare(model_id).starts_with("claude-");
    let thinking = claude::thinking(model_id, request, output).filter(|_| is_claude);
    if let Some(thinking) = thinking {
        out.extend_from_slice(b"\"additionalModelRequestFields\":{\"thinking\":");
        out.extend_from_slice(thinking.as_bytes());
        out.extend_from_slice(b"},");
    }
}

fn push_tools(out: &mut Vec<u8>, request: &Request, cache: Cache) {
    for (at, tool) in request.tools.iter().enumerate() {
        out.extend_from_slice(if at == 0 {
            b"\"toolConfig\":{\"tools\":["
        } else {
            b","
        });
        out.extend_from_slice(b"{\"toolSpec\":{\"name\":");
        push_json(out, &tool.name);
        // An empty description is refused.
        if !tool.description.trim().is_empty() {
            out.extend_from_slice(b",\"description\":");
            push_json(out, &tool.description);
        }
        out.extend_from_slice(b",\"inputSchema\":{\"json\":");
        push_json(out, &tool.parameters);
        out.extend_from_slice(b"}}}");
    }
    if cache == Cache::Everything {
        out.extend_from_slice(MARK);
    }
    out.push(b']');
    match &request.tool_choice {
        ToolChoice::Auto | ToolChoice::None => {}
        ToolChoice::Required => out.extend_from_slice(b",\"toolChoice\":{\"any\":{}}"),
        ToolChoice::Named(name) => {
            out.extend_from_slice(b",\"toolChoice\":{\"tool\":{\"name\":");
            push_json(out, name);
            out.extend_from_slice(b"}}");
        }
    }
    out.extend_from_slice(b"},");
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
    push_reasoning(&mut out, message);
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
        out.extend_from_slice(b"{\"toolUse\":{\"toolUseId\":");
        push_json(&mut out, &*strict_id(&call.id));
        out.extend_from_slice(b",\"name\":");
        push_json(&mut out, &call.name);
        out.extend_from_slice(b",\"input\":");
        out.extend_from_slice(arguments(call).as_bytes());
        out.extend_from_slice(b"}}");
    }
    out
}

fn push_reasoning(out: &mut Vec<u8>, message: &Message) {
    // What a guest thought is nothing that the speaker could prove.
    let own = message.agent.is_empty();
    for block in message.thinking.iter().filter(|_| own) {
        match Signature::read(&block.signature) {
            Signature::Claude(signature) => {
                separate(out);
                out.extend_from_slice(b"{\"reasoningContent\":{\"reasoningText\":{\"text\":");
                push_json(out, &block.text);
                out.extend_from_slice(b",\"signature\":");
                push_json(out, signature);
                out.extend_from_slice(b"}}}");
            }
            Signature::BedrockRedacted(data) => {
                separate(out);
                out.extend_from_slice(b"{\"reasoningContent\":{\"redactedContent\":");
                push_json(out, data);
                out.extend_from_slice(b"}}");
            }
            Signature::Redacted(_)
            | Signature::GoogleCall(..)
            | Signature::GoogleText(_)
            | Signature::Missing => {}
        }
    }
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
    let content = if content.trim().is_empty() {
        NO_WORDS
    } else {
        content
    };
    out.extend_from_slice(b"{\"toolResult\":{\"toolUseId\":");
    push_json(out, &*strict_id(&message.tool_call_id));
    out.extend_from_slice(b",\"content\":[{\"text\":");
    push_json(out, content);
    out.push(b'}');
    push_images(out, message);
    out.push(b']');
    if message.is_error {
        out.extend_from_slice(b",\"status\":\"error\"");
    }
    out.extend_from_slice(b"}}");
}

fn push_images(out: &mut Vec<u8>, message: &Message) {
    for image in &message.images {
        let format: &[u8] = match image.media_type() {
            ImageType::Png => b"png",
            ImageType::Jpeg => b"jpeg",
            ImageType::Gif => b"gif",
            ImageType::Webp => b"webp",
        };
        separate(out);
        out.extend_from_slice(b"{\"image\":{\"format\":\"");
        out.extend_from_slice(format);
        out.extend_from_slice(b"\",\"source\":{\"bytes\":\"");
        out.extend_from_slice(image.base64().as_bytes());
        out.extend_from_slice(b"\"}}}");
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    separate(out);
    out.extend_from_slice(b"{\"text\":");
    push_json(out, text);
    out.push(b'}');
}
