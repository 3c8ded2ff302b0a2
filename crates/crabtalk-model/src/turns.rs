//! Messages of the formats in which the two sides take turns: Anthropic's,
//! Google's and Bedrock's.
//! Invariants: roles alternate whatever the history is; what two consecutive
//! requests share are the same bytes at the same place, but for the marks that
//! tell a cache where to look.

use crate::sight::Sight;
use crabtalk_domain::model::Request;
use crabtalk_domain::{Message, Role, ToolCall};
use std::borrow::Cow;

/// What a format calls things.
pub(crate) struct Words {
    /// The role of the model.
    pub(crate) assistant: &'static str,
    /// The field with a turn's pieces.
    pub(crate) pieces: &'static str,
}

/// The pieces of one message, ready to be copied.
pub(crate) struct Piece<'a> {
    from_assistant: bool,
    bytes: Cow<'a, [u8]>,
    /// Everything before and including it will be the same next time.
    marked: bool,
}

/// The messages of a request. `encode` gets a message with the calls that it
/// may answer and gives its pieces joined by commas, nothing for an empty one;
/// `format` numbers what it gives.
pub(crate) fn pieces<'a>(
    request: &'a Request,
    sight: &Sight<'_>,
    format: u32,
    encode: impl Fn(&Message, &[ToolCall]) -> Vec<u8>,
) -> Vec<Piece<'a>> {
    // What is injected is gone in the next turn, so that the cache ends there.
    let stable = request.injected_at.min(request.history.len());
    let mut all: Vec<Piece<'a>> = Vec::with_capacity(request.history.len() + 4);
    let mut calls: &[ToolCall] = &[];
    for (at, message) in request.messages().enumerate() {
        let bytes = match sight.of(at, message) {
            Some(seen) => Cow::Owned(encode(&seen, calls)),
            None => message
                .encoded
                .get_or_encode(format, || encode(message, calls)),
        };
        if !message.tool_calls.is_empty() {
            calls = &message.tool_calls;
        }
        if bytes.is_empty() {
            continue;
        }
        all.push(Piece {
            from_assistant: message.role == Role::Assistant,
            bytes,
            marked: at + 1 == stable && can_be_marked(message),
        });
    }
    if let Some(last) = all.last_mut().filter(|last| !last.from_assistant) {
        last.marked = true;
    }
    all
}

/// Thinking takes no mark.
fn can_be_marked(message: &Message) -> bool {
    !message.content.trim().is_empty()
        || !message.tool_calls.is_empty()
        || message.role == Role::Tool
}

/// Appends the turns; `mark` appends the bytes of a marked piece.
pub(crate) fn push(
    out: &mut Vec<u8>,
    words: &Words,
    all: &[Piece<'_>],
    mark: impl Fn(&mut Vec<u8>, &[u8]),
) {
    out.push(b'[');
    let mut open: Option<bool> = None;
    for piece in all {
        if open == Some(piece.from_assistant) {
            out.push(b',');
        } else {
            out.extend_from_slice(if open.is_some() {
                b"]},{\"role\":\""
            } else {
                b"{\"role\":\""
            });
            let role = if piece.from_assistant {
                words.assistant
            } else {
                "user"
            };
            for word in [role, "\",\"", words.pieces, "\":["] {
                out.extend_from_slice(word.as_bytes());
            }
            open = Some(piece.from_assistant);
        }
        if piece.marked {
            mark(out, &piece.bytes);
        } else {
            out.extend_from_slice(&piece.bytes);
        }
    }
    out.extend_from_slice(if open.is_some() { b"]}]" } else { b"]" });
}

/// Puts a comma before another piece of the same message.
pub(crate) fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}
