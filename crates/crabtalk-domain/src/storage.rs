//! The port behind which conversations are kept (STORE-1).

use crate::{BoxFuture, ContextUse, ConversationKey, Message, Role, Usage};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Where a log ends after an append; grows with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position(pub u64);

/// What a conversation is called and where it works; changes by appending.
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
    /// How full its context is, as far as it is known.
    pub context: Option<ContextUse>,
}

/// Highest number of a run: whatever claims more was not written by us. Far
/// more than anybody runs, and a number that every reader of JSON keeps.
pub const MAX_RUN: u64 = 1 << 53;

/// What happened to a run.
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
    /// What happened.
    pub phase: RunPhase,
    /// Where it came from, as text.
    pub origin: String,
    /// The client's id for it; empty where none was given (CONV-9).
    pub request_id: String,
    /// For a start: the guest that answers, if any (RUN-2).
    pub guest: String,
    /// For a start: the run's own working directory, if it has one (CONV-6).
    pub cwd: String,
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
    /// What was accepted for the run that goes on and waits for its next step
    /// (RUN-8), beside what waits already. Each message of a user that is written behind it
    /// takes the oldest, so that none is lost between the two and none counts twice.
    pub steers: Option<Vec<String>>,
}

/// A line of the log.
#[derive(Debug, Clone)]
pub enum Record {
    /// A message.
    Message(Arc<Message>),
    /// Everything before is archived (RUN-4).
    Compact {
        /// Replaces what is archived.
        summary: String,
        /// The archive's title.
        title: String,
        /// RFC 3339 instant.
        archived_at: String,
        /// Message lines just before the marker that follow the summary.
        keep: usize,
    },
    /// Changed state.
    Meta(MetaRecord),
    /// A run began or ended.
    Run(RunRecord),
}

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

/// Finds out what waits for a step from the lines of a log, newest first.
#[derive(Debug, Default)]
pub struct Steering {
    lines: Vec<Steered>,
    is_known: bool,
}

#[derive(Debug)]
enum Steered {
    /// What a line at that index put in.
    Accepted(u64, Vec<String>),
    /// One of them, or what a run answers, was written.
    Taken,
}

impl Steering {
    /// Takes a message of a user.
    pub fn said(&mut self) {
        if !self.is_known {
            self.lines.push(Steered::Taken);
        }
    }

    /// Takes a line that says what was accepted.
    pub fn accepted(&mut self, index: u64, steers: Vec<String>) {
        if !self.is_known {
            self.lines.push(Steered::Accepted(index, steers));
        }
    }

    /// Takes a line of a run. Before one begins nothing waits, unless it carries on
    /// another, which hands it what waited.
    pub fn run(&mut self, run: &RunRecord) {
        self.is_known |= run.phase == RunPhase::Start && run.tries == 0;
    }

    /// Takes a marker: what waits before it is repeated behind it.
    pub fn compacted(&mut self) {
        self.is_known = true;
    }

    /// What waits, oldest first, with the index of the line that says so.
    pub fn waiting(self) -> Vec<(u64, String)> {
        let mut waiting = VecDeque::new();
        for line in self.lines.into_iter().rev() {
            match line {
                Steered::Accepted(index, steers) => {
                    waiting.extend(steers.into_iter().map(|steer| (index, steer)));
                }
                Steered::Taken => {
                    waiting.pop_front();
                }
            }
        }
        waiting.into()
    }
}

/// One entry of a page, with its opaque, ordered index.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// Grows along the log.
    pub index: u64,
    /// The message, or the summary of a marker as a user message.
    pub message: Message,
    /// Whether it stands for a compact marker.
    pub compact: bool,
}

/// Part of a log, in order.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The entries.
    pub entries: Vec<LogEntry>,
    /// How runs ended that failed, were cancelled or were cut off, with their
    /// indexes among those of the entries.
    pub failed: Vec<(u64, RunRecord)>,
    /// On the newest page: what was accepted for a run and waits for its next step.
    pub waiting: Vec<LogEntry>,
    /// Whether older ones exist.
    pub more: bool,
}

/// What a log says of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunTrace {
    /// The guest that answered, if one did.
    pub guest: String,
    /// Its last text, unless it went on with calls.
    pub answer: Option<String>,
    /// How it ended or was cut off; `None` while nobody has said.
    pub end: Option<RunRecord>,
}

/// Gathers what a log says of one run from its lines, newest first.
#[derive(Debug, Default)]
pub struct Tracing {
    run: u64,
    trace: RunTrace,
    /// The last that was said between the lines of runs, and whether it was an
    /// answer.
    said: Option<Option<String>>,
}

impl Tracing {
    /// For a run of this number.
    pub fn of(run: u64) -> Self {
        Self {
            run,
            ..Self::default()
        }
    }

    /// Takes a message.
    pub fn message(&mut self, message: &Message) {
        if self.said.is_none() && message.role == Role::Assistant {
            let is_answer = message.tool_calls.is_empty();
            self.said = Some(is_answer.then(|| message.content.clone()));
        }
    }

