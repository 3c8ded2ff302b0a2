//! Writes requests.
//! Invariants: roles alternate whatever the history is; what two consecutive
//! requests share are the same bytes at the same place, but for the marks that
//! tell the cache where to look; only signed thinking goes back.

use super::REDACTED;
use crate::format::{ANTHROPIC, WITH_GUESTS, WITHOUT_TOOLS, arguments, push_json};
use crate::known;
use bytes::Bytes;
use crabtalk_domain::model::{Request, ToolChoice};
use crabtalk_domain::{Message, Role};
use std::borrow::Cow;

/// Written at most by a model that is not known.
const DEFAULT_OUTPUT: u64 = 8_192;
/// Nothing needs longer answers, and room for them counts against the context.
const MAX_OUTPUT: u64 = 32_000;
/// Reasoning tokens where thinking is on, within the output.
const THINKING_BUDGET: u64 = 8_000;

const MARK: &[u8] = b",\"cache_control\":{\"type\":\"ephemeral\"}";

/// The whole request body.
pub(crate) fn body(model_id: &str, request: &Request) -> Bytes {
    let mut out = Vec::with_capacity(4096 + request.history.len() * 256);
    out.extend_from_slice(b"{\"model\":");
    push_json(&mut out, model_id);
    out.extend_from_slice(b",\"max_tokens\":");
    let thinks = request.thinking && may_think(request);
    let output = known::output(model_id)
        .unwrap_or(DEFAULT_OUTPUT)
        .min(MAX_OUTPUT);
    push_json(&mut out, &output);
    out.extend_from_slice(b",\"stream\":true");
    if thinks && thinks_adaptively(model_id) {
        out.extend_from_slice(b",\"thinking\":{\"type\":\"adaptive\"}");
    } else if thinks {
        out.extend_from_slice(b",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":");
        push_json(&mut out, &THINKING_BUDGET.min(output / 2));
        out.push(b'}');
    }
    push_tools(&mut out, request);
    if !request.system.trim().is_empty() {
        out.extend_from_slice(b",\"system\":[{\"type\":\"text\",\"text\":");
        push_json(&mut out, &*request.system);
        out.extend_from_slice(MARK);
        out.extend_from_slice(b"}]");
    }
    push_messages(&mut out, request);
    out.push(b'}');
    out.into()
}

/// Newer models decide themselves how much they think.
fn thinks_adaptively(model_id: &str) -> bool {
    let name = model_id.rsplit('/').next().unwrap_or(model_id);
    let Some(rest) = name.strip_prefix("claude-") else {
        return false;
    };
    let mut parts = rest
        .split(['-', '.'])
        .skip_while(|part| part.parse::<u32>().is_err());
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok());
    let major = number().unwrap_or(0);
    // A date follows the version in full names.
    let minor = number().filter(|minor| *minor < 100).unwrap_or(0);
    major > 4 || (major == 4 && minor >= 6)
}

/// Whether thinking can be asked for. A forced call excludes it, and so does
/// a call group in progress that began without: it has to start with a signed
/// block.
fn may_think(request: &Request) -> bool {
    if !matches!(request.tool_choice, ToolChoice::Auto | ToolChoice::None) {
        return false;
    }
    let messages: Vec<&Message> = request.messages().filter(|m| !m.auto_injected).collect();
    // Words beside results, as steering puts them, do not end the group.
    let begins = |at: &usize| {
        messages[*at].role == Role::User && (*at == 0 || messages[at - 1].role != Role::Tool)
    };
    let turn = (0..messages.len()).rev().find(begins);
    messages[turn.map_or(0, |at| at + 1)..]
        .iter()
        .filter(|message| !message.tool_calls.is_empty())
        .all(|message| {
            message
                .thinking
                .iter()
                .any(|block| !block.signature.is_empty())
        })
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

/// The blocks of one message, ready to be copied.
struct Blocks<'a> {
    from_assistant: bool,
    bytes: Cow<'a, [u8]>,
    /// Everything before and including it will be the same next time.
    marked: bool,
}

