//! Shared parts of the request encoders.
//! Invariant: two consecutive requests of a conversation share their prefix byte by byte,
//! so that providers' caches hit; messages therefore come last.

use bytes::Bytes;
use crabtalk_domain::{Message, Role, ToolCall};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

/// The body of a request: its other fields, the tools, then the messages, each under
/// their name. Tools are written as they are, since their schemas are long.
pub(crate) fn json<T: Serialize>(
    fields: &Value,
    tools: Option<T>,
    (name, messages): (&str, Vec<Value>),
) -> Bytes {
    let mut json = Vec::new();
    let mut writer = serde_json::Serializer::new(&mut json);
    let written = (|| {
        let mut map = writer.serialize_map(None)?;
        for (name, value) in fields.as_object().into_iter().flatten() {
            map.serialize_entry(name, value)?;
        }
        if let Some(tools) = tools {
            map.serialize_entry("tools", &tools)?;
        }
        map.serialize_entry(name, &messages)?;
        map.end()
    })();
    written.expect("plain data always serializes");
    json.into()
}

/// Whether a message is sent to the model. An answer that consists only
/// of thinking is not: providers would refuse it and every later request
/// of the conversation.
pub(crate) fn says_something(message: &Message) -> bool {
    message.role != Role::Assistant
        || !message.tool_calls.is_empty()
        || !message.content.trim_start().is_empty()
}

/// A call's arguments as a JSON object. A call with invalid arguments would make
/// servers refuse the whole conversation.
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

/// A call's id in the alphabet that Anthropic and Bedrock allow.
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

/// A call as text.
pub(crate) fn call_in_words(call: &ToolCall) -> String {
    format!("[called the tool {} with {}]", call.name, arguments(call))
}

/// A result as text.
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
