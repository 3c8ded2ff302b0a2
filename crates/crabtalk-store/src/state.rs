//! State of an open log, shared by the appending and the syncing threads: the end of its
//! valid lines and of its durable part.

use crate::error::failed;
use crate::fs::{FileLayer, LogFile, append_all};
use crate::repair::{Tail, mend};
use crabtalk_domain::storage::Error;
use std::cmp::Ordering;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The file of an open log, shared with the thread that syncs it.
pub(crate) struct Shared {
    pub(crate) fs: Arc<dyn FileLayer>,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn LogFile>,
    /// End of the valid lines.
    pub(crate) end: u64,
    pub(crate) tail: Tail,
    /// Whether the newline of the last valid line is missing.
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

    /// No critical section panics within a change.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes a batch after the last valid line, or changes nothing.
    pub(crate) fn write(&mut self, fs: &dyn FileLayer, bytes: &[u8]) -> Result<(), Error> {
        if let Err(source) = append_all(&*self.file, bytes) {
            self.tail = Tail::Refused;
            let error = failed("append to", &self.path, source);
            // If this fails too, the next append begins with it.
            if self.mend(fs).is_err() {
                tracing::warn!(log = %self.path.display(), "cannot remove a partial append; the next append retries");
            }
            return Err(error);
        }
        self.end += bytes.len() as u64;
        self.sync.appended(bytes);
        Ok(())
    }

    /// Prepares the log for an append; returns whether the file is unchanged.
    pub(crate) fn prepare(&mut self, fs: &dyn FileLayer) -> Result<bool, Error> {
        self.recover(fs)
            .map_err(|e| failed("reopen", &self.path, e))?;
        self.mend(fs)?;
        let stat = self
            .file
            .stat()
            .map_err(|e| failed("stat", &self.path, e))?;
        if !stat.linked {
            let gone = io::Error::new(io::ErrorKind::NotFound, "the file was deleted");
            return Err(failed("append to", &self.path, gone));
        }
        match stat.len.cmp(&self.end) {
            Ordering::Equal => Ok(true),
            Ordering::Greater => self.adopt(stat.len).map(|()| false),
            // The file lacks lines that are in memory, and may end within a line.
            Ordering::Less => {
                let cut = io::Error::other(
                    "another program truncated the file; the log is reloaded: send the message \
                     again",
                );
                Err(failed("append to", &self.path, cut))
            }
        }
    }

    /// Truncates the file after the valid lines.
    pub(crate) fn mend(&mut self, fs: &dyn FileLayer) -> Result<(), Error> {
        mend(fs, &*self.file, &self.path, self.end, self.tail)?;
        self.tail = Tail::Clean;
        Ok(())
    }

    /// Accepts an external edit of the file instead of overwriting it, since its content may
    /// be wanted.
    fn adopt(&mut self, len: u64) -> Result<(), Error> {
        tracing::warn!(
            log = %self.path.display(),
            expected = self.end,
            found = len,
            "another program changed the log; appending after its last line"
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

/// Sync state of one log.
#[derive(Default)]
pub(crate) struct SyncState {
    /// Offset up to which the file is durable.
    pub(crate) synced: u64,
    /// Bytes appended since the last sync, rewritten if a failed sync lost them. Not larger
    /// than the run's own memory.
    pub(crate) unsynced: Vec<u8>,
    /// Whether syncing is disabled.
    pub(crate) off: bool,
    /// Whether bytes present on opening may not be durable: their writer may have been
    /// killed before its sync.
    pub(crate) inherited: bool,
    /// Whether the file's name is not durable yet.
    pub(crate) name_dirty: bool,
    pub(crate) waiters: Vec<(u64, oneshot::Sender<Result<(), Error>>)>,
    /// Whether a sync failed and the file could not be reopened yet.
    pub(crate) suspect: bool,
    /// Whether the log is queued or a thread is syncing it.
    pub(crate) busy: bool,
}

impl SyncState {
    /// Creates the state of a log that ends at `end` on opening. The first sync also makes the
    /// bytes of an earlier process durable; callers that report those bytes request it.
    pub(crate) fn opened(end: u64, off: bool) -> Self {
        Self {
            synced: end,
            inherited: true,
            off,
            ..Self::default()
        }
    }

    /// Creates the state of a new log with these first lines.
    pub(crate) fn created(lines: Vec<u8>, off: bool) -> Self {
        let unsynced = if off { Vec::new() } else { lines };
        Self {
            unsynced,
            name_dirty: true,
            off,
            ..Self::default()
        }
    }

    /// Adds appended bytes.
    pub(crate) fn appended(&mut self, bytes: &[u8]) {
        if !self.off {
            self.unsynced.extend_from_slice(bytes);
        }
    }

    /// Records that the name changed.
    pub(crate) fn renamed(&mut self) {
        self.name_dirty = true;
    }

    /// Discards the cached state of the content.
    pub(crate) fn restart(&mut self, end: u64) {
        self.unsynced.clear();
        self.synced = end;
    }

    pub(crate) fn done(&mut self, upto: u64) {
        if !self.off && upto > self.synced + self.unsynced.len() as u64 {
            // Another program truncated the log; its old state is invalid.
            return;
        }
        let gone = usize::try_from(upto.saturating_sub(self.synced)).unwrap_or(usize::MAX);
        if gone >= self.unsynced.len() {
            self.unsynced = Vec::new();
        } else {
            self.unsynced.drain(..gone);
        }
        self.synced = self.synced.max(upto);
        self.inherited = false;
    }
}
