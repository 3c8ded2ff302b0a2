//! The account of one entry: a state that each of its lines updates.
//!
//! Invariant: the account depends only on its lines in order, so that a restart
//! continues with the same state.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How far a clock may be set back without deciding due times again: a day and the hour of
/// a change. After a larger step the clock was or is wrong, and waiting for it to catch up
/// could silence entries for years.
pub(crate) const SET_BACK: SignedDuration = SignedDuration::from_hours(25);

/// One line of the books.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// An entry is new or its due times changed.
    Known {
        /// The entry's number.
        id: u64,
        /// See `CronEntry::print`.
        print: String,
        /// The time from which its due times count.
        at: Timestamp,
    },
    /// An entry was paused or resumed.
    Paused {
        /// The entry.
        id: u64,
        /// Whether it is now paused.
        paused: bool,
        /// When it happened.
        at: Timestamp,
    },
    /// An entry was removed. Its number is not reused.
    Removed {
        /// The entry.
        id: u64,
    },
    /// A run begins; repeated with the same number if the daemon ended before the run began.
    Fired(Fired),
    /// A run ended.
    Ended(Ended),
    /// Skipped due times.
    Skipped(Skipped),
}

/// The beginning of a run, which is recorded first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fired {
    /// The entry.
    pub id: u64,
    /// The run's number in the books.
    pub seq: u64,
    /// The due time; `None` for a run on demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// When it began.
    pub at: Timestamp,
    /// Whether it replaces missed due times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// Whether the entry ends with this run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// The agent of the conversation.
    pub agent: String,
    /// The sender of the conversation.
    pub sender: String,
    /// The beginning of the prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It succeeded.
    Ok,
    /// It ended with an error, or never began.
    Failed,
    /// It was killed.
    Killed,
    /// The daemon ended before the run.
    Interrupted,
}

impl Outcome {
    /// The name in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The usage of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of requests and answers.
    #[serde(default)]
    pub tokens: u64,
    /// Money, as far as prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// The entry.
    pub id: u64,
    /// The run's number in the books.
    pub seq: u64,
    /// Time at which the end was recorded.
    pub at: Timestamp,
    /// The outcome of the run.
    pub outcome: Outcome,
    /// The run's code in the protocol.
    #[serde(default)]
    pub code: u32,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Duration by a monotonic clock, in milliseconds.
    #[serde(default)]
    pub ms: u64,
    /// Its usage.
    #[serde(default)]
    pub usage: Usage,
    /// Number of the run within its conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Its refused calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Whether the run never began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstarted: bool,
}

/// Why a due time was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The last run was still running or queued.
    Overlap,
    /// Quiet hours.
    Quiet,
    /// The daemon was down, the machine asleep, or the clock set forward.
    Missed,
}

impl Why {
    /// The name in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Overlap => "overlap",
            Self::Quiet => "quiet",
            Self::Missed => "missed",
        }
    }
}

/// Skipped due times, from the first to the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// The entry.
    pub id: u64,
    /// The first due time.
    pub due: Timestamp,
    /// The last due time.
    pub last: Timestamp,
    /// Number of due times, up to a limit of the engine.
    pub count: u64,
    /// The reason.
    pub why: Why,
    /// Time of the decision.
    pub at: Timestamp,
}

/// The state of an entry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// The fingerprint of its schedule.
    pub print: String,
    /// Time up to which all due times are decided.
    pub mark: Timestamp,
    /// The previous `mark`, before the clock was set back far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<Timestamp>,
    /// Whether the entry was paused, by a person or because of failures.
    pub paused: bool,
    /// Whether the entry's only run has begun.
    pub used: bool,
    /// Number of runs that began.
    pub fired: u64,
    /// Number of skipped due times.
    pub skipped: u64,
    /// Number of consecutive failures.
    pub failures: u32,
    /// The last run that began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Fired>,
    /// The end of the last run that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Total usage of its runs.
    pub usage: Usage,
    /// Number of the run in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<u64>,
}

impl Account {
    /// Updates the account with a line.
    pub fn take(&mut self, line: &Line) {
        match line {
            Line::Known { print, at, .. } => {
                self.print.clone_from(print);
                self.mark = *at;
                self.high = None;
                self.used = false;
                self.failures = 0;
                self.paused = false;
            }
            Line::Paused { paused, at, .. } => {
                self.paused = *paused;
                self.failures = 0;
                self.decided(*at);
            }
            Line::Fired(fired) => {
                let again = self.last.as_ref().is_some_and(|last| last.seq == fired.seq);
                if again {
                    self.begun_again();
                } else {
                    self.fired += 1;
                }
                if let Some(due) = fired.due.filter(|_| !again) {
                    self.decided(due);
                }
                self.used |= fired.once;
                self.open = Some(fired.seq);
                self.last = Some(fired.clone());
            }
            Line::Ended(ended) => self.ended(ended),
            Line::Skipped(skipped) => {
                self.decided(skipped.last);
                self.skipped += skipped.count;
            }
            Line::Removed { .. } => {}
        }
    }

    /// Reverts the failure of a run that begins again.
    fn begun_again(&mut self) {
        let known = self.ended.as_ref().map(|ended| ended.outcome);
        if known == Some(Outcome::Interrupted) {
            self.failures = self.failures.saturating_sub(1);
            self.ended = None;
        }
    }

    fn ended(&mut self, ended: &Ended) {
        if self.open == Some(ended.seq) {
            self.open = None;
        }
        // A run that never began does not use up the entry.
        if ended.unstarted {
            self.used = false;
        }
        // A run that a crash left open was closed as interrupted; this is its actual
        // end.
        let known = self.ended.as_ref().filter(|known| known.seq == ended.seq);
        if known.is_some_and(|known| known.outcome == Outcome::Interrupted) {
            self.failures = self.failures.saturating_sub(1);
        }
        match ended.outcome {
            Outcome::Ok => self.failures = 0,
            // A kill by a person does not count as a failure of the entry.
            Outcome::Killed => {}
            Outcome::Failed | Outcome::Interrupted => {
                self.failures = self.failures.saturating_add(1);
            }
        }
        self.usage.tokens = self.usage.tokens.saturating_add(ended.usage.tokens);
        if let Some(money) = ended.usage.money {
            self.usage.money = Some(self.usage.money.unwrap_or_default() + money);
        }
        self.ended = Some(ended.clone());
    }

    /// Moves the mark. A due time far before the mark was decided after the clock was set
    /// back.
    fn decided(&mut self, due: Timestamp) {
        self.set_back(due);
        self.mark = self.mark.max(due);
        self.passed(due);
    }

    /// Updates the account for the time `now`; returns `true` if the clock was set back so
    /// far that due times count again.
    pub(crate) fn set_back(&mut self, now: Timestamp) -> bool {
        let far = self.mark.duration_since(now) > SET_BACK;
        if far {
            self.high = self.high.max(Some(self.mark));
            self.mark = now;
        }
        far
    }

    /// Updates the account for the time `now`; returns `true` if it passed the mark from before
    /// the clock was set back.
    pub(crate) fn passed(&mut self, now: Timestamp) -> bool {
        let Some(high) = self.high.filter(|high| *high <= now) else {
            return false;
        };
        self.high = None;
        self.mark = self.mark.max(high);
        true
    }
}

impl Line {
    /// The entry of the line.
    pub fn id(&self) -> u64 {
        match self {
            Self::Known { id, .. } | Self::Paused { id, .. } | Self::Removed { id } => *id,
            Self::Fired(fired) => fired.id,
            Self::Ended(ended) => ended.id,
            Self::Skipped(skipped) => skipped.id,
        }
    }
}
