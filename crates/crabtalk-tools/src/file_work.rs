//! Runs a bounded number of file operations on the blocking pool.
//!
//! Invariants: file operations do not block async tasks; a caller waits a bounded
//! time for an unresponsive disk, although the thread may stay blocked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Maximum number of concurrent operations. More would not speed up a disk; this many leave
/// room for a few that hang on a mount.
const MAX_AT_ONCE: usize = 16;

/// Longest wait for a permit.
const TURN_WITHIN: Duration = Duration::from_secs(30);

/// Longest wait for an operation that has begun: reading as much as a tool may read takes
/// less on a slow disk.
const WORK_WITHIN: Duration = Duration::from_secs(120);

/// Longest wait for a short read: a slow disk takes a second or two.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// A limited share of the blocking pool. Cheap to clone; clones share the limit.
#[derive(Debug, Clone)]
pub struct FileWork(Arc<Semaphore>);

impl Default for FileWork {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_AT_ONCE)))
    }
}

/// Tells the operation that its caller is gone.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl FileWork {
    /// Maximum threads of the blocking pool that file operations use.
    pub const MAX_THREADS: usize = MAX_AT_ONCE;

    /// Runs an operation. Dropping the future sets the flag that is passed to it; a
    /// replacement that has begun is completed. `of` names the conversation
    /// or path in errors.
    ///
    /// # Errors
    /// The operation's error; a text if the disk does not answer in time or the
    /// operation panicked.
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

    /// Runs a short read of files or folders.
    ///
    /// # Errors
    /// A text if the disk does not answer in time or the operation panicked.
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
            // The permit belongs to the thread, which may run longer than the call.
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
