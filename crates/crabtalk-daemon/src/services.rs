//! Every long task of the daemon, and what becomes of it.
//!
//! Invariants: each has a name, an owner, and says what happens when it fails
//! and when the daemon stops; a panic is a failure like any other; none is
//! detached: [`Services::ended`] returns when all of them have.

mod keep;

use crabtalk_domain::{BoxFuture, Clock, stamp};
use keep::keep;
use std::sync::Arc;
use tokio::sync::{SetOnce, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Longest error that is shown of a service: the log has the whole.
const MAX_ERROR_BYTES: usize = 1024;

/// What happens when a service fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    /// The daemon is of no use without it: it shuts down and says why.
    EndDaemon,
    /// It is started again after a pause, which grows while it keeps failing.
    Restart,
    /// It stays off until the daemon is started again.
    StayOff,
}

impl OnFailure {
    /// The word that status shows.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::EndDaemon => "end daemon",
            Self::Restart => "restart",
            Self::StayOff => "stay off",
        }
    }
}

/// What happens to a service when the daemon stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnStop {
    /// It is dropped at its next await, which leaves nothing half done.
    Drop,
    /// It is told by its token, and waited for up to the shutdown's deadline.
    Drain,
}

/// How long a service means to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Span {
    /// As long as the daemon: if it returns before, it has failed.
    Lasting,
    /// Until it has done what it is for.
    Once,
}

type Body = Box<dyn FnMut(CancellationToken) -> BoxFuture<'static, anyhow::Result<()>> + Send>;

/// A long task, before it is started.
///
/// Its body gets a token that is cancelled when the daemon stops. Most need not
/// look at it: they are dropped then.
pub(crate) struct Service {
    name: &'static str,
    owner: &'static str,
    on_failure: OnFailure,
    on_stop: OnStop,
    span: Span,
    body: Body,
}

impl Service {
    /// A service whose failure ends the daemon.
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

    /// A service that is started again when it fails.
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

    /// A service that is reported and stays off when it fails.
    pub(crate) fn optional<F>(
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
            on_stop: OnStop::Drop,
            span: Span::Lasting,
            body,
        }
    }

    /// It returns when it has done what it is for.
    pub(crate) fn once(mut self) -> Self {
        self.span = Span::Once;
        self
    }

    /// When the daemon stops, it ends by itself soon after its token is
    /// cancelled, and is waited for.
    pub(crate) fn draining(mut self) -> Self {
        self.on_stop = OnStop::Drain;
        self
    }
}

/// The body of a service that is never started again.
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

/// Where a service stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    /// It failed, and is started again when its pause is over.
    Pausing,
    Done,
    /// It failed and stays off.
    Failed,
    /// The daemon stops, and so did it.
    Stopped,
}

impl State {
    /// The word that status shows.
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

/// What is told of a service.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) owner: &'static str,
    pub(crate) on_failure: OnFailure,
    pub(crate) state: State,
    /// When it came into this state, RFC 3339.
    pub(crate) since: String,
    /// How often it was started again.
    pub(crate) restarts: u32,
    /// Why it failed last; empty if it never did.
    pub(crate) last_error: String,
}

/// The daemon's services. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Services(Arc<Inner>);

struct Inner {
    rows: watch::Sender<Vec<Row>>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Why the daemon must end.
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

    /// Starts a service, which is a row of [`Services::rows`] from now on.
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

    /// All services, in the order in which they were started.
    pub(crate) fn rows(&self) -> Vec<Row> {
        self.0.rows.borrow().clone()
    }

    /// Resolves when a service has failed without which the daemon is of no
    /// use, with what is to be said.
    pub(crate) async fn broken(&self) -> String {
        self.0.broken.wait().await.clone()
    }

    /// Tells every service that the daemon stops.
    pub(crate) fn stop(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
    }

    /// Resolves when every service has ended; for after [`Services::stop`].
    pub(crate) async fn ended(&self) {
        self.0.tasks.wait().await;
    }
}

/// Where the task that keeps one service writes what becomes of it.
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

    fn starts_again(&self) {
        self.change(|row| row.restarts += 1);
        self.is_now(State::Running);
    }

    /// The daemon must end. Of several reasons the first is told.
    fn breaks(&self, error: String) {
        let _ = self.inner.broken.set(error);
    }
}

#[cfg(test)]
mod tests;
