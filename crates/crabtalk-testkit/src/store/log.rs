//! The log of one conversation, as a reader of the disk would see it.

use crabtalk_domain::storage::{
    ArchiveInfo, LogEntry, LogId, MAX_RUN, Meta, Page, Record, RunPhase, RunRecord, Steering,
    Summary, order_results,
};
use crabtalk_domain::{ConversationKey, Message, Role};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Maximum number of request ids to remember (CONV-9).
const MAX_REQUESTS: usize = 256;

#[derive(Default, Clone)]
pub(super) struct Log {
    pub(super) meta: Meta,
    pub(super) records: Vec<Record>,
    /// Number of records that survive a power cut.
    pub(super) synced: usize,
}

/// A working history.
#[derive(Default, Clone)]
pub(super) struct Working {
    pub(super) history: Vec<Message>,
    pub(super) has_summary: bool,
    /// Number of messages kept from before the summary.
    pub(super) kept: usize,
}

impl Working {
    fn begin_anew(&mut self, summary: Message, keep: usize) {
        let said = self.history.split_off(usize::from(self.has_summary));
        let kept = &said[said.len().saturating_sub(keep)..];
        // A fresh start has no summary.
        let summary = Some(summary).filter(|summary| !summary.content.is_empty());
        *self = Self {
            has_summary: summary.is_some(),
            kept: kept.len(),
            history: summary.into_iter().chain(kept.iter().cloned()).collect(),
        };
    }
}

/// Whether a record is a marker of any kind.
fn is_marker(record: &Record) -> bool {
    match record {
        Record::Compact { .. } | Record::Rewind { .. } | Record::Reopen { .. } => true,
        Record::Message(_) | Record::Meta(_) | Record::Run(_) => false,
    }
}

impl Log {
    pub(super) fn messages(&self) -> Vec<(usize, Message)> {
        messages(&self.records)
            .map(|(at, message)| (at, message.clone()))
            .collect()
    }

    /// The record at an index as a history entry, if it is one.
    pub(super) fn entry(&self, at: usize) -> Option<LogEntry> {
        let (message, compact) = match self.records.get(at)? {
            Record::Message(message) => ((**message).clone(), false),
            Record::Compact {
                summary,
                archived_at,
                ..
            } => (marker_message(summary, archived_at), true),
            Record::Reopen { archived_at, .. } => (marker_message("", archived_at), true),
            Record::Rewind { .. } | Record::Meta(_) | Record::Run(_) => return None,
        };
        Some(LogEntry {
            index: at as u64,
            message,
            compact,
        })
    }

    pub(super) fn page(&self, part: Range<usize>, before: Option<u64>, limit: usize) -> Page {
        let older = |at: &usize| before.is_none_or(|before| (*at as u64) < before);
        let (mut entries, mut from) = (Vec::<LogEntry>::new(), part.start);
        let mut indexes = part.filter(older).rev().peekable();
        let end = indexes.peek().map_or(0, |at| at + 1);
        let mut more = false;
        for entry in indexes.filter_map(|at| self.entry(at)) {
            let is_in_step = entries.last().is_some_and(|e| e.message.role == Role::Tool);
            if entries.len() >= limit && !is_in_step {
                more = true;
                from = entries.last().map_or(end, |first| first.index as usize);
                break;
            }
            entries.push(entry);
        }
        entries.reverse();
        order_results(&mut entries);
        let runs = (from..end).filter_map(|at| match &self.records[at] {
            Record::Run(run) => Some((at as u64, run.clone())),
            _ => None,
        });
        let rewinds = (from..end).filter_map(|at| match &self.records[at] {
            Record::Rewind { to, .. } | Record::Reopen { marker: to, .. } => Some((at as u64, *to)),
            _ => None,
        });
        let steers = self.steers().into_iter().filter(|_| before.is_none());
        let waiting = steers.map(|steer| LogEntry {
            index: self.records.len() as u64,
            message: Message::user(steer),
            compact: false,
        });
        Page {
            waiting: waiting.collect(),
            runs: runs.collect(),
            rewinds: rewinds.collect(),
            entries,
            more,
        }
    }

