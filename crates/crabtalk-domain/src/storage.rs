//! The storage port of conversations (STORE-1): the operations of a store and its
//! errors.
//!
//! The submodules hold the records of a log, the items of lists and pages, and
//! the evaluation of records that every store shares.

mod record;
mod search;
mod steering;
mod trace;
mod view;

pub use record::{MAX_RUN, Meta, MetaRecord, Record, RunPhase, RunRecord};
pub use search::{Hit, Hits, Search};
pub use steering::Steering;
pub use trace::{RunTrace, Tracing};
pub use view::{
    ArchiveInfo, BrokenLog, BrokenLogs, Check, LogEntry, LogId, LogPart, Page, Summary,
    archive_title, order_results,
};

use crate::{BoxFuture, ConversationKey, Message};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// When what was announced has to survive a power cut (STORE-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncPolicy {
    /// Whenever something is announced.
    #[default]
    Step,
    /// When a run ends.
    Run,
    /// Whenever the operating system likes.
    Never,
}

/// Whose archives a recall looks into (MEM-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecallScope {
    /// Those of its conversation.
    #[default]
    Conversation,
    /// All conversations of the agent, for every sender. An owner who configures
    /// this opens them to everyone who talks to the agent.
    Agent,
}

/// Where a log ends after an append; grows with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position(pub u64);

/// Parameters of a conversation created by the first reference to its pair.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewConversation {
    /// RFC 3339 instant.
    pub created_at: String,
    /// Default working directory.
    pub cwd: String,
}

/// An opened conversation.
pub struct Opened {
    /// Appends to it.
    pub log: Box<dyn ConversationLog>,
    /// Title and working directory.
    pub meta: Meta,
    /// The working history: the last summary as a user message, what it
    /// keeps, and what follows, in file order. After a rewind or a reopened archive
    /// it is what it was at that place of the log, and what follows the marker.
    pub history: Vec<Message>,
    /// Whether the history begins with a summary.
    pub has_summary: bool,
    /// Messages behind the summary that were kept from before it.
    pub kept: usize,
    /// Messages that lie before the working history.
    pub archived_messages: u64,
    /// Number of the last run, 0 before the first; at most [`MAX_RUN`].
    pub last_run: u64,
    /// A run that started and never ended, as was told of it last.
    pub open_run: Option<RunRecord>,
    /// Request ids with their runs, oldest first (CONV-9).
    pub requests: Vec<(String, u64)>,
    /// How the last run ended that did, or was cut off, if that is in the tail.
    pub last_end: Option<RunRecord>,
    /// Calls that waited for an approval when the log ended, by id.
    pub waiting: Vec<String>,
    /// Steering messages accepted for a run but not yet consumed by a step when the log ended.
    pub steers: Vec<String>,
}

/// Errors of a store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The named object is not in the store, or was removed concurrently. Holds the name.
    #[error("there is no {0}; `crabtalk conversations` lists what there is")]
    NotFound(String),
    /// Restoring from the trash would replace an existing object: move that away first.
    #[error("{0}")]
    Taken(String),
    /// No log can have this id; nothing was opened.
    #[error("{0:?} is not the name of a conversation's log")]
    BadId(LogId),
    /// A line that the history hangs on cannot be read, so that nothing is guessed.
    #[error("{log}:{line}: {reason}; mend the line or move the log away, nothing was changed")]
    Broken {
        /// The log.
        log: String,
        /// From 1.
        line: u64,
        /// Description of the fault.
        reason: String,
    },
    /// The disk is full or read-only (STORE-5). Nothing is half written.
    #[error("cannot write {object}: {source}; make room or make it writable, then try again")]
    Unwritable {
        /// The log.
        object: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The system refuses an operation for another reason, such as missing rights or a dead disk.
    #[error("cannot {action} {object}")]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// On which object.
        object: String,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
}

/// The open log of one conversation, owned by its one task.
pub trait ConversationLog: Send {
    /// Appends all records or none, in the order of the calls. Resolves when they
    /// survive SIGKILL (STORE-4), without waiting for the disk unless the title changes.
    /// Dropping the future does not undo the append.
    fn append(&mut self, records: &[Record]) -> BoxFuture<'static, Result<Position, Error>>;

