//! The decoder interface: events in, chunks out.

use crabtalk_domain::model::{Chunk, StopReason};
use serde_json::Value;
use std::collections::VecDeque;

/// A failure to decode an answer.
#[derive(Debug)]
pub(crate) enum Broken {
    /// Invalid JSON.
    Json(String),
    /// A violation of the format.
    Nonsense(String),
    /// The provider reported an error.
    Reported(Value),
    /// An event above the size limit.
    TooLong,
}

impl Broken {
    /// Wraps an error that the answer contains.
    pub(crate) fn reported(error: &Value) -> Self {
        Self::Reported(if error.is_null() {
            "no reason given".into()
        } else {
            error.clone()
        })
    }
}

/// Parses an event or a whole answer.
pub(crate) fn parse(data: &[u8]) -> Result<Value, Broken> {
    serde_json::from_slice(data).map_err(|error| Broken::Json(error.to_string()))
}

/// The JSON of a call's arguments; `substitute` if there are none.
pub(crate) fn arguments(value: &Value, substitute: &str) -> String {
    if value.is_null() {
        substitute.to_owned()
    } else {
        value.to_string()
    }
}

/// A text; empty if there is none.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Decoded chunks that were not taken yet.
#[derive(Default)]
pub(crate) struct Chunks {
    queue: VecDeque<Chunk>,
}

impl Chunks {
    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.queue.push_back(chunk);
    }

    /// The oldest chunk.
    pub(crate) fn pop(&mut self) -> Option<Chunk> {
        self.queue.pop_front()
    }

    #[cfg(test)]
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Chunk> + '_ {
        self.queue.drain(..)
    }
}

/// An id for a call without one, unique within a history of many answers.
pub(crate) fn new_call_id() -> String {
    format!("call_{:016x}", fastrand::u64(..))
}

/// Whether [`new_call_id`] made this id.
pub(crate) fn is_made_up(id: &str) -> bool {
    id.strip_prefix("call_").is_some_and(|rest| {
        rest.len() == 16
            && rest
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// Decodes the events of one answer in one format.
pub(crate) trait Decode: Send {
    /// Decodes an event.
    fn event(&mut self, name: &[u8], data: &[u8], out: &mut Chunks) -> Result<(), Broken>;

    /// Decodes an answer that was not streamed.
    fn whole(&mut self, data: &[u8], out: &mut Chunks) -> Result<(), Broken>;

    /// Whether events come in Amazon's frames.
    fn is_framed(&self) -> bool {
        false
    }

    /// Whether the terminator was read.
    fn is_done(&self) -> bool {
        false
    }

    /// The stop reason; `None` while the answer is incomplete.
    fn stop(&self) -> Result<Option<StopReason>, Broken>;
}
