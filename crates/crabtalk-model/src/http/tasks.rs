//! Owns the tasks behind connections.
//! Invariant: they end with their owner, which a client and its answers share.

use hyper::body::{Body as _, Incoming};
use hyper::rt::Executor;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Bytes after an answer before its connection is free again; as a rule
/// it is a chunk of length zero.
const MAX_REST_FRAMES: usize = 8;

/// How long that is waited for. A connection that it does not free by then is
/// worth no more than a new one.
const MAX_REST_TIME: Duration = Duration::from_secs(5);

/// Ends that are waited for at a time: as many as could be kept idle.
const MAX_RESTS: usize = super::MAX_IDLE;

pub(super) struct Tasks {
    executor: Tracked,
    rests: Arc<Semaphore>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            executor: Tracked::default(),
            rests: Arc::new(Semaphore::new(MAX_RESTS)),
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.executor.stop.cancel();
    }
}

impl Tasks {
    /// What starts tasks of this owner.
    pub(super) fn executor(&self) -> Tracked {
        self.executor.clone()
    }

    /// Reads what follows an answer, so that its connection can be used again.
    pub(super) fn finish(&self, mut rest: Incoming) {
        let Ok(turn) = Arc::clone(&self.rests).try_acquire_owned() else {
            return;
        };
        self.executor.execute(async move {
            let _turn = turn;
            let end = async {
                for _ in 0..MAX_REST_FRAMES {
                    let frame = poll_fn(|cx| Pin::new(&mut rest).poll_frame(cx)).await;
                    if frame.is_none_or(|frame| frame.is_err()) {
                        break;
                    }
                }
            };
            // One that does not end is closed with what is read of it.
            let _ = timeout(MAX_REST_TIME, end).await;
        });
    }
}

/// Starts tasks that an owner ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Tracked {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tracked {
    fn execute(&self, task: F) {
        // Without a runtime the connection closes.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let stop = self.stop.clone();
            let task = async move {
                stop.run_until_cancelled(task).await;
            };
            self.tracker.spawn_on(task, &runtime);
        }
    }
}

#[cfg(test)]
impl Tracked {
    pub(super) fn running(&self) -> usize {
        self.tracker.len()
    }

    /// Waits until all have ended.
    pub(super) async fn ended(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
