//! Services: long tasks of the daemon with policies for failure and shutdown.
//!
//! Invariants: each has a name, an owner and both policies; a panic is a failure; none is
//! detached: [`Services::ended`] returns after all have ended.

mod keep;

use crabtalk_domain::{BoxFuture, Clock, stamp};
use keep::keep;
use std::sync::Arc;
use tokio::sync::{SetOnce, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Longest error in the status; the log has the full text.
const MAX_ERROR_BYTES: usize = 1024;

/// The policy for a failed service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    /// The daemon shuts down with an error.
    EndDaemon,
    /// The service restarts after a pause, which grows with each failure.
    Restart,
    /// The service stays off until the daemon restarts. It returns when its work is done.
    StayOff,
}

impl OnFailure {
    /// The name of the policy in the status.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::EndDaemon => "end daemon",
            Self::Restart => "restart",
            Self::StayOff => "stay off",
        }
    }
}

type Body = Box<dyn FnMut(CancellationToken) -> BoxFuture<'static, anyhow::Result<()>> + Send>;

/// A long task before its start.
///
/// The body receives a token that is cancelled at shutdown. Most bodies ignore it, since
/// they are dropped.
pub(crate) struct Service {
    name: &'static str,
    owner: &'static str,
    on_failure: OnFailure,
    /// Whether it ends after its token is cancelled, within the shutdown's deadline, instead of
    /// being dropped at its next await.
    is_drained: bool,
    body: Body,
}

impl Service {
    /// Creates a service whose failure ends the daemon.
    pub(crate) fn vital<F>(
        name: &'static str,
        owner: &'static str,
        body: impl FnOnce(CancellationToken) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        Self::new(name, owner, OnFailure::EndDaemon, begun_once(body))
    }

    /// Creates a service that restarts after a failure.
    pub(crate) fn restarted<F>(
        name: &'static str,
        owner: &'static str,
        mut body: impl FnMut(CancellationToken) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let body = move |stop| -> BoxFuture<'static, _> { Box::pin(body(stop)) };
        Self::new(name, owner, OnFailure::Restart, Box::new(body))
    }

    /// Creates a service that returns when its work is done, and stays off after a failure.
    pub(crate) fn once<F>(
        name: &'static str,
        owner: &'static str,
        body: impl FnOnce(CancellationToken) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        Self::new(name, owner, OnFailure::StayOff, begun_once(body))
    }

    fn new(name: &'static str, owner: &'static str, on_failure: OnFailure, body: Body) -> Self {
        Self {
            name,
            owner,
            on_failure,
            is_drained: false,
            body,
        }
    }

    /// Declares that the service ends after its token is cancelled, instead of being dropped.
    pub(crate) fn draining(mut self) -> Self {
        self.is_drained = true;
        self
    }
}

/// Wraps the body of a service that never restarts.
fn begun_once<F>(body: impl FnOnce(CancellationToken) -> F + Send + 'static) -> Body
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let mut body = Some(body);
    Box::new(move |stop| {
        let body = body.take().expect("only a service that restarts does so");
        Box::pin(body(stop))
    })
}

/// The state of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    /// The service failed and restarts after a pause.
    Pausing,
    Done,
    /// The service failed and stays off.
    Failed,
    /// The service ended at shutdown.
    Stopped,
}

impl State {
    /// The name of the state in the status.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Pausing => "pausing",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// A service in the status.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) owner: &'static str,
    pub(crate) on_failure: OnFailure,
    pub(crate) state: State,
    /// RFC 3339 instant at which the state began.
    pub(crate) since: String,
    /// Number of restarts.
    pub(crate) restarts: u32,
    /// The last error; empty if it never failed.
    pub(crate) last_error: String,
}

/// The daemon's services. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Services(Arc<Inner>);

struct Inner {
    rows: watch::Sender<Vec<Row>>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// The error that ends the daemon.
    broken: SetOnce<String>,
    clock: Arc<dyn Clock>,
}

impl Services {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            rows: watch::Sender::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            broken: SetOnce::new(),
            clock,
        }))
    }

    /// Starts a service and adds its row to [`Services::rows`].
    pub(crate) fn start(&self, service: Service) {
        let row = Row {
            name: service.name,
            owner: service.owner,
            on_failure: service.on_failure,
            state: State::Running,
            since: stamp(self.0.clock.now()),
            restarts: 0,
            last_error: String::new(),
        };
        let mut index = 0;
        self.0.rows.send_modify(|rows| {
            index = rows.len();
            rows.push(row);
        });
        let board = Board {
            inner: Arc::clone(&self.0),
            index,
        };
        self.0.tasks.spawn(keep(service, board));
    }

    /// All services, in the order of their starts.
    pub(crate) fn rows(&self) -> Vec<Row> {
        self.0.rows.borrow().clone()
    }

    /// Resolves with the error of a failed vital service.
    pub(crate) async fn broken(&self) -> String {
        self.0.broken.wait().await.clone()
    }

    /// Cancels the tokens of all services.
    pub(crate) fn stop(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
    }

    /// Resolves when every service has ended, after [`Services::stop`].
    pub(crate) async fn ended(&self) {
        self.0.tasks.wait().await;
    }
}

/// The row of one service, for its supervising task.
struct Board {
    inner: Arc<Inner>,
    index: usize,
}

impl Board {
    fn stop(&self) -> &CancellationToken {
        &self.inner.stop
    }

    fn change(&self, change: impl FnOnce(&mut Row)) {
        let rows = &self.inner.rows;
        rows.send_modify(|rows| change(&mut rows[self.index]));
    }

    fn is_now(&self, state: State) {
        let since = stamp(self.inner.clock.now());
        self.change(|row| (row.state, row.since) = (state, since));
    }

    fn failed(&self, error: &str) {
        let cut = error.floor_char_boundary(MAX_ERROR_BYTES);
        self.change(|row| error[..cut].clone_into(&mut row.last_error));
    }

    /// Ends the daemon. The first error is reported.
    fn breaks(&self, error: String) {
        let _ = self.inner.broken.set(error);
    }
}

#[cfg(test)]
mod tests;
