//! A conversation's working state, as its log gives it.
//!
//! Invariant: what the log holds is made valid before anybody reads it, on
//! disk too (STORE-7).

use crate::history::{self, FAILED, NOT_APPROVED, UNANSWERED, UNKNOWN};
use crate::inner::Inner;
use crate::registry::Shared;
use crate::router::ASK_USER;
use crate::{Error, framing};
use crabtalk_domain::storage::{Opened, Position, Record, RunPhase, RunRecord};
use crabtalk_domain::{AgentEvent, History, Message, Origin};
use std::collections::VecDeque;
use std::sync::Arc;

/// How often a run is carried on (STORE-7): a daemon that was killed for other
/// reasons comes back, and a run that ends it every time is found out soon.
const MAX_TRIES: u32 = 3;

/// Request ids that are remembered (CONV-9).
pub(crate) const REMEMBERED_REQUESTS: usize = 256;

/// Why a run has no end of its own.
pub(crate) const CUT_OFF: &str = "the daemon stopped while this run was going on";

/// A conversation's working state while it is in memory.
pub(crate) struct Open {
    pub(crate) history: History,
    pub(crate) has_guests: bool,
    pub(crate) archived_messages: u64,
    /// Whether the history begins with a summary.
    pub(crate) has_summary: bool,
    /// Messages behind the summary that were kept from before it.
    pub(crate) kept: usize,
    pub(crate) last_run: u64,
    pub(crate) requests: VecDeque<(String, u64)>,
    /// A run that a crash cut off and that is to be carried on.
    pub(crate) resumable: Option<RunRecord>,
    /// What was accepted for that run and waits for a step.
    pub(crate) steers: Vec<String>,
    /// A run that a crash cut off, to be told to the next client.
    pub(crate) interrupted: Option<RunRecord>,
    pub(crate) last_end: Option<RunRecord>,
}

/// What became of a run that never wrote its end.
pub(crate) enum Cut {
    /// Every run has its end.
    Nothing,
    CarriedOn(RunRecord),
    /// It is over, by the daemon's end.
    Over(RunRecord, String),
    /// It is over, by a panic.
    Failed(RunRecord),
}

impl Cut {
    /// Of a log that is opened for the first time since.
    pub(crate) fn by_crash(opened: &Opened, resume: bool) -> Self {
        let Some(run) = opened.open_run.clone() else {
            return Self::Nothing;
        };
        if !resume {
            return Self::Over(run, CUT_OFF.into());
        }
        if run.tries >= MAX_TRIES {
            let tries = run.tries;
            let reason = format!("{CUT_OFF}, and {tries} times more when it was carried on");
            return Self::Over(run, reason);
        }
        match Origin::parse(&run.origin) {
            Some(_) => Self::CarriedOn(run),
            // A delegate's parent has been told already; it is gone.
            None => Self::Over(run, CUT_OFF.into()),
        }
    }

    /// Of a log that is opened again because a run of this daemon panicked.
    pub(crate) fn by_panic(opened: &Opened, number: u64) -> Self {
        match opened.open_run.clone() {
            Some(run) if run.id == number => Self::Failed(run),
            Some(run) => Self::Over(run, CUT_OFF.into()),
            None => Self::Nothing,
        }
    }

    /// What is written of it.
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

/// The line that closes a run which a crash cut off.
pub(crate) fn interrupted(run: RunRecord, reason: String, now: String) -> RunRecord {
    RunRecord {
        phase: RunPhase::Interrupted,
        code: 500,
        error: reason,
        at: now,
        ..run
    }
}

/// What was accepted for a run that takes it no more, as messages.
fn messages(rt: &Inner, steers: Vec<String>) -> Vec<Arc<Message>> {
    let message = |content: String| {
        let mut message = Message::user(content);
        message.at = rt.now();
        Arc::new(message)
    };
    steers.into_iter().map(message).collect()
}

/// The event that tells a client of a run that a crash cut off.
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

impl Open {
    /// Makes what the log holds valid, on disk too. Answers with the run, too,
    /// that the log says from now on was cut off.
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
        // A run that is carried on takes them itself.
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
        // One that nobody has been told of since is told to whoever comes next,
        // whatever came between.
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

    /// Keeps what was accepted for a run that is not carried on after all.
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

    /// The run of a request that was made before (CONV-9).
    pub(crate) fn run_of(&self, id: &str) -> Option<u64> {
        let known = self.requests.iter().find(|(known, _)| known == id);
        known.map(|(_, run)| *run)
    }

    /// Begins the working history with a summary, if there is one, and what is
    /// kept.
    pub(crate) fn begin_anew(&mut self, summary: &str, keep: usize) {
        let archived = self.history.len() - keep;
        // An earlier summary is no message of its own.
        self.archived_messages += (archived - usize::from(self.has_summary)) as u64;
        let kept = self.history[archived..].iter().cloned();
        self.has_summary = !summary.is_empty();
        let summary = self.has_summary.then(|| Arc::new(Message::user(summary)));
        self.history = summary.into_iter().chain(kept).collect();
        self.kept = keep;
        self.has_guests = framing::has_guests(&self.history);
    }

    /// The summary that the history begins with, if nothing was said since.
    pub(crate) fn fresh_summary(&self) -> Option<&str> {
        let is_fresh = self.has_summary && self.history.len() <= 1 + self.kept;
        let summary = self.history.first().filter(|_| is_fresh)?;
        Some(&summary.content)
    }

    /// Whether it began anew at least once.
    pub(crate) fn has_archives(&self) -> bool {
        self.has_summary || self.archived_messages > 0
    }

    /// Messages, archived ones included.
    pub(crate) fn message_count(&self) -> u64 {
        self.archived_messages + (self.history.len() - usize::from(self.has_summary)) as u64
    }
}
