//! What the formats share: JSON written by hand, numbers of cached forms.

use crabtalk_domain::{Message, Role, ToolCall};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Numbers under which a message's encoded bytes are kept; whatever changes
/// the bytes has to change the number.
pub(crate) const OPENAI: u32 = 1;
/// See [`OPENAI`].
pub(crate) const ANTHROPIC: u32 = 2;
/// See [`OPENAI`].
pub(crate) const GOOGLE: u32 = 3;
/// See [`OPENAI`].
pub(crate) const BEDROCK: u32 = 4;
/// Added where speakers are tagged.
pub(crate) const WITH_GUESTS: u32 = 0x10;
/// Added where calls and results are written as text.
pub(crate) const WITHOUT_TOOLS: u32 = 0x20;

/// Added where a call without a proof of reasoning gets a substitute.
pub(crate) const WITH_PROOFS: u32 = 0x40;

/// Added where images stand within results.
pub(crate) const NESTED_IMAGES: u32 = 0x80;

/// Added where results and a user's words need an answer between them.
pub(crate) const STRICT_ORDER: u32 = 0x100;

/// Whether there is anything in a message that the model may be told. An answer
/// of thoughts alone is none: providers refuse a turn that ends with a thought,
/// and with it every later request of the conversation.
pub(crate) fn says_something(message: &Message) -> bool {
    message.role != Role::Assistant
        || !message.tool_calls.is_empty()
        || !message.content.trim().is_empty()
}

/// Appends a value as JSON.
pub(crate) fn push_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("plain data always serializes, a Vec takes it");
}

/// A call's arguments as a JSON object. Servers parse them and refuse the
/// whole conversation for one call that a model wrote badly.
pub(crate) fn arguments(call: &ToolCall) -> Cow<'_, str> {
    let text = call.arguments.trim();
    if text.is_empty() {
        return Cow::Borrowed("{}");
    }
    match serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(text) {
        Ok(_) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(serde_json::json!({ "invalid_arguments": text }).to_string()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_always_an_object() {
        for (given, want) in [
            ("", "{}"),
            (" {\"a\": 1} ", "{\"a\": 1}"),
            ("{\"a\":", "{\"invalid_arguments\":\"{\\\"a\\\":\"}"),
            ("[1]", "{\"invalid_arguments\":\"[1]\"}"),
            ("null", "{\"invalid_arguments\":\"null\"}"),
        ] {
            let call = ToolCall {
                arguments: given.into(),
                ..ToolCall::default()
            };
            assert_eq!(arguments(&call), want, "{given}");
        }
    }
}
