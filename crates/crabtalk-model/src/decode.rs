//! What reads the events of one format: it takes them one by one, and lays chunks
//! ready.

use crate::random::Random;
use crabtalk_domain::model::{Chunk, StopReason};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a decoder could not make sense of.
#[derive(Debug)]
pub(crate) enum Broken {
    /// Not the JSON it should be.
    Json(String),
    /// Not what the format allows.
    Nonsense(String),
    /// The provider says itself that it failed.
    Reported(Value),
    /// An event longer than any answer has.
    TooLong,
}

impl Broken {
    pub(crate) fn json(error: serde_json::Error) -> Self {
        Self::Json(error.to_string())
    }

    pub(crate) fn utf8(error: std::str::Utf8Error) -> Self {
        Self::Json(error.to_string())
    }
}

/// Where decoders put what they understood.
pub(crate) struct Chunks {
    queue: VecDeque<Chunk>,
    random: Arc<Random>,
}

impl Chunks {
    pub(crate) fn new(random: Arc<Random>) -> Self {
        Self {
            queue: VecDeque::new(),
            random,
        }
    }

    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.queue.push_back(chunk);
    }

    /// The first that was not taken yet.
    pub(crate) fn pop(&mut self) -> Option<Chunk> {
        self.queue.pop_front()
    }

    pub(crate) fn last(&self) -> Option<&Chunk> {
        self.queue.back()
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    #[cfg(test)]
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Chunk> + '_ {
        self.queue.drain(..)
    }

    pub(crate) fn new_call_id(&self) -> String {
        self.random.call_id()
    }
}

/// What reads the events of one answer in one format.
pub(crate) trait Decode: Send {
    /// Takes in an event of this name.
    fn event(&mut self, name: &[u8], data: &[u8], out: &mut Chunks) -> Result<(), Broken>;

    /// Takes in an answer that was not streamed.
    fn whole(&mut self, data: &[u8], out: &mut Chunks) -> Result<(), Broken>;

    /// Whether events come in Amazon's frames.
    fn is_framed(&self) -> bool {
        false
    }

    /// Whether the next event may be like the last one. Of formats that do not
    /// say so every event differs: figures here, padding there.
    fn is_amid(&self) -> bool {
        false
    }

    /// Whether the terminator was seen; else that is the end of the body.
    fn is_done(&self) -> bool {
        false
    }

    /// How it stopped; `None` while it may go on, and when it was cut.
    fn stop(&self) -> Result<Option<StopReason>, Broken>;
}
