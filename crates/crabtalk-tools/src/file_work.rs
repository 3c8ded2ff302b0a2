//! Runs what touches files where it blocks nobody.
//!
//! Invariant: however many calls hang on a disk or a mount that does not
//! answer, threads are left for the daemon's own files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Calls that touch files at once: two less than the daemon has threads for
/// such work.
const MAX_AT_ONCE: usize = 6;

/// How long a call waits for its turn. Even a slow disk is through with others
/// by then.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct FileWork {
    turns: Arc<Semaphore>,
    patience: Duration,
}

impl Default for FileWork {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            patience: PATIENCE,
        }
    }
}

impl FileWork {
    /// Dropping the future sets the flag that the work is given; a replacement
    /// that has begun is finished whole.
    pub(crate) async fn run<T, E>(
        &self,
        work: impl FnOnce(&AtomicBool) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<String> + Send + 'static,
    {
        struct SetOnDrop(Arc<AtomicBool>);
        impl Drop for SetOnDrop {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let turn = Arc::clone(&self.turns).acquire_owned();
        let Ok(turn) = tokio::time::timeout(self.patience, turn).await else {
            return Err(E::from(format!(
                "{MAX_AT_ONCE} other calls have been waiting for files for more than {} s; a disk \
                 or a mount does not answer",
                self.patience.as_secs()
            )));
        };
        let dropped = SetOnDrop(Arc::default());
        let flag = Arc::clone(&dropped.0);
        let done = tokio::task::spawn_blocking(move || {
            // Kept for as long as the thread is, not the call.
            let _turn = turn;
            work(&flag)
        });
        match done.await {
            Ok(done) => done,
            Err(_) => Err(E::from("the daemon is shutting down".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn calls_that_hang_leave_threads_to_others_and_the_next_says_why() {
        // As many threads as the daemon has.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(8)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let files = Arc::new(FileWork {
                patience: Duration::from_millis(1),
                ..FileWork::default()
            });
            let mut hanging = tokio::task::JoinSet::new();
            let mut releases = Vec::new();
            for _ in 0..MAX_AT_ONCE {
                let (release, released) = channel::<()>();
                releases.push(release);
                let files = Arc::clone(&files);
                hanging.spawn(async move {
                    // Ends when the test lets go.
                    files
                        .run(move |_| Ok::<_, String>(released.recv().is_err()))
                        .await
                });
            }
            while files.turns.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
            let why = files
                .run(|_| Ok::<_, String>(()))
                .await
                .expect_err("no turn");
            assert!(why.contains("does not answer"), "{why}");
            // The daemon's own work goes on.
            tokio::task::spawn_blocking(|| ()).await.expect("a thread");
            // A call that is given up does not give up its thread.
            hanging.abort_all();
            while hanging.join_next().await.is_some() {}
            assert_eq!(files.turns.available_permits(), 0);
            drop(releases);
            while files.turns.available_permits() < MAX_AT_ONCE {
                tokio::task::yield_now().await;
            }
            files.run(|_| Ok::<_, String>(())).await.expect("its turn");
        });
    }
}
