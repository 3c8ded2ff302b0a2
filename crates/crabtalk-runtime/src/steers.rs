//! Messages that are put into a run in flight (RUN-8).
//!
//! Invariants: what was accepted enters the history, at the next step or with
//! the run's end; what waits is bounded in number and in bytes.

use crate::Error;
use crate::run::Facts;
use crabtalk_domain::ConversationKey;
use std::sync::Arc;

/// Steering messages that wait for a step: a person writes a few while a tool
/// works, and a program that sends more is asked to wait.
pub(crate) const MAX_STEERS: usize = 64;

/// Their bytes together: all of them enter one request.
pub(crate) const MAX_STEER_BYTES: usize = 4 << 20;

/// What a run takes while it goes on.
pub(crate) struct Steers {
    /// The run, for hooks that rewrite what is put in.
    pub(crate) facts: Arc<Facts>,
    waiting: Vec<String>,
    bytes: usize,
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
