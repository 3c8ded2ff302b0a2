//! Messages that are put into a run in flight (RUN-8).
//!
//! Invariants: what was accepted is in the log before that is said, and enters the history
//! once: at the next step, with the run's end, or when the log is next opened after whatever
//! came between; what waits is bounded in number and in bytes.

use super::Shared;
use crate::Error;
use crate::facts::Facts;
use crate::publisher::Publisher;
use crabtalk_domain::storage::{self, MetaRecord, Position, Record};
use crabtalk_domain::{AgentEvent, BoxFuture, ConversationKey};
use std::sync::Arc;

/// Steering messages that wait for a step: a person writes a few while a tool
/// works, and a program that sends more is asked to wait.
pub(crate) const MAX_STEERS: usize = 64;

/// Their bytes together: all of them enter one request.
pub(crate) const MAX_STEER_BYTES: usize = 4 << 20;

/// How much is shown of one that was not taken: enough to know it again.
const MAX_SHOWN_BYTES: usize = 200;

/// What a run takes while it goes on.
pub(crate) struct Steers {
    /// The run, for hooks that rewrite what is put in.
    pub(crate) facts: Arc<Facts>,
    waiting: Vec<String>,
    bytes: usize,
}

/// Tells of messages that the run did not take, since its log failed; those that
/// wait still are among them. The log says that they wait, and whoever opens it next
/// takes them into the history.
pub(crate) fn tell_untaken(shared: &Shared, publisher: &Publisher, mut untaken: Vec<String>) {
    let waiting = shared.live().steers.take();
    untaken.extend(waiting.map(|mut steers| steers.take()).unwrap_or_default());
    for content in untaken {
        let shown = &content[..content.floor_char_boundary(MAX_SHOWN_BYTES)];
        let notice =
            format!("a message came too late for the run and is kept for the next: {shown:?}");
        publisher.publish(AgentEvent::Notice(notice));
    }
}

impl Steers {
    /// With what was accepted for a run that this one carries on.
    pub(crate) fn new(facts: Arc<Facts>, waiting: Vec<String>) -> Self {
        Self {
            facts,
            bytes: waiting.iter().map(String::len).sum(),
            waiting,
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

    /// Puts one in, and into the log in the same breath, so that they wait in the
    /// order in which the log has them. Without the log it has to be taken back.
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

    /// Takes one back that is not in the log.
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
