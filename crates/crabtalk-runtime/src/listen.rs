//! Reads a model's answer and enforces its limits (MODEL-9).
//!
//! Invariants: every answer passes here, summaries too; no chunk beyond a limit is
//! returned; a model that never pauses does not starve other tasks.

use crate::Limits;
use crabtalk_domain::BoxStream;
use crabtalk_domain::model::{Chunk, Error, ErrorKind};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, timeout_at};

/// Minimum weight of a piece, for its overhead in memory.
const MIN_PIECE_BYTES: usize = 8;

/// Maximum signed pieces of reasoning: some models send one for each tool call, and
/// later requests repeat all of them.
const MAX_REASONING: usize = 1_024;

/// Reads one answer.
pub(crate) struct Listener {
    stream: BoxStream<'static, Result<Chunk, Error>>,
    measure: Measure,
    time: Duration,
    deadline: Instant,
}

impl Listener {
    /// Starts the time limit, which includes the wait for the first chunk.
    pub(crate) fn new(stream: BoxStream<'static, Result<Chunk, Error>>, limits: &Limits) -> Self {
        // Larger values overflow the clock.
        let time = limits.answer_time.min(Duration::from_secs(u32::MAX.into()));
        Self {
            stream,
            measure: Measure::new(limits),
            time,
            deadline: Instant::now() + time,
        }
    }

    /// The next chunk; `None` after the last. Nothing follows an error.
    pub(crate) async fn next(&mut self) -> Option<Result<Chunk, Error>> {
        // Yields to other tasks if the model never pauses.
        consume_budget().await;
        let next = timeout_at(self.deadline, self.stream.next()).await;
        let chunk = match next {
            Ok(next) if Instant::now() < self.deadline => next?,
            Ok(_) | Err(_) => return Some(Err(too_slow(self.time))),
        };
        Some(chunk.and_then(|chunk| self.measure.take(&chunk).map(|()| chunk)))
    }
}

/// The size of an answer so far.
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
                        "{} sent more than {MAX_REASONING} pieces of reasoning in one answer; the \
                         answer was stopped and discarded",
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
            let what = format!("sent more than {} bytes", self.max_bytes);
            return Err(self.beyond(&what, "limits.answer_bytes"));
        }
        Ok(())
    }

    fn beyond(&self, what: &str, limit: &str) -> Error {
        let message = format!(
            "{} {what} in one answer, the limit of {limit}; the answer was stopped and discarded",
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
        "the answer took longer than {time:?}, the limit of limits.answer_secs; it was stopped and \
         discarded"
    );
    Error::new(ErrorKind::Timeout, message)
}
