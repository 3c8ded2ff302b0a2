//! Summarises a history that is larger than the model's window, piece by
//! piece (RUN-4).

use super::{Job, text};
use crate::inner::Inner;
use crate::spending::{self, Account};
use crabtalk_domain::model::{Error, Request};
use crabtalk_domain::{Message, Role, estimate_tokens, tags};
use std::sync::Arc;

/// Percentage of the window that a piece may fill; the rest is for the previous
/// summary, the instruction and the answer.
const PIECE_PERCENT: u64 = 50;

/// Minimum tokens of a piece, so that a tiny window still makes progress.
const MIN_PIECE_TOKENS: u64 = 256;

/// Characters that a model may read as a line break.
const BREAKS: [char; 7] = [
    '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
];

/// Indentation of continuation lines.
const CONTINUED: &str = "  ";

/// Summarises the pieces one after another, each with the previous summary.
pub(super) async fn summarise(
    rt: &Inner,
    account: Account<'_>,
    job: &Job<'_>,
    history: &[Arc<Message>],
    instruction: &str,
    window: u64,
) -> Result<String, Error> {
    let limit = (window / 100 * PIECE_PERCENT).max(MIN_PIECE_TOKENS);
    let mut summary = String::new();
    for piece in pieces(history, limit) {
        let before = match summary.as_str() {
            "" => String::new(),
            summary => format!("Summary so far: {}\n\n", one_entry(summary)),
        };
        let told = format!(
            "{before}The conversation continues, as a transcript. A line that begins \
             with two spaces continues the line before it:\n{piece}"
        );
        let request = Request {
            model: job.agent.model.clone(),
            fallback: job.agent.fallback.clone(),
            closing: Some(Arc::new(Message::user(instruction.to_owned()))),
            ..Request::new(Arc::clone(&job.system), vec![Arc::new(Message::user(told))])
        };
        summary = text(spending::send(rt, account, request).await?);
    }
    Ok(summary)
}

/// Formats the history as text and cuts it into pieces of at most `limit` tokens.
pub(super) fn pieces(history: &[Arc<Message>], limit: u64) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for message in history {
        let mut rest = line(message);
        while !rest.is_empty() {
            let piece = pieces.last_mut().expect("there is always a piece");
            let room = limit.saturating_sub(estimate_tokens(piece)) as usize * 4;
            if rest.len() <= room {
                piece.push_str(&rest);
                break;
            }
            let cut = rest.floor_char_boundary(room);
            piece.push_str(&rest[..cut]);
            rest.drain(..cut);
            // Four bytes contain at least one character, so the loop ends.
            pieces.push(CONTINUED.to_owned());
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Indents a text, so that none of its lines looks like the start of an entry.
fn one_entry(text: &str) -> String {
    tags::escape(text).replace(BREAKS, &format!("\n{CONTINUED}"))
}

/// Formats a message. Only speakers begin a line, so that no content can imitate
/// another speaker.
fn line(message: &Message) -> String {
    let who = match message.role {
        Role::User => "user".to_owned(),
        Role::Assistant if message.agent.is_empty() => "assistant".to_owned(),
        Role::Assistant => format!("guest {}", message.agent),
        Role::Tool => "tool result".to_owned(),
    };
    let mut said = message.content.clone();
    for call in &message.tool_calls {
        said.push_str(&format!("\n[calls {} {}]", call.name, call.arguments));
    }
    format!("{who}: {}\n", one_entry(&said))
}