fn push_messages(out: &mut Vec<u8>, request: &Request) {
    let mut format = ANTHROPIC;
    format |= if request.has_guests { WITH_GUESTS } else { 0 };
    format |= if request.tools.is_empty() {
        WITHOUT_TOOLS
    } else {
        0
    };
    // What is injected is gone in the next turn, so that the cache ends there.
    let stable = request.injected_at.min(request.history.len());
    let mut all: Vec<Blocks<'_>> = Vec::with_capacity(request.history.len() + 4);
    for (at, message) in request.messages().enumerate() {
        let bytes = message
            .encoded
            .get_or_encode(format, || encode(message, format));
        if bytes.is_empty() {
            continue;
        }
        let marked = at + 1 == stable && can_be_marked(message);
        all.push(Blocks {
            from_assistant: message.role == Role::Assistant,
            bytes,
            marked,
        });
    }
    if let Some(last) = all.last_mut().filter(|last| !last.from_assistant) {
        last.marked = true;
    }
    out.extend_from_slice(b",\"messages\":[");
    let mut open: Option<bool> = None;
    for blocks in &all {
        if open == Some(blocks.from_assistant) {
            out.push(b',');
        } else {
            out.extend_from_slice(if open.is_some() {
                b"]},{\"role\":\""
            } else {
                b"{\"role\":\""
            });
            let role = if blocks.from_assistant {
                "assistant"
            } else {
                "user"
            };
            out.extend_from_slice(role.as_bytes());
            out.extend_from_slice(b"\",\"content\":[");
            open = Some(blocks.from_assistant);
        }
        match blocks.bytes.split_last() {
            Some((end, start)) if blocks.marked => {
                out.extend_from_slice(start);
                out.extend_from_slice(MARK);
                out.push(*end);
            }
            Some(_) | None => out.extend_from_slice(&blocks.bytes),
        }
    }
    out.extend_from_slice(if open.is_some() { b"]}]" } else { b"]" });
}

/// Thinking blocks take no mark.
fn can_be_marked(message: &Message) -> bool {
    !message.content.trim().is_empty()
        || !message.tool_calls.is_empty()
        || message.role == Role::Tool
}

/// The blocks of a message, joined by commas; nothing for an empty message,
/// since empty blocks are refused.
fn encode(message: &Message, format: u32) -> Vec<u8> {
    let content = message.rendered(format & WITH_GUESTS != 0);
    let as_text = format & WITHOUT_TOOLS != 0;
    let mut out = Vec::with_capacity(content.len() + 64);
    if message.role == Role::Tool {
        push_result(&mut out, message, &content, as_text);
        return out;
    }
    // What a guest thought is nothing that the speaker could prove.
    if message.agent.is_empty() {
        for block in message
            .thinking
            .iter()
            .filter(|block| !block.signature.is_empty())
        {
            separate(&mut out);
            if let Some(data) = block.signature.strip_prefix(REDACTED) {
                out.extend_from_slice(b"{\"type\":\"redacted_thinking\",\"data\":");
                push_json(&mut out, data);
            } else {
                out.extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":");
                push_json(&mut out, &block.text);
                out.extend_from_slice(b",\"signature\":");
                push_json(&mut out, &block.signature);
            }
            out.push(b'}');
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
        push_json(&mut out, &*id(&call.id));
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
        return push_text(out, &format!("[the tool {verb}: {content}]"));
    }
    out.extend_from_slice(b"{\"type\":\"tool_result\",\"tool_use_id\":");
    push_json(out, &*id(&message.tool_call_id));
    if !content.trim().is_empty() {
        out.extend_from_slice(b",\"content\":");
        push_json(out, content);
    }
    if message.is_error {
        out.extend_from_slice(b",\"is_error\":true");
    }
    out.push(b'}');
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    separate(out);
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    push_json(out, text);
    out.push(b'}');
}

fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}

/// An id in the alphabet that is allowed here; other providers use more.
fn id(id: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.chars().all(allowed) {
        Cow::Borrowed(id)
    } else {
        Cow::Owned(
            id.chars()
                .map(|c| if allowed(c) { c } else { '_' })
                .collect(),
        )
    }
}
