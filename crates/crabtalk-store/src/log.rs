//! Appends to one conversation's log.
//!
//! Invariants: a batch is one buffer and is written completely or not at all; a
//! completed append is in the page cache and survives `kill -9`; this module never waits
//! for the disk.

use crate::encode;
use crate::error::not_done;
use crate::fs::Stat;
use crate::index::Index;
use crate::line::{Marker, Stamp};
use crate::load::Loaded;
use crate::repair::Tail;
use crate::state::Shared;
use crate::sync::Syncer;
use crabtalk_domain::storage::{
    ConversationLog, Error, Meta, MetaRecord, Position, Record, SyncPolicy,
};
use crabtalk_domain::{BoxFuture, ConversationKey};
use std::future::ready;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Capacity for a batch: a user message or a short answer.
const BATCH_BYTES: usize = 512;

/// The values for stamps and state lines.
#[derive(Clone)]
struct Ledger {
    meta: Meta,
    /// Offset of the last marker, 0 before the first; unknown after an external edit.
    marker: Option<u64>,
    messages: Option<u64>,
}

/// The log of one conversation.
pub(crate) struct JsonlLog {
    key: ConversationKey,
    shared: Arc<Shared>,
    index: Arc<Index>,
    syncer: Arc<Syncer>,
    policy: SyncPolicy,
    ledger: Ledger,
}

impl JsonlLog {
    pub(crate) fn new(
        key: ConversationKey,
        shared: Arc<Shared>,
        index: Arc<Index>,
        syncer: Arc<Syncer>,
        policy: SyncPolicy,
        loaded: &Loaded,
    ) -> Self {
        let ledger = Ledger {
            meta: loaded.meta.clone(),
            marker: loaded.marker,
            messages: loaded.messages,
        };
        Self {
            key,
            shared,
            index,
            syncer,
            policy,
            ledger,
        }
    }

    fn sync(&self, upto: Position, due: bool) -> BoxFuture<'static, Result<(), Error>> {
        if due {
            self.syncer.sync(&self.shared, upto.0)
        } else {
            Box::pin(ready(Ok(())))
        }
    }

    fn append_now(&mut self, records: &[Record]) -> Result<Position, Error> {
        let mut state = self.shared.lock();
        if !state.prepare(&*self.shared.fs)? {
            self.ledger.marker = None;
            self.ledger.messages = None;
        }
        let mut bytes = Vec::with_capacity(BATCH_BYTES);
        if state.unterminated {
            bytes.push(b'\n');
        }
        let framing = bytes.len();
        let mut ledger = self.ledger.clone();
        for record in records {
            ledger.encode(&mut bytes, state.end, record);
        }
        if bytes.len() > framing {
            self.index.touch(&state.path);
            state.write(&*self.shared.fs, &bytes)?;
            state.unterminated = false;
            self.ledger = ledger;
        }
        Ok(Position(state.end))
    }

    /// Renames the file to include the title (CONV-7). A started rename completes
    /// even if the caller is dropped.
    fn rename_for_title(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let (index, shared) = (Arc::clone(&self.index), Arc::clone(&self.shared));
        let (key, title) = (self.key.clone(), self.ledger.meta.title.clone());
        // The lock on the names may be held as long as a disk takes.
        let renaming = spawn_blocking(move || {
            // Lock order: the index before the log.
            let mut names = index.lock();
            let path = shared.lock().path.clone();
            if let Some(renamed) = names.rename_for_title(&key, &path, &title)? {
                let mut state = shared.lock();
                state.path = renamed;
                state.sync.renamed();
            }
            Ok(())
        });
        async move { renaming.await.unwrap_or_else(|e| Err(not_done(e))) }
    }
}

impl ConversationLog for JsonlLog {
    fn append(&mut self, records: &[Record]) -> BoxFuture<'static, Result<Position, Error>> {
        let before = self.ledger.meta.title.clone();
        // A write to the page cache does not block.
        let appended = self.append_now(records);
        if appended.is_err() || self.ledger.meta.title == before {
            return Box::pin(ready(appended));
        }
        let renamed = self.rename_for_title();
        let key = self.key.clone();
        Box::pin(async move {
            // The log contains the title even if the rename fails.
            if let Err(error) = renamed.await {
                tracing::warn!(conversation = %key, %error, "cannot rename the log after the title \
                                                             changed");
            }
            appended
        })
    }

    fn synced(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>> {
        self.sync(upto, self.policy == SyncPolicy::Step)
    }

    fn synced_at_end(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>> {
        self.sync(upto, self.policy != SyncPolicy::Never)
    }

    fn is_current(&self) -> BoxFuture<'static, bool> {
        let state = self.shared.lock();
        let left = |stat: Stat| stat.linked && stat.len == state.end;
        // Part of a refused append may be after the end, and is truncated first.
        let is_current = state.tail != Tail::Clean || state.file.stat().is_ok_and(left);
        Box::pin(ready(is_current))
    }
}

impl Ledger {
    fn encode(&mut self, out: &mut Vec<u8>, end: u64, record: &Record) {
        let stamp = Stamp {
            prev: self.marker,
            messages: self.messages,
        };
        match record {
            Record::Message(message) if message.auto_injected => {}
            Record::Message(message) => {
                encode::message(out, message);
                self.messages = self.messages.map(|n| n.saturating_add(1));
            }
            Record::Compact {
                summary,
                title,
                archived_at,
                keep,
            } => self.archive(
                out,
                end,
                &Marker {
                    summary: summary.clone(),
                    title: title.clone(),
                    archived_at: archived_at.clone(),
                    keep: *keep,
                    reopen: None,
                    stamp,
                },
            ),
            Record::Reopen {
                marker,
                title,
                archived_at,
            } => self.archive(
                out,
                end,
                &Marker {
                    title: title.clone(),
                    archived_at: archived_at.clone(),
                    reopen: Some(*marker),
                    stamp,
                    ..Marker::default()
                },
            ),
            Record::Rewind { to, at } => encode::rewind(out, *to, at, stamp),
            Record::Meta(record) => {
                self.change(record);
                encode::meta(out, &self.meta, record, stamp);
            }
            Record::Run(run) => encode::run(out, run, stamp),
        }
    }

    fn archive(&mut self, out: &mut Vec<u8>, end: u64, marker: &Marker) {
        self.marker = Some(end + out.len() as u64);
        encode::marker(out, marker);
    }

    fn change(&mut self, record: &MetaRecord) {
        if let Some(title) = &record.title {
            self.meta.title.clone_from(title);
        }
        if let Some(cwd) = &record.cwd {
            self.meta.cwd.clone_from(cwd);
        }
        if let Some(own_cwd) = record.own_cwd {
            self.meta.own_cwd = own_cwd;
        }
        if let Some(uptime_secs) = record.uptime_secs {
            self.meta.uptime_secs = uptime_secs;
        }
        if let Some(context) = record.context {
            self.meta.context = Some(context);
        }
    }
}
