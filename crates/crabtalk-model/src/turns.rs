//! Messages for formats with alternating roles: Anthropic's,
//! Google's and Bedrock's.
//! Invariant: roles alternate for any history.

use crate::sight::Sight;
use crabtalk_domain::model::Request;
use crabtalk_domain::{Message, Role, ToolCall};
use serde_json::{Value, json};

/// The format's names for the model's role and for the list of parts.
pub(crate) struct Names {
    pub(crate) model: &'static str,
    pub(crate) parts: &'static str,
}

/// The messages of a request. `parts` converts a message, given the calls that it may answer,
/// to no parts if it is empty; `mark` marks parts as the end of a prefix that
/// the next request repeats.
pub(crate) fn turns(
    request: &Request,
    sight: &Sight<'_>,
    names: &Names,
    parts: impl Fn(&Message, &[ToolCall]) -> Vec<Value>,
    mark: impl Fn(&mut Vec<Value>),
) -> Vec<Value> {
    // The next request lacks the injected messages, so the cached prefix ends before them.
    let stable = request.injected_at.min(request.history.len());
    let mut turns: Vec<(bool, Vec<Value>)> = Vec::new();
    let mut calls: &[ToolCall] = &[];
    let mut is_marked = false;
    for (at, message) in request.messages().enumerate() {
        let mut new = parts(&sight.of(message), calls);
        if !message.tool_calls.is_empty() {
            calls = &message.tool_calls;
        }
        if new.is_empty() {
            continue;
        }
        is_marked = at + 1 == stable && can_be_marked(message);
        if is_marked {
            mark(&mut new);
        }
        let of_model = message.role == Role::Assistant;
        match turns.last_mut() {
            Some((last, parts)) if *last == of_model => parts.append(&mut new),
            Some(_) | None => turns.push((of_model, new)),
        }
    }
    if let Some((false, parts)) = turns.last_mut()
        && !is_marked
    {
        mark(parts);
    }
    let turns = turns.into_iter().map(|(of_model, parts)| {
        let role = if of_model { names.model } else { "user" };
        json!({"role": role, names.parts: parts})
    });
    turns.collect()
}

/// Whether a message can be marked; thinking cannot.
fn can_be_marked(message: &Message) -> bool {
    !message.content.trim().is_empty()
        || !message.tool_calls.is_empty()
        || message.role == Role::Tool
}
