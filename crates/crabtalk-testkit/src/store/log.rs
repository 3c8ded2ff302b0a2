//! The log of one conversation, as it would be read from a disk.

use crabtalk_domain::storage::{MAX_RUN, Meta, Record, RunPhase, RunRecord, Steering};
use crabtalk_domain::{Message, Role};
use std::collections::{HashMap, HashSet};

#[derive(Default, Clone)]
pub(super) struct Log {
    pub(super) meta: Meta,
    pub(super) records: Vec<Record>,
    /// Records in front of this survive a power cut.
    pub(super) synced: usize,
}

/// A working history.
#[derive(Default, Clone)]
pub(super) struct Working {
    pub(super) history: Vec<Message>,
    pub(super) has_summary: bool,
    /// Messages that were kept from before the summary.
    pub(super) kept: usize,
}

impl Working {
    fn begin_anew(&mut self, summary: &str, keep: usize) {
        let said = self.history.split_off(usize::from(self.has_summary));
        let kept = &said[said.len().saturating_sub(keep)..];
        // A fresh start has no summary.
        let summary = Some(summary).filter(|summary| !summary.is_empty());
        let summary = summary.map(Message::user);
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
        let message = |(at, record): (usize, &Record)| match record {
            Record::Message(message) => Some((at, (**message).clone())),
            _ => None,
        };
        self.records
            .iter()
            .enumerate()
            .filter_map(message)
            .collect()
    }

    /// The working history: what the records make of it one after the other.
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
                Record::Compact { summary, keep, .. } => now.begin_anew(summary, *keep),
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
            // Above that no number is a run's.
            Record::Run(run) => Some(run).filter(|run| run.id <= MAX_RUN),
            _ => None,
        })
    }

    /// Requests and their runs, as who reads back to the last marker finds them:
    /// what lies further back is known if the state beside the marker repeats it.
    pub(super) fn requests(&self) -> Vec<(String, u64)> {
        let marker = self.records.iter().rposition(is_marker).unwrap_or(0);
        let mut requests: Vec<(String, u64)> = Vec::new();
        for record in &self.records[marker.saturating_sub(1)..] {
            match record {
                Record::Meta(meta) if let Some(told) = &meta.requests => requests.clone_from(told),
                Record::Run(run) if run.phase == RunPhase::Start && !run.request_id.is_empty() => {
                    requests.retain(|(id, _)| *id != run.request_id);
                    requests.push((run.request_id.clone(), run.id));
                }
                _ => {}
            }
        }
        requests
    }

    /// The run that began and never ended, as was told of it last.
    pub(super) fn open_run(&self) -> Option<RunRecord> {
        let told = self.records.iter().rev().find_map(|record| match record {
            Record::Run(run) => Some(Some(run).filter(|run| run.phase == RunPhase::Start)),
            Record::Meta(meta) if meta.last_run.is_some() => Some(meta.open_run.as_ref()),
            _ => None,
        });
        told.flatten().cloned()
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

/// A record as a short line.
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
