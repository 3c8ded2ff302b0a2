//! Items of lists and pages of logs: summaries, entries, archives.

use super::{Meta, RunRecord};
use crate::{ConversationKey, Message, Role};
use std::fmt;
use std::time::{Duration, SystemTime};

/// Identifies a log among those of a store, or of its trash. A new title changes it.
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
    /// Grows along the log.
    pub index: u64,
    /// The message, or the summary of a marker as a user message.
    pub message: Message,
    /// Whether this is a compact marker.
    pub compact: bool,
}

/// Puts the results behind each message with calls in the order of the calls.
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
    /// Where runs began and how they ended, with their indexes among those of the
    /// entries.
    pub runs: Vec<(u64, RunRecord)>,
    /// Rewinds and reopened archives by their indexes among those of the entries, each
    /// with the index of the entry before which the working history went on.
    pub rewinds: Vec<(u64, u64)>,
    /// On the newest page: what was accepted for a run and waits for its next step.
    pub waiting: Vec<LogEntry>,
    /// Whether older ones exist.
    pub more: bool,
}

/// A log as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Whose conversation.
    pub key: ConversationKey,
    /// Of several logs of a pair the highest is the conversation.
    pub seq: u32,
    /// Whether a higher one exists.
    pub superseded: bool,
    /// Title and working directory.
    pub meta: Meta,
    /// The log.
    pub id: LogId,
    /// Messages in the log, archived ones included.
    pub message_count: u64,
    /// Whether its last run never ended, as a crash leaves it (STORE-7).
    pub has_open_run: bool,
    /// How its last run ended, if it failed, was cancelled or was cut off.
    pub failed: Option<RunRecord>,
    /// When it was last written to.
    pub modified: SystemTime,
}

/// A check of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Those in the trash, not those in use.
    pub in_trash: bool,
    /// All lines, not only line 1 of logs of which that was not read yet.
    pub lines: bool,
    /// Most logs to report.
    pub most: usize,
    /// How long the check may take.
    pub time: Duration,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BrokenLogs {
    /// By id.
    pub logs: Vec<BrokenLog>,
    /// Whether there may be more.
    pub incomplete: bool,
}

/// A log that cannot be read completely.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BrokenLog {
    /// The log, or a file that could be taken for one.
    pub id: LogId,
    /// Whose conversation, if line 1 names it.
    pub key: Option<ConversationKey>,
    /// Lines behind the first that cannot be read and are passed over; 0 if nothing of
    /// the log can be read.
    pub lines: u64,
    /// Offset of the first of them.
    pub first_at: u64,
    /// Description of the fault in the log.
    pub reason: String,
    /// Messages that can still be read.
    pub messages: u64,
}

/// An archived segment (RUN-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveInfo {
    /// From 1, oldest first.
    pub index: u32,
    /// Index in the log of the marker that ends it.
    pub marker: u64,
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
    /// One log as a list named it.
    Log(LogId),
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