    /// Resolves when everything up to the position survives a power cut. The
    /// work is shared with other conversations.
    fn synced(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>>;

    /// `synced` for what ends a run: all that `sync = "run"` waits for, so that
    /// a store may answer `synced` at once there.
    fn synced_at_end(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>> {
        self.synced(upto)
    }

    /// Whether the opener still owns the log and its end is unchanged, so that
    /// the state in memory is still valid.
    fn is_current(&self) -> BoxFuture<'static, bool> {
        Box::pin(std::future::ready(true))
    }
}

/// Keeps conversations.
pub trait Storage: Send + Sync {
    /// Opens the pair's conversation, or creates it where `create` says how.
    /// `Ok(None)`: it does not exist.
    fn open<'a>(
        &'a self,
        key: &'a ConversationKey,
        create: Option<NewConversation>,
    ) -> BoxFuture<'a, Result<Option<Opened>, Error>>;

    /// Lists conversations and superseded logs; `None` means any.
    fn list<'a>(
        &'a self,
        agent: Option<&'a str>,
        sender: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>>;

    /// As [`Storage::list`], but only those that were written to last, at most
    /// `limit`, the latest first.
    fn latest<'a>(
        &'a self,
        agent: Option<&'a str>,
        sender: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>> {
        Box::pin(async move {
            let mut all = self.list(agent, sender).await?;
            all.sort_by_key(|summary| Reverse(summary.modified));
            all.truncate(limit);
            Ok(all)
        })
    }

    /// Reads up to `limit` entries before an index, newest ones if `None`,
    /// oldest first. Results of one step are in the order of their calls.
    fn page<'a>(
        &'a self,
        source: &'a LogPart,
        before: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, Error>>;

    /// Reads the entries of a conversation at indexes that its pages gave;
    /// those that are not there any more are left out.
    fn entries<'a>(
        &'a self,
        key: &'a ConversationKey,
        indexes: &'a [u64],
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, Error>>;

    /// Finds messages and titles with all of some words, newest first. A store without
    /// search finds nothing.
    fn search(&self, _search: Search) -> BoxFuture<'_, Result<Hits, Error>> {
        Box::pin(std::future::ready(Ok(Hits::default())))
    }

    /// Does a bounded part of the work that keeps lists and searches fast, and says
    /// whether more is left.
    fn maintain(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Returns the recorded trace of a run; `None` if the log has no record of it.
    /// Reads the log from its end back to the run. A store without runs returns `None`.
    fn trace<'a>(
        &'a self,
        _key: &'a ConversationKey,
        _run: u64,
    ) -> BoxFuture<'a, Result<Option<RunTrace>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Lists a conversation's archives, oldest first (STORE-3).
    fn archives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<ArchiveInfo>, Error>>;

    /// Moves all logs of the pair to the trash (STORE-8), and with them what its tools
    /// have kept. No log of the pair may be open.
    fn remove<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<(), Error>>;

    /// The summary of one log.
    fn log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<Summary, Error>>;

    /// Moves one superseded log to the trash.
    fn remove_log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<(), Error>>;

    /// Lists conversations in the trash; of one pair the last removed first. A store
    /// without a trash has none.
    fn trash<'a>(
        &'a self,
        _agent: Option<&'a str>,
        _sender: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Restores a conversation of the pair from the trash, with all that went there with
    /// it: the one of this log, else the last removed. A pair that has a conversation is
    /// [`Error::Taken`].
    fn restore<'a>(
        &'a self,
        key: &'a ConversationKey,
        _log: Option<&'a LogId>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(std::future::ready(Err(Error::NotFound(key.to_string()))))
    }

    /// Finds unreadable logs without changing them. A store without files has none.
    fn check(&self, _check: Check) -> BoxFuture<'_, Result<BrokenLogs, Error>> {
        Box::pin(std::future::ready(Ok(BrokenLogs::default())))
    }
}
