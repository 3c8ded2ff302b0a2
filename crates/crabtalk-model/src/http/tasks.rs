//! Owns the tasks behind connections.
//! Invariant: they end with their owner, which a client and its answers share.

use futures_util::StreamExt;
use http_body_util::BodyDataStream;
use hyper::body::Incoming;
use hyper::rt::Executor;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long the end of an answer is waited for, as a rule a chunk of length zero. A
/// connection that it does not free by then is worth no more than a new one.
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
    /// What starts tasks of this owner.
    pub(super) fn executor(&self) -> Tracked {
        self.executor.clone()
    }

    /// Reads what follows an answer, so that its connection can be used again.
    pub(super) fn finish(&self, mut rest: BodyDataStream<Incoming>) {
        self.executor.execute(async move {
            let end = async { while let Some(Ok(_)) = rest.next().await {} };
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
