//! Owns the tasks behind connections.
//! Invariant: the tasks end with their owner, which a client and its answers share.

use futures_util::StreamExt;
use http_body_util::BodyDataStream;
use hyper::body::Incoming;
use hyper::rt::Executor;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Time to wait for the end of an answer, usually a chunk of length zero. A
/// connection that is not free by then is closed.
const MAX_REST_TIME: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Tasks {
    executor: Tracked,
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.executor.stop.cancel();
    }
}

impl Tasks {
    /// An executor that spawns tasks of this owner.
    pub(super) fn executor(&self) -> Tracked {
        self.executor.clone()
    }

    /// Reads the end of an answer, so that its connection can be reused.
    pub(super) fn finish(&self, mut rest: BodyDataStream<Incoming>) {
        self.executor.execute(async move {
            let end = async { while let Some(Ok(_)) = rest.next().await {} };
            // After the timeout the connection is closed.
            let _ = timeout(MAX_REST_TIME, end).await;
        });
    }
}

/// Spawns tasks that end with their owner.
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
