//! Runs work on files on the blocking pool, a bounded number at a time.
//!
//! Invariants: work on files delays no async task; a caller waits a bounded
//! time for a disk that does not answer, even though the thread may hang on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Pieces of work at once. A disk is not quicker with more; the number leaves
/// room for a few that hang on a mount.
const MAX_AT_ONCE: usize = 16;

/// Longest wait for a turn.
const TURN_WITHIN: Duration = Duration::from_secs(30);

/// Longest wait for work that has begun: more than reading all that a tool may
/// read takes on a slow disk.
const WORK_WITHIN: Duration = Duration::from_secs(120);

/// Longest wait for a short read: a slow disk takes a second or two.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// A share of the blocking pool. Cheap to clone; clones share it.
#[derive(Debug, Clone)]
pub struct FileWork(Arc<Semaphore>);

impl Default for FileWork {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_AT_ONCE)))
    }
}

/// Tells the work that its caller is gone.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl FileWork {
    /// Threads of the blocking pool that this work uses at most.
    pub const MAX_THREADS: usize = MAX_AT_ONCE;

    /// Runs work. Dropping the future sets the flag that the work is given; a
    /// replacement that has begun is finished whole. `of` names the conversation
    /// or path in errors.
    ///
    /// # Errors
    /// Those of the work; a text when the disk does not answer in time or the
    /// work panicked.
    pub async fn run<T, E>(
        &self,
        of: &str,
        work: impl FnOnce(&AtomicBool) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<String> + Send + 'static,
    {
        self.within(WORK_WITHIN, of, work).await
    }

    /// Reads a little of files or folders: fast where the disk answers.
    ///
    /// # Errors
    /// A text when the disk does not answer in time or the work panicked.
    pub async fn look<T: Send + 'static>(
        &self,
        of: &str,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        self.within(LOOK_WITHIN, of, move |_| Ok(look())).await
    }

    async fn within<T, E>(
        &self,
        limit: Duration,
        of: &str,
        work: impl FnOnce(&AtomicBool) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<String> + Send + 'static,
    {
        let late = |what: &str, limit: Duration| {
            let secs = limit.as_secs();
            E::from(format!(
                "{what} of {of} took longer than {secs} s; a disk or a mount does not answer"
            ))
        };
        let turn = timeout(TURN_WITHIN, Arc::clone(&self.0).acquire_owned());
        let turn = turn
            .await
            .map_err(|_| late("the queue for files", TURN_WITHIN))?;
        let dropped = SetOnDrop(Arc::default());
        let flag = Arc::clone(&dropped.0);
        let done = tokio::task::spawn_blocking(move || {
            // Held for as long as the thread is busy, not the call.
            let _turn = turn;
            work(&flag)
        });
        match timeout(limit, done).await {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => Err(E::from(format!("the work on files failed: {error}"))),
            Err(_) => Err(late("work on files", limit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn hanging_work_is_reported_and_leaves_turns_to_others() {
        let files = FileWork::default();
        let (release, released) = mpsc::channel::<()>();
        let hangs = move |_: &AtomicBool| Ok::<_, String>(released.recv().ok());
        let hangs = files.within(Duration::from_millis(1), "/mnt/dead", hangs);
        let error = hangs.await.expect_err("it hangs");
        assert!(error.contains("/mnt/dead"), "{error}");
        assert_eq!(files.look("other", || 1).await, Ok(1));
        drop(release);
    }

    #[tokio::test]
    async fn dropped_calls_set_the_flag() {
        let files = FileWork::default();
        let (tell, told) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let work = files.run("x", move |dropped: &AtomicBool| {
            gone.recv().ok();
            let _ = tell.send(dropped.load(Ordering::Relaxed));
            Ok::<_, String>(())
        });
        let call = timeout(Duration::from_millis(1), work).await;
        assert!(call.is_err());
        go.send(()).expect("it waits");
        let seen = tokio::task::spawn_blocking(move || told.recv()).await;
        assert_eq!(seen.expect("no panic"), Ok(true));
    }
}
