//! The port that receives the end of every run.

use crate::storage::{RunPhase, RunRecord};
use crate::{BoxFuture, CallTotal, ConversationKey, Origin, Usage};
use std::sync::Arc;
use std::time::Duration;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunOutcome {
    /// Its number within the conversation.
    pub run: u64,
    /// 0 on success, else one of the codes of WIRE-3.
    pub code: u32,
    /// The reason for a failure; empty on success.
    pub error: String,
    /// Whether the end of the daemon interrupted the run.
    pub interrupted: bool,
    /// Tokens of all model calls; `None` for an interrupted run and in old logs.
    pub usage: Option<Usage>,
    /// The duration; `None` for an interrupted run and in old logs.
    pub duration: Option<Duration>,
}

impl RunOutcome {
    /// Reads the outcome from a record of the log.
    pub fn of_record(end: &RunRecord) -> Self {
        Self {
            run: end.id,
            code: end.code,
            error: end.error.clone(),
            interrupted: end.phase == RunPhase::Interrupted,
            usage: end.usage,
            duration: end.duration_ms.map(Duration::from_millis),
        }
    }
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnded {
    /// The conversation of the run.
    pub key: Arc<ConversationKey>,
    /// The agent that answered: the conversation's agent or a guest.
    pub speaker: String,
    /// The origin; `None` for an interrupted delegate, since its log does not describe
    /// the parent.
    pub origin: Option<Origin>,
    /// The client's id of the request; empty if it gave none (CONV-9).
    pub request_id: String,
    /// The outcome of the run.
    pub outcome: RunOutcome,
    /// The agent's last text, truncated; empty after a crash or a panic.
    pub answer: String,
    /// The total of the model calls, which are booked already; `None` for an interrupted
    /// run.
    pub total: Option<CallTotal>,
    /// The run that resumes this interrupted run under the same request id (STORE-7);
    /// that run's end is the end of the work.
    pub carried_on_as: Option<u64>,
}

/// Receives the end of every run.
///
/// Each run that published its Start is reported once, however it ended: success,
/// failure, kill, panic, shutdown. A run that a crash interrupted is reported when its
/// conversation is next opened, possibly by a later daemon. The end is in the log first;
/// if the log could not be written, a later daemon may report the run again as
/// interrupted. Implementations identify runs by conversation and number, and after a
/// restart ask the runtime for missing outcomes.
///
/// The call is awaited before the conversation's next command, so it must not wait
/// for a run.
pub trait RunEnds: Send + Sync {
    /// Receives the end of a run.
    fn on_run_end<'a>(&'a self, ended: &'a RunEnded) -> BoxFuture<'a, ()>;
}
