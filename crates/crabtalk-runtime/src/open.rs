//! The working state of a conversation, read from its log.
//!
//! Invariant: an invalid log is repaired, also on disk, before its content is used
//! (STORE-7).

use crate::history::{self, FAILED, NOT_APPROVED, UNANSWERED, UNKNOWN};
use crate::inner::Inner;
use crate::registry::Shared;
use crate::router::ASK_USER;
use crate::{Error, framing};
use crabtalk_domain::storage::{Opened, Position, Record, RunPhase, RunRecord};
use crabtalk_domain::{AgentEvent, History, Message, Origin};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum attempts to resume a run (STORE-7): a run that crashes the daemon each time
/// must not loop.
const MAX_TRIES: u32 = 3;

/// Number of request ids to remember (CONV-9).
pub(crate) const REMEMBERED_REQUESTS: usize = 256;

/// The reason in the end of an interrupted run.
pub(crate) const CUT_OFF: &str = "the daemon stopped during this run";

/// A conversation's working state while it is in memory.
pub(crate) struct OpenConversation {
    pub(crate) history: History,
    pub(crate) has_guests: bool,
    pub(crate) archived_messages: u64,
    /// Whether the history begins with a summary.
    pub(crate) has_summary: bool,
    /// Number of kept messages behind the summary.
    pub(crate) kept: usize,
    pub(crate) last_run: u64,
    pub(crate) requests: VecDeque<(String, u64)>,
    /// An interrupted run to resume.
    pub(crate) resumable: Option<RunRecord>,
    /// Steering messages accepted for that run.
    pub(crate) steers: Vec<String>,
    /// An interrupted run to report to the next client.
    pub(crate) interrupted: Option<RunRecord>,
    pub(crate) last_end: Option<RunRecord>,
}

/// What to do about a run without an end in the log.
pub(crate) enum Cut {
    /// No run lacks its end.
    Nothing,
    CarriedOn(RunRecord),
    /// It ended with the daemon.
    Over(RunRecord, String),
    /// It ended with a panic.
    Failed(RunRecord),
}

impl Cut {
    /// For a log that is opened for the first time since a crash.
    pub(crate) fn by_crash(opened: &Opened, resume: bool) -> Self {
        let Some(run) = opened.open_run.clone() else {
            return Self::Nothing;
        };
        if !resume {
            return Self::Over(run, CUT_OFF.into());
        }
        if run.tries >= MAX_TRIES {
            let tries = run.tries;
            let reason = format!("{CUT_OFF}, and {tries} more times after the run was resumed");
            return Self::Over(run, reason);
        }
        match Origin::parse(&run.origin) {
            Some(_) => Self::CarriedOn(run),
            // The parent of a delegate has ended.
            None => Self::Over(run, CUT_OFF.into()),
        }
    }

    /// For a log that is read again after a panic.
    pub(crate) fn by_panic(opened: &Opened, number: u64) -> Self {
        match opened.open_run.clone() {
            Some(run) if run.id == number => Self::Failed(run),
            Some(run) => Self::Over(run, CUT_OFF.into()),
            None => Self::Nothing,
        }
    }

    /// The record that closes the run.
    fn closed(&self, now: String) -> Option<RunRecord> {
        match self {
            Self::Nothing | Self::CarriedOn(_) => None,
            Self::Over(run, reason) => Some(interrupted(run.clone(), reason.clone(), now)),
            Self::Failed(run) => Some(RunRecord {
                id: run.id,
                phase: RunPhase::End,
                code: Error::Panicked.code(),
                error: Error::Panicked.to_string(),
                at: now,
                ..RunRecord::default()
            }),
        }
    }
}

/// The record of an interrupted run.
pub(crate) fn interrupted(run: RunRecord, reason: String, now: String) -> RunRecord {
    RunRecord {
        phase: RunPhase::Interrupted,
        code: 500,
        error: reason,
        at: now,
        ..run
    }
}

/// Converts steering messages to messages of the history.
fn messages(rt: &Inner, steers: Vec<String>) -> Vec<Arc<Message>> {
    let message = |content: String| {
        let mut message = Message::user(content);
        message.at = rt.now();
        Arc::new(message)
    };
    steers.into_iter().map(message).collect()
}

/// The event that reports an interrupted run.
pub(crate) fn interruption(cut: &RunRecord) -> AgentEvent {
    let reason = match cut.error.as_str() {
        "" => CUT_OFF,
        reason => reason,
    };
    AgentEvent::Interrupted {
        run: cut.id,
        reason: reason.into(),
    }
}

