//! What the formats share in writing requests.
//! Invariant: what two consecutive requests of a conversation share are the
//! same bytes at the same place, so that providers' caches hit; messages
//! therefore come last.
//!
//! A body is written anew for each request, in one pass from the messages
//! themselves.

use crate::text;
use bytes::Bytes;
use crabtalk_domain::model::Request;
use crabtalk_domain::{Message, Role, ToolCall};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

/// What a message takes beside its text: names of fields, quotes, some escapes.
const BESIDE_TEXT: usize = 64;

/// The body of a request, in one piece of memory that need not grow as long as no more
/// than every eighth byte is escaped.
pub(crate) fn json(request: &Request, body: &impl Serialize) -> Bytes {
    let texts = request.messages().map(|message| message.content.len());
    let about: usize = texts.map(|bytes| bytes + bytes / 8 + BESIDE_TEXT).sum();
    text::json(body, request.system.len() + about).into()
}

/// Whether there is anything in a message that the model may be told. An answer
/// of thoughts alone is none: providers refuse a turn that ends with a thought,
/// and with it every later request of the conversation.
pub(crate) fn says_something(message: &Message) -> bool {
    message.role != Role::Assistant
        || !message.tool_calls.is_empty()
        || !message.content.trim_start().is_empty()
}

/// A call's arguments as a JSON object. Servers parse them and refuse the
/// whole conversation for one call that a model wrote badly.
pub(crate) fn arguments(call: &ToolCall) -> Cow<'_, RawValue> {
    let text = match call.arguments.trim() {
        "" => "{}",
        text => text,
    };
    match serde_json::from_str::<&RawValue>(text) {
        Ok(object) if object.get().starts_with('{') => Cow::Borrowed(object),
        Ok(_) | Err(_) => {
            let object = serde_json::json!({ "invalid_arguments": text });
            Cow::Owned(to_raw_value(&object).expect("plain data always serializes"))
        }
    }
}

/// A call's id in the alphabet that Anthropic and Bedrock allow; other
/// providers use more.
pub(crate) fn strict_id(id: &str) -> Cow<'_, str> {
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

/// A call where calls cannot be written.
pub(crate) fn call_in_words(call: &ToolCall) -> String {
    format!("[called the tool {} with {}]", call.name, arguments(call))
}

/// A result where results cannot be written.
pub(crate) fn result_in_words(message: &Message, content: &str) -> String {
    let verb = if message.is_error {
        "failed"
    } else {
        "answered"
    };
    format!("[the tool {verb}: {content}]")
}

#[cfg(test)]
mod tests;
