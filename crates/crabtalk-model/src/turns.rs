//! Messages of the formats in which the two sides take turns: Anthropic's,
//! Google's and Bedrock's.
//! Invariants: roles alternate whatever the history is; what two consecutive
//! requests share are the same bytes at the same place, but for the marks that
//! tell a cache where to look.

use crate::body::{Script, Writer, push_messages};
use crate::sight::Sight;
use crabtalk_domain::model::Request;
use crabtalk_domain::{Message, Role, ToolCall};

/// What a format calls things.
pub(crate) struct Words {
    /// The role of the model.
    pub(crate) assistant: &'static str,
    /// The field with a turn's pieces.
    pub(crate) pieces: &'static str,
}

/// Writes the messages of a request as a list of turns. `encode` gets a message
/// with the calls that it may answer and gives its pieces joined by commas,
/// nothing for an empty one; `format` numbers what it gives; `mark` appends
/// pieces up to which everything will be the same next time.
pub(crate) fn push(
    writer: &mut Writer,
    request: &Request,
    sight: &Sight<'_>,
    words: &Words,
    format: u32,
    encode: impl Fn(&Message, &[ToolCall]) -> Vec<u8>,
    mark: impl Fn(&mut Vec<u8>, &[u8]),
) {
    let has_pieces = |at: &usize| {
        let message = request.message(*at);
        message.is_some_and(|message| !encode(message, &[]).is_empty())
    };
    let last = (0..request.message_count()).rev().find(has_pieces);
    let last = last.unwrap_or_default();
    let turns = Turns {
        sight,
        words,
        // What is injected is gone in the next turn, so that the cache ends
        // there.
        stable: request.injected_at.min(request.history.len()),
        last,
        calls: &[],
        encode: &encode,
        mark,
    };
    writer.out.push(b'[');
    let open = push_messages(writer, request, sight, format, last, turns);
    let end: &[u8] = if open.is_some() { b"]}]" } else { b"]" };
    writer.out.extend_from_slice(end);
}

/// The script of such a format.
struct Turns<'a, 's, E, M> {
    sight: &'s Sight<'s>,
    words: &'s Words,
    stable: usize,
    last: usize,
    calls: &'a [ToolCall],
    encode: E,
    mark: M,
}

impl<'a, E, M> Script<'a> for Turns<'a, '_, E, M>
where
    E: Fn(&Message, &[ToolCall]) -> Vec<u8>,
    M: Fn(&mut Vec<u8>, &[u8]),
{
    fn message(
        &mut self,
        out: &mut Vec<u8>,
        open: &mut Option<bool>,
        at: usize,
        message: &'a Message,
    ) {
        let bytes = match self.sight.of(message) {
            Some(seen) => (self.encode)(&seen, self.calls),
            None => (self.encode)(message, self.calls),
        };
        if !message.tool_calls.is_empty() {
            self.calls = &message.tool_calls;
        }
        if bytes.is_empty() {
            return;
        }
        let from_assistant = message.role == Role::Assistant;
        if *open == Some(from_assistant) {
            out.push(b',');
        } else {
            let begin: &[u8] = if open.is_some() {
                b"]},{\"role\":\""
            } else {
                b"{\"role\":\""
            };
            out.extend_from_slice(begin);
            let role = if from_assistant {
                self.words.assistant
            } else {
                "user"
            };
            for word in [role, "\",\"", self.words.pieces, "\":["] {
                out.extend_from_slice(word.as_bytes());
            }
            *open = Some(from_assistant);
        }
        let is_marked =
            at + 1 == self.stable && can_be_marked(message) || at == self.last && !from_assistant;
        if is_marked {
            (self.mark)(out, &bytes);
        } else {
            out.extend_from_slice(&bytes);
        }
    }
}

/// Thinking takes no mark.
fn can_be_marked(message: &Message) -> bool {
    !message.content.trim().is_empty()
        || !message.tool_calls.is_empty()
        || message.role == Role::Tool
}

/// Puts a comma before another piece of the same message.
pub(crate) fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}