impl OpenConversation {
    /// Repairs the log, also on disk, and reads the state. Also returns the run that
    /// this closes as interrupted.
    pub(crate) async fn take(
        rt: &Inner,
        shared: &Shared,
        opened: Opened,
        cut: Cut,
    ) -> Result<(Self, Option<RunRecord>), Error> {
        let waiting = opened.waiting;
        let panicked = matches!(cut, Cut::Failed(_));
        let repaired = history::repair(opened.history, |call| match call.name.as_str() {
            _ if panicked => FAILED,
            ASK_USER => UNANSWERED,
            _ if waiting.contains(&call.id) => NOT_APPROVED,
            _ => UNKNOWN,
        });
        shared.set_log(Some(opened.log));
        let added = repaired.added.into_iter();
        let mut records: Vec<Record> = added.map(Record::Message).collect();
        let closed = cut.closed(rt.now());
        records.extend(closed.clone().map(Record::Run));
        // A resumed run consumes them itself.
        let (steers, late) = match &cut {
            Cut::CarriedOn(_) => (opened.steers, Vec::new()),
            Cut::Nothing | Cut::Over(..) | Cut::Failed(_) => {
                (Vec::new(), messages(rt, opened.steers))
            }
        };
        records.extend(late.iter().cloned().map(Record::Message));
        if !records.is_empty() {
            shared.append(&records).await?;
        }
        let cut_off = closed.clone().filter(|_| !panicked);
        let last_end = closed.or(opened.last_end);
        // An interruption without a later run is reported to the next
        // client.
        let interrupted = last_end
            .clone()
            .filter(|end| end.phase == RunPhase::Interrupted && end.id == opened.last_run);
        let mut history: History = repaired.history.into();
        history.extend(late);
        let open = Self {
            has_guests: framing::has_guests(&history),
            history,
            steers,
            has_summary: opened.has_summary,
            kept: opened.kept,
            archived_messages: opened.archived_messages,
            last_run: opened.last_run,
            requests: opened.requests.into(),
            resumable: match cut {
                Cut::CarriedOn(run) => Some(run),
                Cut::Nothing | Cut::Over(..) | Cut::Failed(_) => None,
            },
            interrupted,
            last_end,
        };
        let mut live = shared.live();
        live.meta = opened.meta;
        live.message_count = open.message_count();
        drop(live);
        Ok((open, cut_off))
    }

    /// Appends the steering messages of a run that cannot be resumed.
    pub(crate) async fn keep_late_steers(
        &mut self,
        rt: &Inner,
        shared: &Shared,
    ) -> Result<Position, Error> {
        let late = messages(rt, std::mem::take(&mut self.steers));
        let records: Vec<Record> = late.iter().cloned().map(Record::Message).collect();
        let end = shared.append(&records).await?;
        self.history.extend(late);
        shared.live().message_count = self.message_count();
        Ok(end)
    }

    /// The run of an earlier request (CONV-9).
    pub(crate) fn run_of(&self, id: &str) -> Option<u64> {
        let known = self.requests.iter().find(|(known, _)| known == id);
        known.map(|(_, run)| *run)
    }

    /// Begins a new working history with a summary, if any, and the kept tail.
    pub(crate) fn begin_anew(&mut self, summary: &str, keep: usize) {
        let archived = self.history.len() - keep;
        // An earlier summary does not count as a message.
        self.archived_messages += (archived - usize::from(self.has_summary)) as u64;
        let kept = self.history[archived..].iter().cloned();
        self.has_summary = !summary.is_empty();
        let summary = self.has_summary.then(|| Arc::new(Message::user(summary)));
        self.history = summary.into_iter().chain(kept).collect();
        self.kept = keep;
        self.has_guests = framing::has_guests(&self.history);
    }

    /// The summary at the beginning, if no message follows it.
    pub(crate) fn fresh_summary(&self) -> Option<&str> {
        let is_fresh = self.has_summary && self.history.len() <= 1 + self.kept;
        let summary = self.history.first().filter(|_| is_fresh)?;
        Some(&summary.content)
    }

    /// Whether the conversation has archives.
    pub(crate) fn has_archives(&self) -> bool {
        self.has_summary || self.archived_messages > 0
    }

    /// Number of messages, including archived ones.
    pub(crate) fn message_count(&self) -> u64 {
        self.archived_messages + (self.history.len() - usize::from(self.has_summary)) as u64
    }
}
