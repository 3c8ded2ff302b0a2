//! Syncs logs concurrently with the work of their runs.
//!
//! Invariants: one thread at a time syncs a log, and concurrent requests share the next
//! sync; a log is in the queue at most once.

use crate::error::{again, failed};
use crate::fs::{Access, FileLayer, read_exact};
use crate::state::{Shared, State};
use crabtalk_domain::BoxFuture;
use crabtalk_domain::storage::Error;
use std::collections::VecDeque;
use std::future::ready;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// Maximum concurrent syncs: file systems commit waiting syncs together, so that a few
/// threads keep a disk busy.
const MAX_THREADS: usize = 4;

/// Syncs the logs of a store in the blocking pool.
#[derive(Default)]
pub(crate) struct Syncer(Arc<Inner>);

#[derive(Default)]
struct Inner {
    queue: Mutex<Queue>,
    /// Whether the store was dropped, so that another daemon may use the home: nothing must be
    /// written any more.
    abandoned: AtomicBool,
}

#[derive(Default)]
struct Queue {
    logs: VecDeque<Arc<Shared>>,
    /// Number of running threads.
    running: usize,
}

impl Syncer {
    /// Resolves when the log is durable up to an offset. A started sync continues if the
    /// future is dropped.
    pub(crate) fn sync(
        &self,
        log: &Arc<Shared>,
        upto: u64,
    ) -> BoxFuture<'static, Result<(), Error>> {
        let (tell, told) = oneshot::channel();
        let (enqueue, path) = {
            let mut state = log.lock();
            if upto <= state.sync.synced && !state.sync.inherited {
                return Box::pin(ready(Ok(())));
            }
            state.sync.waiters.push((upto, tell));
            let busy = std::mem::replace(&mut state.sync.busy, true);
            (!busy, state.path.clone())
        };
        if enqueue {
            self.enqueue(Arc::clone(log));
        }
        Box::pin(async move {
            told.await.unwrap_or_else(|_| {
                let gone = io::Error::other("the daemon is shutting down");
                Err(failed("sync", &path, gone))
            })
        })
    }

    fn enqueue(&self, log: Arc<Shared>) {
        let mut queue = self.0.lock();
        queue.logs.push_back(log);
        if queue.running < MAX_THREADS {
            queue.running += 1;
            let inner = Arc::clone(&self.0);
            spawn_blocking(move || inner.work());
        }
    }
}

impl Drop for Syncer {
    /// A sync that has not finished was never acknowledged.
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::Relaxed);
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs until the queue is empty.
    fn work(&self) {
        while let Some(log) = self.next() {
            if log.sync_once(&self.abandoned) {
                self.lock().logs.push_back(log);
            }
        }
    }

    /// Takes the next log from the queue; if it is empty, the calling thread ends.
    fn next(&self) -> Option<Arc<Shared>> {
        let mut queue = self.lock();
        let next = queue.logs.pop_front();
        if next.is_none() {
            queue.running -= 1;
        }
        next
    }
}

impl Shared {
    /// Syncs the current content and notifies the waiters. Returns whether more were added
    /// during the sync.
    fn sync_once(&self, abandoned: &AtomicBool) -> bool {
        let (file, path, upto, name_dirty, ready) = {
            let mut state = self.lock();
            let ready = state.recover(&*self.fs);
            let name_dirty = std::mem::take(&mut state.sync.name_dirty);
            (
                Arc::clone(&state.file),
                state.path.clone(),
                state.end,
                name_dirty,
                ready,
            )
        };
        let name = || match path.parent().filter(|_| name_dirty) {
            Some(dir) => self.fs.sync_dir(dir),
            None => Ok(()),
        };
        let synced = ready.and_then(|()| file.sync()).and_then(|()| name());
        let mut state = self.lock();
        match &synced {
            Ok(()) => {
                state.sync.done(upto);
                state.answer(upto, "sync", None);
            }
            Err(error) => {
                state.sync.name_dirty |= name_dirty;
                tracing::error!(log = %path.display(), %error, "cannot sync the log");
                state.sync.suspect = true;
                if !abandoned.load(Ordering::Relaxed)
                    && let Err(error) = state.recover(&*self.fs)
                {
                    tracing::error!(log = %path.display(), %error, "cannot reopen the log");
                }
                state.answer(upto, "sync", Some(error));
            }
        }
        state.sync.busy = !state.sync.waiters.is_empty();
        state.sync.busy
    }
}

impl State {
    fn answer(&mut self, upto: u64, action: &'static str, error: Option<&io::Error>) {
        for (wanted, tell) in std::mem::take(&mut self.sync.waiters) {
            if wanted > upto {
                self.sync.waiters.push((wanted, tell));
                continue;
            }
            let result = match error {
                None => Ok(()),
                Some(error) => Err(failed(action, &self.path, again(error))),
            };
            // The waiter may have dropped its future.
            drop(tell.send(result));
        }
    }

    /// After a failed sync the kernel may return cached bytes that it will never write.
    /// Therefore reopens the file, checks that the durable part is present, and rewrites the
    /// rest, so that the next sync covers it.
    pub(crate) fn recover(&mut self, fs: &dyn FileLayer) -> io::Result<()> {
        if !self.sync.suspect {
            return Ok(());
        }
        let synced = self.sync.synced;
        let patch = fs.open(&self.path, Access::Patch)?;
        if synced > 0 && !self.sync.unsynced.is_empty() {
            let mut before = [0];
            read_exact(&*patch, &mut before, synced - 1)?;
            if before != [b'\n'] && self.sync.unsynced[0] != b'\n' {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the content of the file changed",
                ));
            }
        }
        let (mut rest, mut at) = (&self.sync.unsynced[..], synced);
        while !rest.is_empty() {
            match patch.write_at(rest, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    rest = &rest[n..];
                    at += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.file = fs.open(&self.path, Access::Append)?;
        self.sync.suspect = false;
        Ok(())
    }
}
