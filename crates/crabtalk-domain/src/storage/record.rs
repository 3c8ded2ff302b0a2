//! The lines of a conversation's log.

use crate::{ContextUse, Message, Mode, Usage};
use std::sync::Arc;

/// Title and working directory of a conversation; changed by appending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// RFC 3339 instant of its creation.
    pub created_at: String,
    /// Shown to people; empty until `set_title`.
    pub title: String,
    /// Where it works unless its agent has a folder (CONV-6): what the message
    /// that created it said. Empty in old logs.
    pub cwd: String,
    /// Whether `cwd` was set for this conversation, and comes before the agent's
    /// folder.
    pub own_cwd: bool,
    /// Seconds that its runs took together.
    pub uptime_secs: u64,
    /// Fill level of the context, if known.
    pub context: Option<ContextUse>,
}

/// Highest valid run number; a record with a larger one was not written by
/// CrabTalk. Every JSON reader represents this number exactly.
pub const MAX_RUN: u64 = 1 << 53;

/// A state change of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunPhase {
    /// It began.
    #[default]
    Start,
    /// It ended.
    End,
    /// It was found cut off after a crash.
    Interrupted,
}

/// A `{"run":{..}}` line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunRecord {
    /// Number within the conversation, from 1 to [`MAX_RUN`].
    pub id: u64,
    /// The state change.
    pub phase: RunPhase,
    /// Where it came from, as text.
    pub origin: String,
    /// The client's id for it; empty where none was given (CONV-9).
    pub request_id: String,
    /// For a start: the guest that answers, if any (RUN-2).
    pub guest: String,
    /// For a start: the run's own working directory, if it has one (CONV-6).
    pub cwd: String,
    /// For a start: the mode in force; `None` in old logs.
    pub mode: Option<Mode>,
    /// How it ended; 0 is success.
    pub code: u32,
    /// Why it failed; empty on success, and in old logs.
    pub error: String,
    /// For a start: how often the work was carried on before and with this run
    /// (STORE-7).
    pub tries: u32,
    /// For an end: tokens of all its model calls; `None` in old logs.
    pub usage: Option<Usage>,
    /// For an end: how long it took; `None` in old logs.
    pub duration_ms: Option<u64>,
    /// RFC 3339 instant.
    pub at: String,
}

impl RunRecord {
    /// Whether it says that a run did not succeed.
    pub fn is_failure(&self) -> bool {
        match self.phase {
            RunPhase::Start => false,
            RunPhase::End => self.code != 0,
            RunPhase::Interrupted => true,
        }
    }
}

/// State that a reader would otherwise have to look for before a marker;
/// written whole after each marker and in parts on change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetaRecord {
    /// New title.
    pub title: Option<String>,
    /// New working directory.
    pub cwd: Option<String>,
    /// Whether that is the conversation's own.
    pub own_cwd: Option<bool>,
    /// New total.
    pub uptime_secs: Option<u64>,
    /// How full the context is now.
    pub context: Option<ContextUse>,
    /// Number of the last run so far.
    pub last_run: Option<u64>,
    /// A run that is still going on.
    pub open_run: Option<RunRecord>,
    /// Request ids with their runs, oldest first (CONV-9).
    pub requests: Option<Vec<(String, u64)>>,
    /// Calls that wait for an approval, by id: they have not begun (RUN-7).
    pub waiting: Option<Vec<String>>,
    /// Steering messages accepted for the continuing run that wait for its next step
    /// (RUN-8), added to those already waiting. Each user message written after this
    /// record consumes the oldest one, so that none is lost and none counts twice.
    pub steers: Option<Vec<String>>,
}

/// A line of the log.
#[derive(Debug, Clone)]
pub enum Record {
    /// A message.
    Message(Arc<Message>),
    /// Everything before is archived (RUN-4).
    Compact {
        /// Replaces the archived messages.
        summary: String,
        /// The archive's title.
        title: String,
        /// RFC 3339 instant.
        archived_at: String,
        /// Message lines just before the marker that follow the summary.
        keep: usize,
    },
    /// The working history becomes what it was just before an entry (CONV-13).
    Rewind {
        /// Index of the message or the end of an archive, as pages have it.
        to: u64,
        /// RFC 3339 instant.
        at: String,
    },
    /// The working history becomes an archive, and an earlier archive becomes the
    /// working history again (CONV-14).
    Reopen {
        /// [`ArchiveInfo::marker`](super::ArchiveInfo) of the archive to reopen.
        marker: u64,
        /// Title of the archive that ends here.
        title: String,
        /// RFC 3339 instant.
        archived_at: String,
    },
    /// Changed state.
    Meta(MetaRecord),
    /// A run began or ended.
    Run(RunRecord),
}
