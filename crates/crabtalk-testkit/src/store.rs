//! Storage in memory that can be told to fail and to crash.
//!
//! Stricter than a disk in one way: it keeps what was appended and what was
//! synced apart, so that a test sees what a power cut would leave.

use crabtalk_domain::storage::{
    ArchiveInfo, ConversationLog, Error, LogEntry, LogPart, MAX_RUN, Meta, NewConversation, Opened,
    Page, Position, Record, RunPhase, RunRecord, RunTrace, Steering, Storage, Summary, Tracing,
};
use crabtalk_domain::{BoxFuture, ConversationKey, Message, Role};
use std::collections::BTreeMap;
use std::future::ready;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

#[derive(Default)]
struct State {
    logs: BTreeMap<ConversationKey, Log>,
    appends_left: Option<usize>,
    hold_syncs: bool,
    hold_opens: bool,
    panic_in_opens: bool,
    /// Wakes those who wait for a log.
    opens: Arc<Notify>,
}

#[derive(Default, Clone)]
struct Log {
    meta: Meta,
    records: Vec<Record>,
    /// Records in front of this survive a power cut.
    synced: usize,
}

/// A store in memory. Clones share it, so that a test may reopen it.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<State>>);

impl MemoryStore {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("not poisoned")
    }

    fn panics_in_opens(&self) -> bool {
        self.state().panic_in_opens
    }

    /// Lets this many more appends succeed; then the disk is full. `None`
    /// makes room again.
    pub fn fail_after(&self, appends: Option<usize>) {
        self.state().appends_left = appends;
    }

    /// From now on syncs never finish, as on a disk that hangs.
    pub fn hold_syncs(&self, hold: bool) {
        self.state().hold_syncs = hold;
    }

    /// From now on opening a log takes until this is taken back, as on a disk
    /// that hangs.
    pub fn hold_opens(&self, hold: bool) {
        let mut state = self.state();
        state.hold_opens = hold;
        state.opens.notify_waiters();
    }

    /// From now on opening a log panics, as whatever works for it may.
    pub fn panic_in_opens(&self, panic: bool) {
        self.state().panic_in_opens = panic;
    }

    /// What was appended, as short lines; changes of state other than the title
    /// are left out.
    pub fn lines(&self, key: &ConversationKey) -> Vec<String> {
        let state = self.state();
        state
            .logs
            .get(key)
            .into_iter()
            .flat_map(|log| &log.records)
            .map(line)
            .filter(|line| line != "meta")
            .collect()
    }

    /// What was appended.
    pub fn records(&self, key: &ConversationKey) -> Vec<Record> {
        let state = self.state();
        let log = state.logs.get(key);
        log.map(|log| log.records.clone()).unwrap_or_default()
    }

    /// Gives the last run of a log another number, as somebody's edit might.
    pub fn renumber_last_run(&self, key: &ConversationKey, id: u64) {
        let mut state = self.state();
        let Some(log) = state.logs.get_mut(key) else {
            return;
        };
        let runs = log.records.iter_mut().filter_map(|record| match record {
            Record::Run(run) => Some(run),
            Record::Message(_) | Record::Compact { .. } | Record::Meta(_) => None,
        });
        if let Some(last) = runs.last() {
            last.id = id;
        }
    }

    /// Another store that holds what this one holds now: a daemon killed at
    /// this instant and started again.
    pub fn snapshot(&self) -> Self {
        let logs = self.state().logs.clone();
        Self(Arc::new(Mutex::new(State {
            logs,
            ..State::default()
        })))
    }

    /// As [`MemoryStore::snapshot`] after a power cut.
    pub fn power_cut(&self) -> Self {
        let cut = self.snapshot();
        for log in cut.state().logs.values_mut() {
            log.records.truncate(log.synced);
        }
        cut
    }
}

