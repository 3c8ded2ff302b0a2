//! Syncs logs concurrently with the work of their runs.
//!
//! Invariants: a log is synced by one thread at a time, and concurrent requests
//! share the next sync; a log is in the queue at most once; threads exist only
//! while there is work and end soon after.

use crate::error::{again, failed};
use crate::fs::{Access, FileLayer, read_exact};
use crate::state::{Shared, State};
use crabtalk_domain::BoxFuture;
use crabtalk_domain::storage::Error;
use std::collections::VecDeque;
use std::future::ready;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Syncs at once: file systems commit what waits together, so that a few
/// threads keep a disk busy.
const MAX_THREADS: usize = 4;

/// How long an idle thread waits for more before it ends.
const IDLE: Duration = Duration::from_secs(3);

/// How long the store waits for syncs when it is dropped. Requested syncs were
/// awaited before that, and the daemon must end within 5 seconds.
const LAST_WAIT: Duration = Duration::from_millis(150);

/// Stack of a thread that only makes system calls.
const STACK_BYTES: usize = 256 * 1024;

/// The threads that sync all logs of a store.
#[derive(Default)]
pub(crate) struct Syncer(Arc<Inner>);

#[derive(Default)]
struct Inner {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// A thread has ended.
    ended: Condvar,
    /// The store is gone and the home may be another daemon's: nothing is to be
    /// written any more.
    abandoned: AtomicBool,
}

#[derive(Default)]
struct Queue {
    logs: VecDeque<Arc<Shared>>,
    threads: Vec<JoinHandle<()>>,
    running: usize,
    idle: usize,
    closed: bool,
}

impl Syncer {
    fn start_thread(&self, queue: &mut Queue) -> io::Result<()> {
        let inner = Arc::clone(&self.0);
        let thread = Builder::new()
            .name("log-sync".into())
            .stack_size(STACK_BYTES);
        queue.threads.push(thread.spawn(move || inner.work())?);
        queue.running += 1;
        Ok(())
    }

    /// Resolves when the log is durable up to there.
    pub(crate) fn sync(
        &self,
        log: &Arc<Shared>,
        upto: u64,
    ) -> BoxFuture<'static, Result<(), Error>> {
        let (tell, told) = oneshot::channel();
        let enqueue = {
            let mut state = log.lock();
            if upto <= state.sync.synced && !state.sync.inherited {
                return Box::pin(ready(Ok(())));
            }
            state.sync.waiters.push((upto, tell));
            !std::mem::replace(&mut state.sync.busy, true)
        };
        if enqueue && let Err(source) = self.enqueue(Arc::clone(log)) {
            let mut state = log.lock();
            state.sync.busy = false;
            state.answer(u64::MAX, "start a thread to sync", Some(&source));
        }
        let path = log.lock().path.clone();
        Box::pin(async move {
            told.await.unwrap_or_else(|_| {
                let gone = io::Error::other("the thread that syncs it ended");
                Err(failed("sync", &path, gone))
            })
        })
    }

    fn enqueue(&self, log: Arc<Shared>) -> io::Result<()> {
        let mut queue = self.0.lock();
        queue.logs.push_back(log);
        if queue.logs.len() > queue.idle && queue.running < MAX_THREADS {
            queue.threads.retain(|thread| !thread.is_finished());
            match self.start_thread(&mut queue) {
                Ok(()) => {}
                // A running thread will process the queue.
                Err(_) if queue.running > 0 => {}
                Err(e) => {
                    queue.logs.pop_back();
                    return Err(e);
                }
            }
        }
        drop(queue);
        self.0.wake.notify_one();
        Ok(())
    }
}

impl Drop for Syncer {
    /// Finishes the queue. Syncs that a slow disk does not finish in time are
    /// abandoned, so that a blocked thread does not keep the process alive;
    /// their requests were never acknowledged.
    fn drop(&mut self) {
        let deadline = Instant::now() + LAST_WAIT;
        let threads = {
            let mut queue = self.0.lock();
            queue.closed = true;
            self.0.wake.notify_all();
            while queue.running > 0 {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let ended = self.0.ended.wait_timeout(queue, left);
                (queue, _) = ended.unwrap_or_else(PoisonError::into_inner);
            }
            if queue.running > 0 {
                queue.logs.clear();
                self.0.abandoned.store(true, Ordering::Relaxed);
                tracing::warn!(
                    threads = queue.running,
                    "the disk is still at work on a log and is not waited for"
                );
                return;
            }
            std::mem::take(&mut queue.threads)
        };
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread that syncs logs panicked");
            }
        }
    }
}

/// Counts a thread out, however it ends.
struct Running<'a>(&'a Inner);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.ended.notify_all();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let _running = Running(self);
        while let Some(log) = self.next() {
            if log.sync_once(&self.abandoned) {
                self.lock().logs.push_back(log);
            }
        }
    }

    /// The next log; `None` when the thread should end.
    fn next(&self) -> Option<Arc<Shared>> {
        let mut queue = self.lock();
        loop {
            if let Some(log) = queue.logs.pop_front() {
                return Some(log);
            }
            if queue.closed {
                return None;
            }
            queue.idle += 1;
            let waited = self.wake.wait_timeout(queue, IDLE);
            let (woken, limit) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.idle -= 1;
            if limit.timed_out() && queue.logs.is_empty() {
                return None;
            }
        }
    }
}

impl Shared {
    /// Syncs the current content and notifies the waiters. Returns whether new
    /// waiters were added during the sync.
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
                tracing::error!(log = %path.display(), %error, "a sync failed");
                state.sync.suspect = true;
                if !abandoned.load(Ordering::Relaxed)
                    && let Err(error) = state.recover(&*self.fs)
                {
                    tracing::error!(log = %path.display(), %error, "the log could not be reopened");
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
            // A waiter that left no longer wants to know.
            drop(tell.send(result));
        }
    }

    /// After a failed sync the kernel may return cached bytes that it will never write.
    /// Therefore reopen the file, verify that the durable part is present, and
    /// write the rest again: the next sync then covers it.
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
                    "its content changed",
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
