//! The port behind which conversations are kept (STORE-1): what may be asked of a
//! store, and what it fails with.
//!
//! Below it lie the lines of a log, what lists and pages show of them, and what
//! every store has to find out in them in the same way.

mod record;
mod search;
mod steering;
mod trace;
mod view;

pub use record::{MAX_RUN, Meta, MetaRecord, Record, RunPhase, RunRecord};
pub use search::{Hit, Hits, Search};
pub use steering::Steering;
pub use trace::{RunTrace, Tracing};
pub use view::{ArchiveInfo, BrokenLog, LogEntry, LogPart, Page, Summary, archive_title};

use crate::{BoxFuture, ConversationKey, Message};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::path::PathBuf;

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
    /// Those of all conversations of its agent, whoever asks: the owner who
    /// configures this opens them to everybody that talks to the agent.
    Agent,
}

/// Where a log ends after an append; grows with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position(pub u64);

/// What the first reference to a pair creates.
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
    /// What it is called.
    pub meta: Meta,
    /// The working history: the last summary as a user message, what it
    /// keeps, and what follows, in file order.
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
    /// What was accepted for a run and waited for a step when the log ended.
    pub steers: Vec<String>,
}

/// What a store can fail with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is named is not in the store, or was removed meanwhile. It holds what is missing.
    #[error("there is no {0}; `crabtalk conversations` lists what there is")]
    NotFound(String),
    /// What is brought back from the trash would replace something: move that away first.
    #[error("{0}")]
    Taken(String),
    /// The name would lead out of the folder, or is of none of its logs; nothing was opened.
    #[error("{0:?} is not a file name of the sessions folder")]
    BadFileName(String),
    /// A line that the history hangs on cannot be read, so that nothing is guessed.
    #[error("{}:{line}: {reason}; mend the line or move the file away, nothing was changed", file.display())]
    Broken {
        /// Which log.
        file: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong with the line.
        reason: String,
    },
    /// The disk is full or read-only (STORE-5). Nothing is half written.
    #[error("cannot write {}: {source}; make room or make it writable, then try again", file.display())]
    Unwritable {
        /// Which log.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system refuses a file for another reason, such as missing rights or a dead disk.
    #[error("cannot {action} {}", file.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// Which file or folder.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// The open log of one conversation, owned by its one task.
pub trait ConversationLog: Send {
    /// Appends all records or none, in the order of the calls. Resolves when they
    /// survive SIGKILL (STORE-4); it does not wait for the disk. Dropping the future
    /// takes nothing back.
    fn append(&mut self, records: &[Record]) -> BoxFuture<'static, Result<Position, Error>>;

    /// Resolves when everything up to the position survives a power cut. The
    /// work is shared with other conversations.
    fn synced(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>>;

    /// `synced` for what ends a run: all that `sync = "run"` waits for, so that
    /// a store may answer `synced` at once there.
    fn synced_at_end(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>> {
        self.synced(upto)
    }

    /// Whether it is still owned by whoever opened it, and ends where that left it,
    /// so that what is in memory still holds.
    fn is_current(&self) -> BoxFuture<'static, bool> {
        Box::pin(std::future::ready(true))
    }

    /// Gives the file a name that carries the title (CONV-7). The title itself
    /// is a `Meta` record. May wait for the disk; what was begun ends whether or
    /// not somebody still waits.
    fn rename_for_title(&mut self, title: &str) -> BoxFuture<'static, Result<(), Error>>;
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

    /// Lists conversations and superseded files; `None` means any.
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
    /// oldest first. Results of one step stand in the order of their calls.
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

    /// What the log says of a run, wherever in it that is; `None` where nothing
    /// is. Costs what was written since. A store that keeps no runs knows none.
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

    /// Moves every file of the pair to the trash (STORE-8), and with them what
    /// its tools have kept. The caller sees to it that no log of the pair is
    /// open.
    fn remove<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<(), Error>>;

    /// The pair and summary behind a bare file name.
    fn file<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Summary, Error>>;

    /// Moves one superseded file to the trash.
    fn remove_file<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Lists conversations in the trash, each by the name of its file there; of
    /// one pair the last removed first. A store without a trash has none.
    fn trash<'a>(
        &'a self,
        _agent: Option<&'a str>,
        _sender: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Takes a conversation of the pair back from the trash, with all that went
    /// there with it: the one of that file, else the last removed. A pair that has
    /// a conversation is [`Error::Taken`].
    fn restore<'a>(
        &'a self,
        key: &'a ConversationKey,
        _file: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(std::future::ready(Err(Error::NotFound(key.to_string()))))
    }

    /// Names of the files among the conversations that are in use, or in the trash, into
    /// which [`Storage::broken`] has to look: without `lines` those are left out of which
    /// line 1 was read already, and was good. A store without files has none.
    fn file_names(
        &self,
        _in_trash: bool,
        _lines: bool,
    ) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Says what cannot be read of files that [`Storage::file_names`] named: of line
    /// 1, and with `lines` of the others, as opening the conversation would pass over
    /// them. Nothing is changed.
    fn broken(
        &self,
        _in_trash: bool,
        _names: Vec<String>,
        _lines: bool,
    ) -> BoxFuture<'_, Result<Vec<BrokenLog>, Error>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}
