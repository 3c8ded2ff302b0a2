//! The framing of conversations with guests (RUN-2).
//!
//! Invariant: framing is part of a request's system prompt, never of the history,
//! so it is not stored and no content can imitate it.

use crabtalk_domain::{Message, Role};
use std::sync::Arc;

/// The framing for a guest.
fn guest_framing(guest: &str, primary: &str) -> String {
    format!(
        "You are {guest}, joining a conversation of the agent {primary} as a guest. Messages \
         wrapped in <from agent=\"..\"> tags are from other agents; assistant messages without a \
         tag are from {primary}. You have no tools here. Answer the last user message as \
         yourself, without writing such tags."
    )
}

/// The framing for the primary agent once a guest has spoken.
const PRIMARY_FRAMING: &str = "Messages wrapped in <from agent=\"..\"> tags are from guest agents. \
     Continue responding as yourself, without writing such tags.";

/// Whether a guest has spoken in a history.
pub(crate) fn has_guests(history: &[Arc<Message>]) -> bool {
    history
        .iter()
        .any(|m| m.role == Role::Assistant && !m.agent.is_empty())
}

/// Composes the system prompt of a turn: the speaker's prompt and the framing, if
/// needed.
pub(crate) fn system_prompt(
    prompt: &str,
    guest: Option<&str>,
    primary: &str,
    has_guests: bool,
) -> String {
    let framing = match guest {
        Some(guest) => guest_framing(guest, primary),
        None if has_guests => PRIMARY_FRAMING.to_owned(),
        None => return prompt.to_owned(),
    };
    if prompt.is_empty() {
        framing
    } else {
        format!("{prompt}\n\n{framing}")
    }
}
