//! Messages that are put into a run in flight (RUN-8).
//!
//! Invariants: what was accepted enters the history, at the next step or with
//! the run's end, or its sender is told that it did not; what waits is bounded in number and in bytes.

use crate::Error;
use crate::registry::Shared;
use crate::run::{Facts, Publisher};
use crabtalk_domain::{AgentEvent, ConversationKey};
use std::sync::Arc;

/// Steering messages that wait for a step: a person writes a few while a tool
/// works, and a program that sends more is asked to wait.
pub(crate) const MAX_STEERS: usize = 64;

/// Their bytes together: all of them enter one request.
pub(crate) const MAX_STEER_BYTES: usize = 4 << 20;

/// How much is shown of one that was not kept: enough to know it again.
const MAX_SHOWN_BYTES: usize = 200;

/// What a run takes while it goes on.
pub(crate) struct Steers {
    /// The run, for hooks that rewrite what is put in.
    pub(crate) facts: Arc<Facts>,
    waiting: Vec<String>,
    bytes: usize,
}

/// Tells of messages that were accepted and could not be kept, those that wait
/// still among them: whoever sent one knows that it is lost.
pub(crate) fn tell_unkept(shared: &Shared, publisher: &Publisher, mut unkept: Vec<String>) {
    let waiting = shared.live().steers.take();
    unkept.extend(waiting.map(|mut steers| steers.take()).unwrap_or_default());
    for content in unkept {
        let shown = &content[..content.floor_char_boundary(MAX_SHOWN_BYTES)];
        let notice = format!("a message for the run was not kept, say it again: {shown:?}");
        publisher.publish(AgentEvent::Notice(notice));
    }
}

impl Steers {
    pub(crate) fn new(facts: Arc<Facts>) -> Self {
        Self {
            facts,
            waiting: Vec::new(),
            bytes: 0,
        }
    }

    /// Whether there is room for one of so many bytes.
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

    pub(crate) fn push(&mut self, key: &ConversationKey, content: String) -> Result<(), Error> {
        self.check(key, content.len())?;
        self.bytes += content.len();
        self.waiting.push(content);
        Ok(())
    }

    pub(crate) fn take(&mut self) -> Vec<String> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}
