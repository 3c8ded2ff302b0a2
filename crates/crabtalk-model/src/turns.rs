//! Messages of the formats in which the two sides take turns: Anthropic's,
//! Google's and Bedrock's.
//! Invariant: roles alternate for any history.

use crabtalk_domain::model::Request;
use crabtalk_domain::{Message, Role, ToolCall};
use std::borrow::Cow;

/// What one side says before the other one does.
pub(crate) struct Turn<P> {
    pub(crate) of_model: bool,
    pub(crate) parts: Vec<P>,
}

/// The turns of a request, whose messages are given as the model sees them.
/// `parts` gets a message with the calls that it may answer and gives nothing
/// for an empty one; `mark` changes parts up to which everything will be the
/// same next time, so that a cache looks there.
pub(crate) fn turns<'a, P>(
    request: &Request,
    messages: &'a [Cow<'a, Message>],
    parts: impl Fn(&'a Message, &'a [ToolCall]) -> Vec<P>,
    mark: impl Fn(&mut Vec<P>),
) -> Vec<Turn<P>> {
    // Injected messages are gone in the next turn, so that the cache ends before them.
    let stable = request.injected_at.min(request.history.len());
    let mut turns: Vec<Turn<P>> = Vec::new();
    let mut calls: &[ToolCall] = &[];
    let mut is_marked = false;
    for (at, message) in messages.iter().enumerate() {
        let mut new = parts(message, calls);
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
            Some(turn) if turn.of_model == of_model => turn.parts.append(&mut new),
            Some(_) | None => turns.push(Turn {
                of_model,
                parts: new,
            }),
        }
    }
    if let Some(turn) = turns.last_mut()
        && !turn.of_model
        && !is_marked
    {
        mark(&mut turn.parts);
    }
    turns
}

/// Thinking takes no mark.
fn can_be_marked(message: &Message) -> bool {
    !message.content.trim().is_empty()
        || !message.tool_calls.is_empty()
        || message.role == Role::Tool
}
