//! The log of one conversation, as it would be read from a disk.

use crabtalk_domain::storage::{MAX_RUN, Meta, Record, RunPhase, RunRecord, Steering};
use crabtalk_domain::{Message, Role};

#[derive(Default, Clone)]
pub(super) struct Log {
    pub(super) meta: Meta,
    pub(super) records: Vec<Record>,
    /// Records in front of this survive a power cut.
    pub(super) synced: usize,
}

impl Log {
    pub(super) fn messages(&self) -> Vec<(usize, Message)> {
        let message = |(at, record): (usize, &Record)| match record {
            Record::Message(message) => Some((at, (**message).clone())),
            Record::Compact { .. } | Record::Meta(_) | Record::Run(_) => None,
        };
        self.records
            .iter()
            .enumerate()
            .filter_map(message)
            .collect()
    }

    /// The working history, how many messages lie before it, and how many of it
    /// were kept from before the last marker.
    pub(super) fn working(&self) -> (Vec<Message>, u64, usize) {
        let messages = self.messages();
        let marker = self
            .records
            .iter()
            .enumerate()
            .rev()
            .find_map(|(at, r)| match r {
                Record::Compact { summary, keep, .. } => Some((at, summary.clone(), *keep)),
                Record::Message(_) | Record::Meta(_) | Record::Run(_) => None,
            });
        let Some((marker, summary, keep)) = marker else {
            return (messages.into_iter().map(|(_, m)| m).collect(), 0, 0);
        };
        let before = messages.iter().filter(|(at, _)| *at < marker).count();
        let archived = before.saturating_sub(keep);
        let rest = messages.into_iter().skip(archived).map(|(_, m)| m);
        // A fresh start has no summary.
        let summary = Some(summary).filter(|s| !s.is_empty()).map(Message::user);
        (
            summary.into_iter().chain(rest).collect(),
            archived as u64,
            before - archived,
        )
    }

    pub(super) fn runs(&self) -> impl DoubleEndedIterator<Item = &RunRecord> {
        self.records.iter().filter_map(|record| match record {
            // Above that no number is a run's.
            Record::Run(run) => Some(run).filter(|run| run.id <= MAX_RUN),
            Record::Message(_) | Record::Compact { .. } | Record::Meta(_) => None,
        })
    }

    /// Requests and their runs, as who reads back to the last marker finds them:
    /// what lies further back is known if the state beside the marker repeats it.
    pub(super) fn requests(&self) -> Vec<(String, u64)> {
        let is_marker = |record: &Record| matches!(record, Record::Compact { .. });
        let marker = self.records.iter().rposition(is_marker).unwrap_or(0);
        let mut requests: Vec<(String, u64)> = Vec::new();
        for record in &self.records[marker.saturating_sub(1)..] {
            match record {
                Record::Meta(meta) if let Some(told) = &meta.requests => requests.clone_from(told),
                Record::Run(run) if run.phase == RunPhase::Start && !run.request_id.is_empty() => {
                    requests.retain(|(id, _)| *id != run.request_id);
                    requests.push((run.request_id.clone(), run.id));
                }
                Record::Message(_) | Record::Compact { .. } | Record::Meta(_) | Record::Run(_) => {}
            }
        }
        requests
    }

    /// The run that began and never ended, as was told of it last.
    pub(super) fn open_run(&self) -> Option<RunRecord> {
        let told = self.records.iter().rev().find_map(|record| match record {
            Record::Run(run) => Some(Some(run).filter(|run| run.phase == RunPhase::Start)),
            Record::Meta(meta) if meta.last_run.is_some() => Some(meta.open_run.as_ref()),
            Record::Message(_) | Record::Compact { .. } | Record::Meta(_) => None,
        });
        told.flatten().cloned()
    }

    pub(super) fn waiting(&self) -> Vec<String> {
        let told = self.records.iter().rev().find_map(|record| match record {
            Record::Meta(meta) => meta.waiting.clone(),
            Record::Message(_) | Record::Compact { .. } | Record::Run(_) => None,
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
                Record::Compact { .. } => steering.compacted(),
                Record::Message(_) => {}
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
