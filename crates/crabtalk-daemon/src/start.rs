//! Starts and stops a daemon.

use crate::audit::Audit;
use crate::compose::{Composed, InForce, compose};
use crate::node::Node;
use crate::node::start_services;
use crate::services::Service;
use crate::session::{Session, remote_clients};
use crate::{approvals, import, leftovers, logging};
use anyhow::Context;
use crabtalk_config::Home;
use crabtalk_gate::Approval;
use crabtalk_guardian::Peers;
use crabtalk_store::Records;
use crabtalk_store::lock::HomeLock;
use crabtalk_tools::FileWork;
use crabtalk_transport::{UnixListener, listen, serve};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Threads for file access: those for files on any mount, most of which exist only while
/// a mount does not answer, two for the daemon's files, and four for syncs.
const BLOCKING_THREADS: usize = FileWork::MAX_THREADS + 6;

/// Idle threads never end, since no new ones can be started once an agent's command has
/// reached the user's limit of processes.
const BLOCKING_KEEP_ALIVE: Duration = Duration::MAX;

/// Time limit from the signal to the end; the documented limit is 5 seconds.
const SHUTDOWN_DEADLINE: Duration = Duration::from_millis(4500);

/// Least limit of open files with which a daemon starts: it needs about fifteen, three
/// more for each client, one for each open conversation, six for a starting command and
/// one for each model call.
const OPEN_FILES: u64 = 64;

/// How the daemon is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// The home.
    pub home: Home,
    /// Whether to log to stderr too.
    pub log_to_stderr: bool,
}

/// Runs the daemon until SIGTERM or SIGINT.
pub fn run(
    Options {
        home,
        log_to_stderr,
    }: Options,
) -> anyhow::Result<()> {
    check_open_files()?;
    // Commands of agents must not read keys from this process, nor may a crash write them
    // to a file. The environment may contain some from the start.
    crabtalk_guardian::conceal().context("cannot close this process to others")?;
    let home = home.create()?;
    let lock = HomeLock::acquire(home.root())?;
    let records = Records::in_state(&home.state_dir());
    let audit = Audit::new(Arc::new(records.clone()));
    logging::init(&home.log_file(), log_to_stderr, audit.security());
    lock.tell();
    let open_files = raise_open_files();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(BLOCKING_KEEP_ALIVE)
        .build()
        .context("cannot start the async runtime")?;
    let served = runtime.block_on(serve_home(home, open_files, records, audit));
    // A blocking call that hangs, for instance on a dead disk, must not keep the
    // process alive.
    runtime.shutdown_timeout(Duration::from_millis(200));
    drop(lock);
    served
}

fn check_open_files() -> anyhow::Result<()> {
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < OPEN_FILES => anyhow::bail!(
            "the daemon needs {OPEN_FILES} open files, but the limit is {most}: raise it with \
             `ulimit -n 1024` before starting the daemon; if that is forbidden, an administrator \
             can (`LimitNOFILE=1024` in a systemd unit, `nofile` in /etc/security/limits.conf)"
        ),
        _ => Ok(()),
    }
}

/// Raises the limit of open files to the hard limit. Returns the former limit, which
/// commands get: some close every number below it, and `select` cannot wait for high
/// ones.
fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
    limit.current
}

/// Turns SIGXFSZ, which would end the daemon, into an error of the write that exceeds
/// the limit of a file's size. Commands start with the signal's default action.
fn survive_file_limit() -> anyhow::Result<()> {
    let signal_number = rustix::process::Signal::XFSZ.as_raw();
    // The handler stays when this is dropped.
    let handled = signal(SignalKind::from_raw(signal_number));
    handled.map(drop).context("cannot watch for signals")
}

/// The files that a daemon reads before it serves.
pub(crate) struct Loaded {
    pub(crate) composed: Composed,
    /// Permanent approvals, or the error of their file.
    pub(crate) approvals: Result<Vec<Approval>, String>,
}

/// Reads the configuration after removing unfinished files.
async fn load(home: &Home, records: &Records) -> anyhow::Result<Loaded> {
    let (from, records) = (home.clone(), records.clone());
    let loading = tokio::task::spawn_blocking(move || {
        leftovers::sweep(&from);
        records.refuse_newer().map_err(|error| error.to_string())?;
        Ok::<_, String>(Loaded {
            composed: compose(&from, &InForce::default())?,
            approvals: approvals::read(&from.approvals_file()),
        })
    });
    let loaded = loading
        .await
        .context("reading the configuration panicked")?;
    loaded.map_err(anyhow::Error::msg)
}

async fn serve_home(
    home: Home,
    open_files: Option<u64>,
    records: Records,
    audit: Audit,
) -> anyhow::Result<()> {
    survive_file_limit()?;
    let peers = Peers::new();
    let listener = listen(&home.socket()).await?;
    let loaded = load(&home, &records).await?;
    import::old_files(&home, &records).await;
    let node = Arc::new(Node::new(home, open_files, loaded, &records, audit)?);
    let services = &node.services;
    let serve = remote_clients(&node);
    node.remote.begin(serve, &node.config()).await;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        "ready"
    );
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    start_services(&node);
    services.start(connections(&node, listener, peers));
    let ended = tokio::select! {
        stopped = wait_for_stop() => stopped,
        broken = services.broken() => Err(anyhow::Error::msg(broken)),
    };
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    tracing::info!("shutting down");
    services.stop();
    let stopped = async {
        let remote = node.remote.ears.shut_down();
        tokio::join!(services.ended(), remote, node.shutdown());
    };
    if tokio::time::timeout(SHUTDOWN_DEADLINE, stopped)
        .await
        .is_err()
    {
        tracing::warn!("tasks that did not end in time were left");
    }
    ended
}

/// Serves clients of the Unix socket. At shutdown, drains replies in flight.
fn connections(node: &Arc<Node>, listener: UnixListener, peers: Peers) -> Service {
    let (node, crowd) = (Arc::clone(node), node.crowd.clone());
    let body = async move |shutdown: CancellationToken| {
        let stop = shutdown.clone();
        let session = move |peer| {
            let session = Session::of_local_client(Arc::clone(&node), &peers, peer, stop.clone());
            Ok(session?)
        };
        serve(listener, crowd, session, shutdown).await;
        Ok(())
    };
    Service::vital("connections", "transport", body).draining()
}

/// Resolves on SIGTERM or SIGINT.
async fn wait_for_stop() -> anyhow::Result<()> {
    let watch = |kind| signal(kind).context("cannot watch for signals");
    let (mut term, mut int) = (
        watch(SignalKind::terminate())?,
        watch(SignalKind::interrupt())?,
    );
    tokio::select! {
        _ = term.recv() => Ok(()),
        _ = int.recv() => Ok(()),
    }
}
