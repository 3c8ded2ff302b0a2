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

/// When announced records must survive a power loss (STORE-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncPolicy {
    /// At each announcement.
    #[default]
    Step,
    /// At the end of a run.
    Run,
    /// Whenever the operating system writes them.
    Never,
}

/// The archives that recall searches (MEM-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecallScope {
    /// The archives of the run's conversation.
    #[default]
    Conversation,
    /// The archives of all conversations of the agent. An owner who configures this opens
    /// them to everyone who talks to the agent.
    Agent,
}

/// The end of a log after an append; later positions are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position(pub u64);

/// Parameters for a conversation that does not exist yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewConversation {
    /// RFC 3339 instant.
    pub created_at: String,
    /// Default working directory.
    pub cwd: String,
}

/// An opened conversation and the state read from its log.
pub struct Opened {
    /// The log to append to.
    pub log: Box<dyn ConversationLog>,
    /// Title and working directory.
    pub meta: Meta,
    /// The working history: the last summary as a user message, the kept tail, and the
    /// messages after the marker. After a rewind or a reopened archive it is the history at
    /// the place to which the marker points, and the messages after the marker.
    pub history: Vec<Message>,
    /// Whether the history begins with a summary.
    pub has_summary: bool,
    /// Number of kept messages behind the summary.
    pub kept: usize,
    /// Number of messages before the working history.
    pub archived_messages: u64,
    /// Number of the last run, 0 before the first; at most [`MAX_RUN`].
    pub last_run: u64,
    /// The latest record of a run that has not ended.
    pub open_run: Option<RunRecord>,
    /// Request ids with their runs, oldest first (CONV-9).
    pub requests: Vec<(String, u64)>,
    /// The record of the last end or interruption, if it is in the part that was read.
    pub last_end: Option<RunRecord>,
    /// Ids of calls that waited for an approval when the log ended.
    pub waiting: Vec<String>,
    /// Accepted steering messages that no step had consumed when the log ended.
    pub steers: Vec<String>,
}

/// Errors of a store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The named object is not in the store, or was removed concurrently. Holds the name.
    #[error("there is no {0}; see `crabtalk conversations`")]
    NotFound(String),
    /// Restoring from the trash would replace an existing object, which must be moved first.
    #[error("{0}")]
    Taken(String),
    /// The id is not valid; nothing was opened.
    #[error("{0:?} is not the name of a conversation's log")]
    BadId(LogId),
    /// A line that the history depends on cannot be read.
    #[error("{log}:{line}: {reason}; nothing was changed: repair the line or move the log away")]
    Broken {
        /// The log.
        log: String,
        /// The number of the line, from 1.
        line: u64,
        /// Description of the fault.
        reason: String,
    },
    /// The disk is full or read-only (STORE-5); nothing was partly written.
    #[error("cannot write {object}: {source}; make room or make it writable, then try again")]
    Unwritable {
        /// The log.
        object: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The operation failed for another reason, such as missing rights or a dead disk.
    #[error("cannot {action} {object}")]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The object of the operation.
        object: String,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
}

/// The open log of one conversation, owned by the conversation's task.
pub trait ConversationLog: Send {
    /// Appends all records or none, in the order of the calls. Resolves when they survive
    /// SIGKILL (STORE-4), without waiting for the disk unless the title changes. Dropping the
    /// future does not undo the append.
    fn append(&mut self, records: &[Record]) -> BoxFuture<'static, Result<Position, Error>>;

    /// Resolves when everything up to the position survives a power loss. Concurrent
    /// waits share one sync.
    fn synced(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>>;

    /// Like `synced`, for the end of a run. With `sync = "run"` only this waits for the
    /// disk, and `synced` may resolve at once.
    fn synced_at_end(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>> {
        self.synced(upto)
    }

    /// Whether the opener still owns the log and its end is unchanged, so that the state
    /// in memory is valid.
    fn is_current(&self) -> BoxFuture<'static, bool> {
        Box::pin(std::future::ready(true))
    }
}

/// Stores conversations.
pub trait Storage: Send + Sync {
    /// Opens the pair's conversation, or creates it from `create`. `Ok(None)`: it does
    /// not exist.
    fn open<'a>(
        &'a self,
        key: &'a ConversationKey,
        create: Option<NewConversation>,
    ) -> BoxFuture<'a, Result<Option<Opened>, Error>>;

    /// Lists conversations and superseded logs; `None` matches any.
    fn list<'a>(
        &'a self,
        agent: Option<&'a str>,
        sender: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>>;

    /// Like [`Storage::list`], limited to those written to last, latest first.
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

    /// Reads up to `limit` entries before an index, or the newest for `None`, oldest
    /// first. Results of one step are in the order of their calls.
    fn page<'a>(
        &'a self,
        source: &'a LogPart,
        before: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, Error>>;

    /// Reads the entries of a conversation at indexes from its pages; entries that no
    /// longer exist are omitted.
    fn entries<'a>(
        &'a self,
        key: &'a ConversationKey,
        indexes: &'a [u64],
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, Error>>;

    /// Finds messages and titles that contain all words, newest first. A store without
    /// search finds nothing.
    fn search(&self, _search: Search) -> BoxFuture<'_, Result<Hits, Error>> {
        Box::pin(std::future::ready(Ok(Hits::default())))
    }

    /// Does a bounded part of the work that keeps lists and searches fast, and returns
    /// whether more remains.
    fn maintain(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Returns the recorded trace of a run by reading the log from its end; `None` if the
    /// log or the store has no record of it.
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

    /// Moves all logs of the pair, and the files of its tools, to the trash (STORE-8).
    /// No log of the pair may be open.
    fn remove<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<(), Error>>;

    /// Returns the summary of one log.
    fn log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<Summary, Error>>;

    /// Moves one superseded log to the trash.
    fn remove_log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<(), Error>>;

    /// Lists conversations in the trash; those of one pair in order of removal, latest
    /// first. A store without a trash has none.
    fn trash<'a>(
        &'a self,
        _agent: Option<&'a str>,
        _sender: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Restores a conversation of the pair and its files from the trash: the one with this
    /// log, else the last removed. [`Error::Taken`] if the pair has a conversation.
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