fn line(record: &Record) -> String {
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

struct Handle {
    store: MemoryStore,
    key: ConversationKey,
}

impl ConversationLog for Handle {
    fn append(&mut self, records: &[Record]) -> Result<Position, Error> {
        let mut state = self.store.state();
        if let Some(left) = state.appends_left.as_mut() {
            *left = left.checked_sub(1).ok_or_else(|| Error::Unwritable {
                file: PathBuf::from("memory"),
                source: std::io::Error::from(std::io::ErrorKind::StorageFull),
            })?;
        }
        let log = state.logs.entry(self.key.clone()).or_default();
        log.records.extend_from_slice(records);
        Ok(Position(log.records.len() as u64))
    }

    fn synced(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>> {
        let mut state = self.store.state();
        if state.hold_syncs {
            return Box::pin(std::future::pending());
        }
        if let Some(log) = state.logs.get_mut(&self.key) {
            log.synced = log.synced.max(upto.0 as usize);
        }
        Box::pin(ready(Ok(())))
    }

    fn rename_for_title(&mut self, _: &str) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(ready(Ok(())))
    }
}

impl Log {
    fn messages(&self) -> Vec<(usize, Message)> {
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
    fn working(&self) -> (Vec<Message>, u64, usize) {
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

    fn runs(&self) -> impl DoubleEndedIterator<Item = &RunRecord> {
        self.records.iter().filter_map(|record| match record {
            // Above that no number is a run's.
            Record::Run(run) => Some(run).filter(|run| run.id <= MAX_RUN),
            Record::Message(_) | Record::Compact { .. } | Record::Meta(_) => None,
        })
    }

    /// The run that began and never ended, as was told of it last.
    fn open_run(&self) -> Option<RunRecord> {
        let told = self.records.iter().rev().find_map(|record| match record {
            Record::Run(run) => Some(Some(run).filter(|run| run.phase == RunPhase::Start)),
            Record::Meta(meta) if meta.last_run.is_some() => Some(meta.open_run.as_ref()),
            Record::Message(_) | Record::Compact { .. } | Record::Meta(_) => None,
        });
        told.flatten().cloned()
    }

    fn waiting(&self) -> Vec<String> {
        let told = self.records.iter().rev().find_map(|record| match record {
            Record::Meta(meta) => meta.waiting.clone(),
            Record::Message(_) | Record::Compact { .. } | Record::Run(_) => None,
        });
        told.unwrap_or_default()
    }

    fn steers(&self) -> Vec<String> {
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

    fn current_meta(&self) -> Meta {
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

impl MemoryStore {
    fn open_now(
        &self,
        key: &ConversationKey,
        create: Option<NewConversation>,
    ) -> Result<Option<Opened>, Error> {
        let mut state = self.state();
        if !state.logs.contains_key(key) {
            let Some(new) = create else {
                return Ok(None);
            };
            let meta = Meta {
                created_at: new.created_at,
                cwd: new.cwd,
                ..Meta::default()
            };
            state.logs.insert(
                key.clone(),
                Log {
                    meta,
                    ..Log::default()
                },
            );
        }
        let log = &state.logs[key];
        let (history, archived_messages, kept) = log.working();
        let has_summary = log.records.iter().rev().find_map(|r| match r {
            Record::Compact { summary, .. } => Some(!summary.is_empty()),
            Record::Message(_) | Record::Meta(_) | Record::Run(_) => None,
        });
        let requests = log
            .runs()
            .filter(|r| r.phase == RunPhase::Start && !r.request_id.is_empty());
        let opened = Opened {
            log: Box::new(Handle {
                store: self.clone(),
                key: key.clone(),
            }),
            meta: log.current_meta(),
            history,
            has_summary: has_summary.unwrap_or(false),
            kept,
            archived_messages,
            last_run: log.runs().map(|run| run.id).max().unwrap_or(0),
            open_run: log.open_run(),
            requests: requests.map(|r| (r.request_id.clone(), r.id)).collect(),
            last_end: log
                .runs()
                .rev()
                .find(|run| run.phase != RunPhase::Start)
                .cloned(),
            waiting: log.waiting(),
            steers: log.steers(),
        };
        Ok(Some(opened))
    }
}

impl Storage for MemoryStore {
    fn open<'a>(
        &'a self,
        key: &'a ConversationKey,
        create: Option<NewConversation>,
    ) -> BoxFuture<'a, Result<Option<Opened>, Error>> {
        Box::pin(async move {
            loop {
                assert!(!self.panics_in_opens(), "a store that panics");
                let opens = Arc::clone(&self.state().opens);
                let woken = opens.notified();
                if !self.state().hold_opens {
                    return self.open_now(key, create);
                }
                woken.await;
            }
        })
    }

    fn list<'a>(
        &'a self,
        agent: Option<&'a str>,
        sender: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>> {
        let state = self.state();
        let fits = |(key, _): &(&ConversationKey, &Log)| {
            agent.is_none_or(|agent| agent == key.agent.as_str())
                && sender.is_none_or(|sender| sender == key.sender.as_str())
        };
        let summary = |(key, log): (&ConversationKey, &Log)| Summary {
            key: key.clone(),
            seq: 1,
            superseded: false,
            meta: log.current_meta(),
            file: format!("{}.jsonl", key.agent),
            message_count: log.messages().len() as u64,
            has_open_run: log.open_run().is_some(),
            failed: None,
            modified: std::time::SystemTime::UNIX_EPOCH,
        };
        Box::pin(ready(Ok(state
            .logs
            .iter()
            .filter(fits)
            .map(summary)
            .collect())))
    }

    fn page<'a>(
        &'a self,
        source: &'a LogPart,
        before: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, Error>> {
        let state = self.state();
        let (LogPart::Conversation(key) | LogPart::Archive(key, _)) = source else {
            return Box::pin(ready(Err(Error::NotFound("a file in memory".into()))));
        };
        let Some(log) = state.logs.get(key) else {
            return Box::pin(ready(Err(Error::NotFound(format!("conversation {key}")))));
        };
        let older = |at: &usize| before.is_none_or(|before| (*at as u64) < before);
        let messages = log
            .records
            .iter()
            .enumerate()
            .rev()
            .filter_map(|(at, r)| match r {
                Record::Message(message) if older(&at) => Some((at, message)),
                Record::Message(_) | Record::Compact { .. } | Record::Meta(_) | Record::Run(_) => {
                    None
                }
            });
        let mut entries: Vec<LogEntry> = messages
            .take(limit + 1)
            .map(|(at, message)| LogEntry {
                index: at as u64,
                message: (**message).clone(),
                compact: false,
            })
            .collect();
        let more = entries.len() > limit;
        entries.truncate(limit);
        entries.reverse();
        let from = entries.first().filter(|_| more).map_or(0, |e| e.index);
        let waiting = log.steers().into_iter().filter(|_| before.is_none());
        let waiting = waiting.map(|steer| LogEntry {
            index: log.records.len() as u64,
            message: Message::user(steer),
            compact: false,
        });
        let failed = log.records.iter().enumerate();
        let failed = failed.filter_map(|(at, record)| match record {
            Record::Run(run) if older(&at) && at as u64 >= from => {
                let ended = run.phase != RunPhase::Start;
                let failed = ended && (run.code != 0 || run.phase == RunPhase::Interrupted);
                failed.then(|| (at as u64, run.clone()))
            }
            Record::Run(_) | Record::Message(_) | Record::Compact { .. } | Record::Meta(_) => None,
        });
        let page = Page {
            waiting: waiting.collect(),
            failed: failed.collect(),
            entries,
            more,
        };
        Box::pin(ready(Ok(page)))
    }

    fn entries<'a>(
        &'a self,
        key: &'a ConversationKey,
        indexes: &'a [u64],
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, Error>> {
        let state = self.state();
        let Some(log) = state.logs.get(key) else {
            return Box::pin(ready(Err(Error::NotFound(format!("conversation {key}")))));
        };
        let entry = |index: &u64| match log.records.get(*index as usize)? {
            Record::Message(message) => Some(LogEntry {
                index: *index,
                message: (**message).clone(),
                compact: false,
            }),
            Record::Compact { .. } | Record::Meta(_) | Record::Run(_) => None,
        };
        Box::pin(ready(Ok(indexes.iter().filter_map(entry).collect())))
    }

    fn trace<'a>(
        &'a self,
        key: &'a ConversationKey,
        run: u64,
    ) -> BoxFuture<'a, Result<Option<RunTrace>, Error>> {
        let state = self.state();
        let Some(log) = state.logs.get(key) else {
            return Box::pin(ready(Err(Error::NotFound(format!("conversation {key}")))));
        };
        let mut tracing = Tracing::of(run);
        let found = log.records.iter().rev().find_map(|record| match record {
            Record::Message(message) => {
                tracing.message(message);
                None
            }
            Record::Run(run) => tracing.run(run).break_value(),
            Record::Compact { .. } | Record::Meta(_) => None,
        });
        Box::pin(ready(Ok(found.flatten())))
    }

    fn archives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<ArchiveInfo>, Error>> {
        let state = self.state();
        let records = state
            .logs
            .get(key)
            .map(|log| log.records.as_slice())
            .unwrap_or_default();
        let markers = records.iter().filter_map(|record| match record {
            Record::Compact {
                summary,
                title,
                archived_at,
                ..
            } => Some((summary.clone(), title.clone(), archived_at.clone())),
            Record::Message(_) | Record::Meta(_) | Record::Run(_) => None,
        });
        let info =
            |(at, (summary, title, archived_at)): (usize, (String, String, String))| ArchiveInfo {
                index: at as u32 + 1,
                title,
                archived_at,
                message_count: 0,
                summary,
            };
        Box::pin(ready(Ok(markers.enumerate().map(info).collect())))
    }

    fn remove<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<(), Error>> {
        let gone = self.state().logs.remove(key);
        Box::pin(ready(
            gone.map(|_| ())
                .ok_or_else(|| Error::NotFound(format!("conversation {key}"))),
        ))
    }

    fn file<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Summary, Error>> {
        Box::pin(ready(Err(Error::NotFound(name.to_owned()))))
    }

    fn remove_file<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(ready(Err(Error::NotFound(name.to_owned()))))
    }
}
