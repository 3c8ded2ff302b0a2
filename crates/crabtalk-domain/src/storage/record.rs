//! The lines of a conversation's log.

use crate::{ContextUse, Message, Mode, Usage};
use std::sync::Arc;

/// Title, working directory and other state of a conversation; changed by appending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// RFC 3339 instant of its creation.
    pub created_at: String,
    /// The title for people; empty until `set_title`.
    pub title: String,
    /// The working directory unless the agent has a folder (CONV-6), as set by the message
    /// that created the conversation. Empty in old logs.
    pub cwd: String,
    /// Whether `cwd` was set for this conversation, and so overrides the agent's
    /// folder.
    pub own_cwd: bool,
    /// Total duration of its runs in seconds.
    pub uptime_secs: u64,
    /// Use of the context window, if known.
    pub context: Option<ContextUse>,
}

/// Highest valid run number, which every JSON reader represents exactly. A record
/// with a larger number was not written by CrabTalk.
pub const MAX_RUN: u64 = 1 << 53;

/// A state change of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunPhase {
    /// The run began.
    #[default]
    Start,
    /// The run ended.
    End,
    /// The run was interrupted by a crash.
    Interrupted,
}

/// A `{"run":{..}}` line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunRecord {
    /// Number within the conversation, from 1 to [`MAX_RUN`].
    pub id: u64,
    /// The state change.
    pub phase: RunPhase,
    /// The origin as text.
    pub origin: String,
    /// The client's id of the request; empty if it gave none (CONV-9).
    pub request_id: String,
    /// For a start: the guest that answers, if any (RUN-2).
    pub guest: String,
    /// For a start: the run's own working directory, if it has one (CONV-6).
    pub cwd: String,
    /// For a start: the mode in force; `None` in old logs.
    pub mode: Option<Mode>,
    /// For an end: the code; 0 is success.
    pub code: u32,
    /// For an end: the reason for a failure; empty on success, and in old logs.
    pub error: String,
    /// For a start: how many runs, this one included, have resumed the work after a
    /// crash (STORE-7).
    pub tries: u32,
    /// For an end: tokens of all its model calls; `None` in old logs.
    pub usage: Option<Usage>,
    /// For an end: the duration; `None` in old logs.
    pub duration_ms: Option<u64>,
    /// RFC 3339 instant.
    pub at: String,
}

impl RunRecord {
    /// Whether the record reports a failure.
    pub fn is_failure(&self) -> bool {
        match self.phase {
            RunPhase::Start => false,
            RunPhase::End => self.code != 0,
            RunPhase::Interrupted => true,
        }
    }
}

/// State that a reader would otherwise search for before a marker. Each marker is
/// between two records of the whole state; other records have the changed fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetaRecord {
    /// New title.
    pub title: Option<String>,
    /// New working directory.
    pub cwd: Option<String>,
    /// Whether `cwd` was set for this conversation.
    pub own_cwd: Option<bool>,
    /// New total duration.
    pub uptime_secs: Option<u64>,
    /// Current use of the context window.
    pub context: Option<ContextUse>,
    /// Number of the last run.
    pub last_run: Option<u64>,
    /// A run that has not ended.
    pub open_run: Option<RunRecord>,
    /// Request ids with their runs, oldest first (CONV-9).
    pub requests: Option<Vec<(String, u64)>>,
    /// Ids of calls that wait for an approval and have not begun (RUN-7).
    pub waiting: Option<Vec<String>>,
    /// Steering messages that wait for the run's next step (RUN-8), added to those already
    /// waiting. Each later user message in the log consumes the oldest one.
    pub steers: Option<Vec<String>>,
}

/// A line of the log.
#[derive(Debug, Clone)]
pub enum Record {
    /// A message.
    Message(Arc<Message>),
    /// Archives everything before it (RUN-4).
    Compact {
        /// The summary that replaces the archived messages.
        summary: String,
        /// The archive's title.
        title: String,
        /// RFC 3339 instant.
        archived_at: String,
        /// Number of messages before the marker that follow the summary.
        keep: usize,
    },
    /// Restores the working history before an entry (CONV-13).
    Rewind {
        /// Index of the message, or of the end of an archive, from a page.
        to: u64,
        /// RFC 3339 instant.
        at: String,
    },
    /// Archives the working history and makes an earlier archive the working history
    /// again (CONV-14).
    Reopen {
        /// [`ArchiveInfo::marker`](super::ArchiveInfo) of the archive to reopen.
        marker: u64,
        /// Title of the archive that ends here.
        title: String,
        /// RFC 3339 instant.
        archived_at: String,
    },
    /// A change of state.
    Meta(MetaRecord),
    /// A run began or ended.
    Run(RunRecord),
}
