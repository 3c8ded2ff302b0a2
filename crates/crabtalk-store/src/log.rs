//! Appends to one conversation's log.
//!
//! Invariants: a batch is one buffer and becomes whole or nothing; an append
//! that returned is in the page cache and survives `kill -9`; nothing here
//! waits for the disk.

use crate::encode;
use crate::error::failed;
use crate::fs::{Access, FileLayer, LogFile, Stat, append_all};
use crate::index::Index;
use crate::line::Stamp;
use crate::load::Loaded;
use crate::repair::{Tail, mend};
use crate::store::{SyncPolicy, not_done};
use crate::sync::{SyncState, Syncer};
use crate::tail::MAX_LINE;
use crabtalk_domain::storage::{ConversationLog, Error, Meta, MetaRecord, Position, Record};
use crabtalk_domain::{BoxFuture, ConversationKey};
use std::cmp::Ordering;
use std::future::ready;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::spawn_blocking;

/// The file of an open log, shared with the thread that syncs it.
pub(crate) struct Shared {
    pub(crate) fs: Arc<dyn FileLayer>,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn LogFile>,
    /// Whether `file` was opened for writing; a read-only disk forbids it.
    pub(crate) writable: bool,
    /// Where the good lines end.
    pub(crate) end: u64,
    pub(crate) tail: Tail,
    /// Whether the newline of the last good line is missing.
    pub(crate) unterminated: bool,
    pub(crate) sync: SyncState,
}

impl Shared {
    pub(crate) fn new(fs: Arc<dyn FileLayer>, state: State) -> Arc<Self> {
        Arc::new(Self {
            fs,
            state: Mutex::new(state),
        })
    }

    /// Nothing in a critical section panics half-way through a change.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes a batch behind the good end, or changes nothing.
    fn write(&mut self, fs: &dyn FileLayer, bytes: &[u8]) -> Result<(), Error> {
        if let Err(source) = append_all(&*self.file, bytes) {
            self.tail = Tail::Refused;
            let error = failed("append to", &self.path, source);
            // Where even this fails, the next append begins with it.
            if self.mend(fs).is_err() {
                tracing::warn!(log = %self.path.display(), "part of a refused append is left for now");
            }
            return Err(error);
        }
        self.end += bytes.len() as u64;
        self.sync.appended(bytes);
        Ok(())
    }

    /// Makes the log ready to be appended to; whether it is as we left it.
    fn prepare(&mut self, fs: &dyn FileLayer) -> Result<bool, Error> {
        if !self.writable {
            let opened = fs.open(&self.path, Access::Append);
            self.file = opened.map_err(|e| failed("open", &self.path, e))?;
            self.writable = true;
        }
        self.recover(fs)
            .map_err(|e| failed("reopen", &self.path, e))?;
        self.mend(fs)?;
        let stat = self
            .file
            .stat()
            .map_err(|e| failed("look at", &self.path, e))?;
        if !stat.linked {
            let gone = io::Error::new(io::ErrorKind::NotFound, "its file was deleted meanwhile");
            return Err(failed("append to", &self.path, gone));
        }
        match stat.len.cmp(&self.end) {
            Ordering::Equal => Ok(true),
            Ordering::Greater => self.adopt(stat.len).map(|()| false),
            // What is in memory is not on disk any more, and half a line may be.
            Ordering::Less => {
                let cut = io::Error::other(
                    "another program cut it while it was open; it is read again now, say that once more",
                );
                Err(failed("append to", &self.path, cut))
            }
        }
    }

    /// Brings the end of the file back to that of the good lines.
    pub(crate) fn mend(&mut self, fs: &dyn FileLayer) -> Result<(), Error> {
        mend(fs, &*self.file, &self.path, self.end, self.tail)?;
        self.tail = Tail::Clean;
        Ok(())
    }

    /// Accepts that somebody edited the file meanwhile, rather than to write
    /// over it: whose words they are is not ours to judge.
    fn adopt(&mut self, len: u64) -> Result<(), Error> {
        tracing::warn!(
            log = %self.path.display(),
            expected = self.end,
            found = len,
            "somebody else changed the log; going on behind what is there"
        );
        let mut last = [b'\n'];
        if len > 0 {
            crate::fs::read_exact(&*self.file, &mut last, len - 1)
                .map_err(|e| failed("read", &self.path, e))?;
        }
        self.unterminated = last != [b'\n'];
        self.end = len;
        self.sync.restart(len);
        Ok(())
    }
}

/// Room for a batch: what a person says, or a short answer.
const BATCH_BYTES: usize = 512;

/// What stamps and state lines are made of.
#[derive(Clone)]
struct Ledger {
    meta: Meta,
    /// The last marker, 0 before the first; unknown after somebody's edit.
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
            marker: Some(loaded.marker),
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
}

impl ConversationLog for JsonlLog {
    fn append(&mut self, records: &[Record]) -> Result<Position, Error> {
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
            let before = bytes.len();
            ledger.encode(&mut bytes, state.end, record);
            if bytes.len() - before > MAX_LINE {
                let long = "it is longer than the longest line that could be read again, 64 MiB";
                let long = io::Error::new(io::ErrorKind::InvalidInput, long);
                return Err(failed("append a message to", &state.path, long));
            }
        }
        if bytes.len() > framing {
            self.index.touch(&state.path);
            state.write(&*self.shared.fs, &bytes)?;
            state.unterminated = false;
            self.ledger = ledger;
        }
        Ok(Position(state.end))
    }

    fn synced(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>> {
        self.sync(upto, self.policy == SyncPolicy::Step)
    }

    fn synced_at_end(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>> {
        self.sync(upto, self.policy != SyncPolicy::Never)
    }

    fn is_as_left(&self) -> bool {
        let state = self.shared.lock();
        let left = |stat: Stat| stat.linked && stat.len == state.end;
        // Part of a refused append may be behind the end, and is cut off first.
        state.tail != Tail::Clean || state.file.stat().is_ok_and(left)
    }

    fn rename_for_title(&mut self, title: &str) -> BoxFuture<'static, Result<(), Error>> {
        let (index, shared) = (Arc::clone(&self.index), Arc::clone(&self.shared));
        let (key, title) = (self.key.clone(), title.to_owned());
        // Others may be at the names for as long as a disk takes.
        let renaming = spawn_blocking(move || {
            // The index goes first wherever both are locked.
            let mut names = index.lock();
            let path = shared.lock().path.clone();
            if let Some(renamed) = names.rename_for_title(&key, &path, &title)? {
                let mut state = shared.lock();
                state.path = renamed;
                state.sync.renamed();
            }
            Ok(())
        });
        Box::pin(async move { renaming.await.unwrap_or_else(|e| Err(not_done(e))) })
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
            } => {
                let offset = end + out.len() as u64;
                encode::marker(out, summary, title, archived_at, *keep, stamp);
                self.marker = Some(offset);
            }
            Record::Meta(record) => {
                self.change(record);
                encode::meta(out, &self.meta, record, stamp);
            }
            Record::Run(run) => encode::run(out, run, stamp),
        }
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
