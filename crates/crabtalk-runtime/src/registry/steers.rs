//! Steering messages to a run in flight (RUN-8).
//!
//! Invariants: an accepted message is in the log before it is acknowledged, and
//! enters the history once: at the next step, with the run's end, or when the log
//! is opened next; number and bytes of waiting messages are bounded.

use super::Shared;
use crate::Error;
use crate::facts::Facts;
use crate::publisher::Publisher;
use crabtalk_domain::storage::{self, MetaRecord, Position, Record};
use crabtalk_domain::{AgentEvent, BoxFuture, ConversationKey};
use std::sync::Arc;

/// Maximum number of waiting steering messages: more than a person writes during a
/// tool call.
pub(crate) const MAX_STEERS: usize = 64;

/// Maximum bytes of waiting steering messages: one request contains all of them.
pub(crate) const MAX_STEER_BYTES: usize = 4 << 20;

/// Maximum bytes shown of a message that was not consumed.
const MAX_SHOWN_BYTES: usize = 200;

/// The steering messages that wait for the next step of a run.
pub(crate) struct Steers {
    /// The run, for hooks that rewrite messages.
    pub(crate) facts: Arc<Facts>,
    waiting: Vec<String>,
    bytes: usize,
}

/// Reports messages that a run with a failed log did not consume, including waiting
/// ones. The log has them, and its next reader adds them to the history.
pub(crate) fn tell_untaken(shared: &Shared, publisher: &Publisher, mut untaken: Vec<String>) {
    let waiting = shared.live().steers.take();
    untaken.extend(waiting.map(|mut steers| steers.take()).unwrap_or_default());
    for content in untaken {
        let shown = &content[..content.floor_char_boundary(MAX_SHOWN_BYTES)];
        let notice = format!(
            "a steering message came too late for this run; the next run gets it: {shown:?}"
        );
        publisher.publish(AgentEvent::Notice(notice));
    }
}

impl Steers {
    /// Starts with the messages accepted for a resumed run.
    pub(crate) fn new(facts: Arc<Facts>, waiting: Vec<String>) -> Self {
        Self {
            facts,
            bytes: waiting.iter().map(String::len).sum(),
            waiting,
        }
    }

    /// Checks the limits for a message of this many bytes.
    pub(crate) fn check(&self, key: &ConversationKey, bytes: usize) -> Result<(), Error> {
        let full = |bound: String| {
            Err(Error::SteersFull {
                key: key.clone(),
                bound,
            })
        };
        if self.waiting.len() >= MAX_STEERS {
            return full(MAX_STEERS.to_string());
        }
        if self.bytes + bytes > MAX_STEER_BYTES {
            return full(format!("{MAX_STEER_BYTES} bytes"));
        }
        Ok(())
    }

    /// Adds a message here and to the log under one lock, so that both have the same order.
    /// If the append fails, call [`Steers::take_back`].
    pub(crate) fn push(
        &mut self,
        shared: &Shared,
        content: String,
    ) -> Result<BoxFuture<'static, Result<Position, storage::Error>>, Error> {
        self.check(&shared.key, content.len())?;
        let appended = shared.append(&[Record::Meta(MetaRecord {
            steers: Some(vec![content.clone()]),
            ..MetaRecord::default()
        })]);
        self.bytes += content.len();
        self.waiting.push(content);
        Ok(appended)
    }

    /// Removes a message that could not be appended to the log.
    pub(crate) fn take_back(&mut self, content: &str) {
        if let Some(at) = self.waiting.iter().rposition(|one| one == content) {
            self.bytes -= self.waiting.remove(at).len();
        }
    }

    pub(crate) fn waiting(&self) -> &[String] {
        &self.waiting
    }

    pub(crate) fn take(&mut self) -> Vec<String> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}