    /// Indexes of the records that end an archive.
    fn archive_ends(&self) -> impl Iterator<Item = usize> {
        (0..self.records.len()).filter(|at| match &self.records[*at] {
            Record::Compact { .. } | Record::Reopen { .. } => true,
            Record::Message(_) | Record::Rewind { .. } | Record::Meta(_) | Record::Run(_) => false,
        })
    }

    /// The records of an archive; archives are numbered from 1.
    pub(super) fn archive(&self, index: usize) -> Option<Range<usize>> {
        let end = self.archive_ends().nth(index.checked_sub(1)?)?;
        let begin = index
            .checked_sub(2)
            .and_then(|at| self.archive_ends().nth(at));
        Some(begin.map_or(0, |at| at + 1)..end)
    }

    pub(super) fn archives(&self) -> Vec<ArchiveInfo> {
        let mut archives = Vec::new();
        for (at, marker) in self.archive_ends().enumerate() {
            let (summary, title, archived_at) = match &self.records[marker] {
                Record::Compact {
                    summary,
                    title,
                    archived_at,
                    ..
                } => (summary.as_str(), title, archived_at),
                Record::Reopen {
                    title, archived_at, ..
                } => ("", title, archived_at),
                _ => continue,
            };
            let part = self.archive(at + 1).unwrap_or_default();
            archives.push(ArchiveInfo {
                index: at as u32 + 1,
                marker: marker as u64,
                title: title.clone(),
                archived_at: archived_at.clone(),
                message_count: messages(&self.records[part]).count() as u64,
                summary: summary.to_owned(),
            });
        }
        archives
    }

    pub(super) fn summary(&self, key: &ConversationKey) -> Summary {
        Summary {
            key: key.clone(),
            seq: 1,
            superseded: false,
            meta: self.current_meta(),
            id: LogId(key.to_string()),
            message_count: messages(&self.records).count() as u64,
            has_open_run: self.open_run().is_some(),
            failed: self
                .runs()
                .next_back()
                .filter(|run| run.is_failure())
                .cloned(),
            modified: std::time::SystemTime::UNIX_EPOCH,
        }
    }

    /// Computes the working history from the records in order.
    pub(super) fn working(&self) -> Working {
        let targets = self.records.iter().filter_map(|record| match record {
            Record::Rewind { to: at, .. } | Record::Reopen { marker: at, .. } => Some(*at as usize),
            Record::Message(_) | Record::Compact { .. } | Record::Meta(_) | Record::Run(_) => None,
        });
        let targets: HashSet<usize> = targets.collect();
        let mut earlier = HashMap::new();
        let mut now = Working::default();
        for (at, record) in self.records.iter().enumerate() {
            if targets.contains(&at) {
                earlier.insert(at, now.clone());
            }
            match record {
                Record::Message(message) => now.history.push((**message).clone()),
                Record::Compact {
                    summary,
                    keep,
                    archived_at,
                    ..
                } => now.begin_anew(marker_message(summary, archived_at), *keep),
                Record::Rewind { to: at, .. } | Record::Reopen { marker: at, .. } => {
                    now = earlier[&(*at as usize)].clone();
                }
                Record::Meta(_) | Record::Run(_) => {}
            }
        }
        now
    }

    pub(super) fn runs(&self) -> impl DoubleEndedIterator<Item = &RunRecord> {
        self.records.iter().filter_map(|record| match record {
            // Higher numbers are not valid run numbers.
            Record::Run(run) => Some(run).filter(|run| run.id <= MAX_RUN),
            _ => None,
        })
    }

    /// Request ids and their runs, as found by reading back to the last marker:
    /// earlier ones are known if the state after the marker repeats them.
    pub(super) fn requests(&self) -> Vec<(String, u64)> {
        let marker = self.records.iter().rposition(is_marker).unwrap_or(0);
        let mut requests: Vec<(String, u64)> = Vec::new();
        for record in &self.records[marker.saturating_sub(1)..] {
            match record {
                Record::Meta(meta) if let Some(told) = &meta.requests => requests.clone_from(told),
                Record::Run(run) if run.phase == RunPhase::Start && !run.request_id.is_empty() => {
                    requests.retain(|(id, _)| *id != run.request_id);
                    requests.push((run.request_id.clone(), run.id));
                    let excess = requests.len().saturating_sub(MAX_REQUESTS);
                    requests.drain(..excess);
                }
                _ => {}
            }
        }
        requests
    }

