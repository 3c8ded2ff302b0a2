//! Items of lists and pages of logs: summaries, entries, archives.

use super::{Meta, RunRecord};
use crate::{ConversationKey, Message, Role};
use std::fmt;
use std::time::{Duration, SystemTime};

/// Identifies a log in a store or its trash. A change of the title changes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogId(pub String);

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One entry of a page, with its opaque, ordered index.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// Increases along the log.
    pub index: u64,
    /// The message, or the summary of a marker as a user message.
    pub message: Message,
    /// Whether this is a compact marker.
    pub compact: bool,
}

/// Sorts the results behind each message with calls into the order of the calls.
pub fn order_results(entries: &mut [LogEntry]) {
    let mut at = 0;
    while at < entries.len() {
        let (head, rest) = entries[at..].split_at_mut(1);
        let results = rest
            .iter()
            .take_while(|e| e.message.role == Role::Tool)
            .count();
        let calls = &head[0].message.tool_calls;
        if results > 1 && !calls.is_empty() {
            let results = &mut rest[..results];
            let indexes: Vec<u64> = results.iter().map(|e| e.index).collect();
            results.sort_by_key(|e| {
                let id = &e.message.tool_call_id;
                calls
                    .iter()
                    .position(|call| call.id == *id)
                    .unwrap_or(usize::MAX)
            });
            for (entry, index) in results.iter_mut().zip(indexes) {
                entry.index = index;
            }
        }
        at += results + 1;
    }
}

/// Part of a log, in order.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The entries.
    pub entries: Vec<LogEntry>,
    /// Starts and ends of runs, with their indexes in the order of the entries.
    pub runs: Vec<(u64, RunRecord)>,
    /// Rewinds and reopened archives with their indexes, and the index of the entry
    /// before which the working history continued.
    pub rewinds: Vec<(u64, u64)>,
    /// On the newest page: steering messages that wait for the next step.
    pub waiting: Vec<LogEntry>,
    /// Whether older entries exist.
    pub more: bool,
}

/// A log as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The conversation.
    pub key: ConversationKey,
    /// The number among the pair's logs; the highest is the conversation.
    pub seq: u32,
    /// Whether the pair has a log with a higher number.
    pub superseded: bool,
    /// Title, working directory and other state.
    pub meta: Meta,
    /// The id of the log.
    pub id: LogId,
    /// Messages in the log, archived ones included.
    pub message_count: u64,
    /// Whether the last run has not ended, as after a crash (STORE-7).
    pub has_open_run: bool,
    /// The end of the last run, if it failed, was cancelled or was interrupted.
    pub failed: Option<RunRecord>,
    /// Time of the last write.
    pub modified: SystemTime,
}

/// Parameters for a check of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Whether to check the logs in the trash instead of those in use.
    pub in_trash: bool,
    /// Whether to check all lines, not only the first line of logs not read yet.
    pub lines: bool,
    /// Maximum number of logs to report.
    pub most: usize,
    /// Time limit of the check.
    pub time: Duration,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BrokenLogs {
    /// Unreadable logs by id.
    pub logs: Vec<BrokenLog>,
    /// Whether more may exist.
    pub incomplete: bool,
}

/// A log that cannot be read completely.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BrokenLog {
    /// The log, or a file with a name like that of a log.
    pub id: LogId,
    /// The conversation, if line 1 names it.
    pub key: Option<ConversationKey>,
    /// Number of unreadable lines after the first, which readers skip; 0 if the whole log
    /// is unreadable.
    pub lines: u64,
    /// Byte offset of the first unreadable line.
    pub first_at: u64,
    /// Description of the fault.
    pub reason: String,
    /// Number of readable messages.
    pub messages: u64,
}

/// An archived segment of a conversation (RUN-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveInfo {
    /// The number of the archive, from 1, oldest first.
    pub index: u32,
    /// Index of the marker that ends the archive.
    pub marker: u64,
    /// First sentence of the summary.
    pub title: String,
    /// RFC 3339 instant; empty in old logs.
    pub archived_at: String,
    /// Number of messages in the archive.
    pub message_count: u64,
    /// The summary.
    pub summary: String,
}

/// The part of a log from which a page is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPart {
    /// The whole conversation.
    Conversation(ConversationKey),
    /// One archive of the conversation.
    Archive(ConversationKey, u32),
    /// One log from a list.
    Log(LogId),
}

/// Maximum characters of an archive's title (CONV-7).
const MAX_ARCHIVE_TITLE_CHARS: usize = 60;

/// Makes the title of an archive from the first sentence of its summary (CONV-7).
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
