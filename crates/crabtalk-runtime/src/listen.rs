//! Reads an answer, and stops one that has no end (MODEL-9).
//!
//! Invariants: every answer of every model comes through here, that of a
//! summary too; no chunk beyond a limit is handed on; a model that never pauses
//! leaves all other tasks their turn.

use crate::Limits;
use crabtalk_domain::BoxStream;
use crabtalk_domain::model::{Chunk, Error, ErrorKind};
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// The least weight of a piece, for its place in memory.
const MIN_PIECE_BYTES: usize = 8;

/// Signed pieces of reasoning: one for each tool call of some models, and all are
/// sent back with later requests.
const MAX_REASONING: usize = 1_024;

/// Chunks taken in without a pause before others have their turn: a fraction
/// of a millisecond.
const TURN_CHUNKS: usize = 64;

/// The same for long chunks.
const TURN_BYTES: usize = 64 * 1024;

/// An answer on its way in.
pub(crate) struct Listener {
    stream: BoxStream<'static, Result<Chunk, Error>>,
    measure: Measure,
    time: Duration,
    deadline: Pin<Box<Sleep>>,
    /// Chunks and bytes since others had their turn.
    chunks: usize,
    bytes: usize,
}

impl Listener {
    /// Its time begins now: what is waited for before the first word counts.
    pub(crate) fn new(stream: BoxStream<'static, Result<Chunk, Error>>, limits: &Limits) -> Self {
        // Larger values overflow the clock.
        let time = limits.answer_time.min(Duration::from_secs(u32::MAX.into()));
        Self {
            stream,
            measure: Measure::new(limits),
            time,
            deadline: Box::pin(sleep_until(Instant::now() + time)),
            chunks: 0,
            bytes: 0,
        }
    }

    /// The next chunk; `None` after the last. After an error nothing follows.
    pub(crate) async fn next(&mut self) -> Option<Result<Chunk, Error>> {
        if self.chunks >= TURN_CHUNKS || self.bytes >= TURN_BYTES {
            self.give_way().await;
            if Instant::now() >= self.deadline.deadline() {
                return Some(Err(too_slow(self.time)));
            }
        }
        let mut waited = false;
        let next = poll_fn(|cx| {
            if let Poll::Ready(next) = self.stream.as_mut().poll_next(cx) {
                return Poll::Ready(next);
            }
            waited = true;
            let due = self.deadline.as_mut().poll(cx).is_ready();
            // A stream that used up this turn leaves the timer none, and may
            // do so in each.
            if due || Instant::now() >= self.deadline.deadline() {
                Poll::Ready(Some(Err(too_slow(self.time))))
            } else {
                Poll::Pending
            }
        })
        .await;
        if waited {
            (self.chunks, self.bytes) = (0, 0);
        }
        let chunk = match next? {
            Ok(chunk) => chunk,
            Err(error) => return Some(Err(error)),
        };
        self.chunks += 1;
        self.bytes += said(&chunk);
        Some(self.measure.take(&chunk).map(|()| chunk))
    }

    /// Yields once if this answer never did, so that its readers can write.
    pub(crate) async fn give_way(&mut self) {
        if self.chunks > 0 {
            (self.chunks, self.bytes) = (0, 0);
            tokio::task::yield_now().await;
        }
    }
}

/// How much of an answer there is.
struct Measure {
    max_bytes: usize,
    max_calls: usize,
    bytes: usize,
    reasoning: usize,
    model: String,
}

impl Measure {
    fn new(limits: &Limits) -> Self {
        Self {
            max_bytes: limits.answer_bytes,
            max_calls: limits.answer_calls,
            bytes: 0,
            reasoning: 0,
            model: String::new(),
        }
    }

    fn take(&mut self, chunk: &Chunk) -> Result<(), Error> {
        match chunk {
            Chunk::Answering { model, .. } => self.model.clone_from(model),
            Chunk::ToolCallStart { index, .. } => {
                if *index as usize >= self.max_calls {
                    let what = format!("made more than {} tool calls", self.max_calls);
                    return Err(self.beyond(&what, "limits.answer_calls"));
                }
            }
            Chunk::ThinkingSignature(_) => {
                self.reasoning += 1;
                if self.reasoning > MAX_REASONING {
                    let message = format!(
                        "{} gave more than {MAX_REASONING} pieces of reasoning in one answer; \
                         the answer was stopped and is not kept",
                        self.model
                    );
                    return Err(Error::new(ErrorKind::Limit, message));
                }
            }
            Chunk::Text(_)
            | Chunk::Notice(_)
            | Chunk::Thinking(_)
            | Chunk::ToolCallArguments { .. }
            | Chunk::Usage(_)
            | Chunk::Stop(_) => {}
        }
        self.bytes = self.bytes.saturating_add(said(chunk));
        if self.bytes > self.max_bytes {
            let what = format!("said more than {} bytes", self.max_bytes);
            return Err(self.beyond(&what, "limits.answer_bytes"));
        }
        Ok(())
    }

    fn beyond(&self, what: &str, limit: &str) -> Error {
        let message = format!(
            "{} {what} in one answer, the limit of {limit}; the answer was stopped and is not kept",
            self.model
        );
        Error::new(ErrorKind::Limit, message)
    }
}

fn said(chunk: &Chunk) -> usize {
    let piece = |bytes: usize| bytes.max(MIN_PIECE_BYTES);
    match chunk {
        Chunk::Text(text) | Chunk::Thinking(text) | Chunk::ThinkingSignature(text) => {
            piece(text.len())
        }
        Chunk::ToolCallStart { id, name, .. } => piece(id.len() + name.len()),
        Chunk::ToolCallArguments { fragment, .. } => piece(fragment.len()),
        Chunk::Answering { .. } | Chunk::Notice(_) | Chunk::Usage(_) | Chunk::Stop(_) => 0,
    }
}

fn too_slow(time: Duration) -> Error {
    let message = format!(
        "the answer took longer than {time:?}, the limit of limits.answer_secs; it was stopped \
         and is not kept"
    );
    Error::new(ErrorKind::Timeout, message)
}