    /// The last record of a run that started and did not end.
    pub(super) fn open_run(&self) -> Option<RunRecord> {
        let told = self.records.iter().rev().find_map(|record| match record {
            Record::Run(run) => Some(Some(run).filter(|run| run.phase == RunPhase::Start)),
            Record::Meta(meta) if meta.last_run.is_some() => Some(meta.open_run.as_ref()),
            _ => None,
        });
        told.flatten().cloned()
    }

    /// The last end after the last marker, since stores read no further back.
    pub(super) fn last_end(&self) -> Option<RunRecord> {
        let tail = self.records.iter().rposition(is_marker).unwrap_or(0);
        let mut records = self.records[tail..].iter().rev();
        records.find_map(|record| match record {
            Record::Run(run) => Some(run)
                .filter(|run| run.phase != RunPhase::Start)
                .cloned(),
            _ => None,
        })
    }

    pub(super) fn waiting(&self) -> Vec<String> {
        let told = self.records.iter().rev().find_map(|record| match record {
            Record::Meta(meta) => meta.waiting.clone(),
            _ => None,
        });
        told.unwrap_or_default()
    }

    pub(super) fn steers(&self) -> Vec<String> {
        let mut steering = Steering::default();
        for record in self.records.iter().rev() {
            match record {
                Record::Message(message) if message.role == Role::User => steering.said(),
                Record::Meta(meta) => steering.state(0, meta),
                Record::Run(run) => steering.run(run),
                marker if is_marker(marker) => steering.compacted(),
                _ => {}
            }
        }
        steering.waiting().into_iter().map(|(_, it)| it).collect()
    }

    pub(super) fn current_meta(&self) -> Meta {
        let mut meta = self.meta.clone();
        for record in &self.records {
            if let Record::Meta(change) = record {
                meta.title = change.title.clone().unwrap_or(meta.title);
                meta.own_cwd = change.own_cwd.unwrap_or(meta.own_cwd);
                meta.cwd = change.cwd.clone().unwrap_or(meta.cwd);
                meta.uptime_secs = change.uptime_secs.unwrap_or(meta.uptime_secs);
                meta.context = change.context.or(meta.context);
            }
        }
        meta
    }
}

fn messages(records: &[Record]) -> impl Iterator<Item = (usize, &Message)> {
    let records = records.iter().enumerate();
    records.filter_map(|(at, record)| match record {
        Record::Message(message) => Some((at, &**message)),
        _ => None,
    })
}

/// The summary of a marker as a message.
fn marker_message(summary: &str, archived_at: &str) -> Message {
    Message {
        at: archived_at.into(),
        ..Message::user(summary)
    }
}

/// Formats a record as a short line.
pub(super) fn line(record: &Record) -> String {
    match record {
        Record::Message(m) => {
            let calls: Vec<&str> = m.tool_calls.iter().map(|c| c.name.as_str()).collect();
            let calls = if calls.is_empty() {
                String::new()
            } else {
                format!(" {calls:?}")
            };
            let by = if m.agent.is_empty() {
                String::new()
            } else {
                format!("<{}>", m.agent)
            };
            format!("{}{by}: {}{calls}", m.role.as_str(), m.content)
        }
        Record::Compact { summary, keep, .. } => format!("compact (keep {keep}): {summary}"),
        Record::Rewind { to, .. } => format!("rewind to {to}"),
        Record::Reopen { marker, title, .. } => format!("reopen {marker}: {title}"),
        Record::Meta(meta) => match &meta.title {
            Some(title) => format!("meta title {title}"),
            None => "meta".into(),
        },
        Record::Run(run) => match run.phase {
            RunPhase::Start => format!("run {} start", run.id),
            RunPhase::End => format!("run {} end {}", run.id, run.code),
            RunPhase::Interrupted => format!("run {} interrupted", run.id),
        },
    }
}