    /// Takes a line of a run. `Break`: nothing further back can matter.
    pub fn run(&mut self, run: &RunRecord) -> ControlFlow<Option<RunTrace>> {
        if run.phase != RunPhase::Start {
            if run.id == self.run && self.trace.end.is_none() {
                self.trace.end = Some(run.clone());
            }
            return ControlFlow::Continue(());
        }
        let said = self.said.take();
        if run.id > self.run {
            return ControlFlow::Continue(());
        }
        if run.id < self.run {
            return ControlFlow::Break(None);
        }
        self.trace.guest.clone_from(&run.guest);
        let answered = said.is_some();
        self.trace.answer = said.flatten();
        if answered || run.tries == 0 {
            return ControlFlow::Break(Some(std::mem::take(&mut self.trace)));
        }
        // It carried on one that had said everything but its end.
        self.run -= 1;
        ControlFlow::Continue(())
    }
}

/// A file of the store as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Whose conversation.
    pub key: ConversationKey,
    /// Of several files of a pair the highest is the conversation.
    pub seq: u32,
    /// Whether a higher one exists.
    pub superseded: bool,
    /// What it is called.
    pub meta: Meta,
    /// Bare file name.
    pub file: String,
    /// Messages in the file, archived ones included.
    pub message_count: u64,
    /// Whether its last run never ended, as a crash leaves it (STORE-7).
    pub has_open_run: bool,
    /// How its last run ended, if it failed, was cancelled or was cut off.
    pub failed: Option<RunRecord>,
    /// When it was last written to.
    pub modified: SystemTime,
}

/// An archived segment (RUN-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveInfo {
    /// From 1, oldest first.
    pub index: u32,
    /// First sentence of the summary.
    pub title: String,
    /// RFC 3339 instant; empty in old logs.
    pub archived_at: String,
    /// Messages in it.
    pub message_count: u64,
    /// The summary.
    pub summary: String,
}

/// Which part of which log a page is cut from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPart {
    /// The whole conversation of a pair.
    Conversation(ConversationKey),
    /// One archive of it.
    Archive(ConversationKey, u32),
    /// A file by the bare name that a list gave.
    File(String),
}

/// What a store can fail with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The pair or file does not exist.
    #[error("{0} does not exist")]
    NotFound(String),
    /// What was to come back stands where something else stands now.
    #[error("{0}")]
    Taken(String),
    /// A name that no list gave.
    #[error("{0:?} is not a file name of the sessions folder")]
    BadFileName(String),
    /// A line of the log cannot be read. Its bytes are left alone.
    #[error("{}:{line}: {reason}; mend the line or move the file away, nothing was changed", file.display())]
    Broken {
        /// The log.
        file: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The disk is full or read-only (STORE-5). Nothing is half written.
    #[error("cannot write {}: {source}; make room or make it writable, then try again", file.display())]
    Unwritable {
        /// What could not be written.
        file: PathBuf,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// Anything else that the operating system said.
    #[error("cannot {action} {}", file.display())]
    Io {
        /// What we attempted.
        action: &'static str,
        /// On what.
        file: PathBuf,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// The open log of one conversation, owned by its one task.
pub trait ConversationLog: Send {
    /// Appends all records or none. They survive `kill -9` when this returns
    /// (STORE-4); it does not wait for the disk.
    fn append(&mut self, records: &[Record]) -> Result<Position, Error>;

    /// Resolves when everything up to the position survives a power cut. The
    /// work is shared with other conversations.
    fn synced(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>>;

    /// `synced` for what ends a run: all that `sync = "run"` waits for, so that
    /// a store may answer `synced` at once there.
    fn synced_at_end(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>> {
        self.synced(upto)
    }

    /// Whether the log is as its last append left it, so that what is in memory
    /// still holds. Another program may have changed, cut or removed it.
    fn is_as_left(&self) -> bool {
        true
    }

    /// Gives the file a name that carries the title (CONV-7). The title itself
    /// is a `Meta` record. May wait for the disk; what was begun ends whether or
    /// not somebody still waits.
    fn rename_for_title(&mut self, title: &str) -> BoxFuture<'static, Result<(), Error>>;
}

/// Longest title of an archive, in characters (CONV-7).
const MAX_ARCHIVE_TITLE_CHARS: usize = 60;

/// The title of an archive: the first sentence of its summary (CONV-7).
pub fn archive_title(summary: &str) -> String {
    let line = summary
        .lines()
        .map(str::trim)
        .find(|l| !l.is_empty())
        .unwrap_or_default();
    let line = line.trim_start_matches(['#', '*', '-', '>', ' ']);
    let end = line
        .char_indices()
        .find(|(at, c)| match c {
            '.' | '!' | '?' => line[at + 1..]
                .chars()
                .next()
                .is_none_or(|next| next.is_whitespace()),
            _ => matches!(c, '。' | '！' | '？'),
        })
        .map_or(line.len(), |(at, c)| at + c.len_utf8());
    let sentence = &line[..end];
    if sentence.chars().count() <= MAX_ARCHIVE_TITLE_CHARS {
        return sentence.to_owned();
    }
    let kept: String = sentence.chars().take(MAX_ARCHIVE_TITLE_CHARS - 1).collect();
    format!("{}…", kept.trim_end())
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
}

#[cfg(test)]
mod tests {
    use super::archive_title;

    #[test]
    fn an_archive_is_titled_by_its_first_sentence() {
        for (summary, title) in [
            (
                "Pricing of v1.2 tools. Then more.",
                "Pricing of v1.2 tools.",
            ),
            ("\n## Plan\nrest", "Plan"),
            ("価格の話。次", "価格の話。"),
            ("", ""),
        ] {
            assert_eq!(archive_title(summary), title);
        }
        let long = archive_title(&"é".repeat(200));
        assert_eq!((long.chars().count(), long.ends_with('…')), (60, true));
    }
}
