//! The port that hears of the end of every run.

use crate::storage::{RunPhase, RunRecord};
use crate::{BoxFuture, CallTotal, ConversationKey, Origin, Usage};
use std::sync::Arc;
use std::time::Duration;

/// How a run came out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunOutcome {
    /// Its number within the conversation.
    pub run: u64,
    /// 0 on success, else one of the codes of WIRE-3.
    pub code: u32,
    /// Why it failed; empty on success.
    pub error: String,
    /// Whether the daemon's own end cut it off.
    pub interrupted: bool,
    /// Tokens of all its model calls; `None` where a crash took the account, and
    /// in old logs.
    pub usage: Option<Usage>,
    /// How long it took; `None` as above.
    pub duration: Option<Duration>,
}

impl RunOutcome {
    /// As the log has it.
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

/// A run that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnded {
    /// Its conversation.
    pub key: Arc<ConversationKey>,
    /// Who spoke: the conversation's agent, or a guest.
    pub speaker: String,
    /// Where it came from. `None` for a delegate that a crash cut off: its log
    /// does not describe the parent.
    pub origin: Option<Origin>,
    /// The id under which it was asked for; empty where none was given (CONV-9).
    pub request_id: String,
    /// How it came out.
    pub outcome: RunOutcome,
    /// The last text of the agent, up to a limit; empty after a crash or a
    /// panic.
    pub answer: String,
    /// What its model calls, which are booked already, come to; `None` where a
    /// crash took the account.
    pub total: Option<CallTotal>,
    /// The run that goes on where a crash cut this one off (STORE-7), under the
    /// same request id: that one's end is the end of the work.
    pub carried_on_as: Option<u64>,
}

/// Receives the end of every run.
///
/// Each run that sent its Start is reported once, however it ended: success,
/// failure, kill, panic, shutdown. A run that a crash interrupted is reported when
/// its conversation is next opened, maybe by a later daemon. The log has the end
/// first; if the log could not be written, a later daemon may report the run again
/// as interrupted. Implementations identify runs by conversation and number, and
/// after a restart ask the runtime for outcomes that they still wait for.
///
/// The call is awaited before the conversation's next command. It must not wait for
/// a run.
pub trait RunEnds: Send + Sync {
    /// A run is over.
    fn on_run_end<'a>(&'a self, ended: &'a RunEnded) -> BoxFuture<'a, ()>;
}
