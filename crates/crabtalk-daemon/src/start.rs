//! From a process to a serving daemon, and back to nothing.

use crate::audit::Audit;
use crate::descriptors;
use crate::first_look::FirstLook;
use crate::import;
use crate::logging;
use crate::node::Node;
use crate::node::start_services;
use crate::services::Service;
use crate::session::Session;
use anyhow::Context;
use crabtalk_config::Home;
use crabtalk_guardian::{Peers, Refusal};
use crabtalk_proto::Status;
use crabtalk_store::Records;
use crabtalk_store::lock::HomeLock;
use crabtalk_tools::FileWork;
use crabtalk_transport::{Peer, UnixListener, listen, serve};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Threads for file work: those for what may lie anywhere, of which most exist
/// only while a mount does not answer, and two for the daemon's own files.
const BLOCKING_THREADS: usize = FileWork::MAX_THREADS + 2;

/// How long an idle thread for file work stays: for good. A user whose limit of
/// processes is reached, by an agent's own command for instance, has no other to
/// start, and what then waits for a thread waits for one of these.
const BLOCKING_KEEP_ALIVE: Duration = Duration::MAX;

/// From the signal to the end, at most: the promise is 5 seconds.
const SHUTDOWN_DEADLINE: Duration = Duration::from_millis(4500);

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
    descriptors::suffice()?;
    // Commands of agents must not read keys out of this process, nor a crash
    // write them into a file. The environment may hold some from the start.
    crabtalk_guardian::conceal().context("cannot close this process to others")?;
    let home = home.create()?;
    let lock = HomeLock::acquire(home.root())?;
    let records = Records::in_state(&home.state_dir());
    let audit = Audit::new(Arc::new(records.clone()));
    logging::init(&home.log_file(), log_to_stderr, audit.security());
    lock.tell();
    let open_files = descriptors::raise_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(BLOCKING_KEEP_ALIVE)
        .build()
        .context("cannot start the async runtime")?;
    let first_look = FirstLook::begin(&home, &runtime)?;
    let served = runtime.block_on(serve_home(home, open_files, first_look, records, audit));
    // A blocking call that hangs, on a dead disk for instance, must not keep
    // the process.
    runtime.shutdown_timeout(Duration::from_millis(200));
    drop(lock);
    served
}

/// A file that may not grow is an error of that write, and not the end of the
/// daemon. Commands get the signal's usual effect back when they start.
fn survive_file_limit() -> anyhow::Result<()> {
    let signal_number = rustix::process::Signal::XFSZ.as_raw();
    // The handler stays when this goes.
    let handled = signal(SignalKind::from_raw(signal_number));
    handled.map(drop).context("cannot watch for signals")
}

async fn serve_home(
    home: Home,
    open_files: Option<u64>,
    first_look: FirstLook,
    records: Records,
    audit: Audit,
) -> anyhow::Result<()> {
    survive_file_limit()?;
    let peers = Peers::new();
    let listener = listen(&home.socket()).await?;
    let found = first_look.found(&home).await?;
    import::old_files(&home, &records).await;
    let node = Arc::new(Node::new(home, open_files, found, &records, audit)?);
    let services = &node.services;
    let answering = Arc::clone(&node);
    node.remote.begin(answering, &node.config()).await;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        "ready"
    );
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    start_services(&node);
    // Every service begins.
    tokio::task::yield_now().await;
    services.start(connections(&node, listener, peers));
    let ended = tokio::select! {
        stopped = wait_for_stop() => stopped,
        broken = services.broken() => Err(anyhow::Error::msg(broken)),
    };
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    tracing::info!("shutting down");
    services.stop();
    let stopped = async {
        tokio::join!(services.ended(), node.shutdown());
    };
    if tokio::time::timeout(SHUTDOWN_DEADLINE, stopped)
        .await
        .is_err()
    {
        tracing::warn!("something did not end in time and was left");
    }
    ended
}

/// Accepts clients, and answers them. When the daemon stops, replies in flight
/// drain.
fn connections(node: &Arc<Node>, listener: UnixListener, peers: Peers) -> Service {
    let (node, crowd) = (Arc::clone(node), node.crowd.clone());
    let body = async move |shutdown: CancellationToken| {
        let stop = shutdown.clone();
        let session = move |peer: Peer| {
            admit(&peers, peer)?;
            Ok(Session::of_owner(Arc::clone(&node), stop.clone()))
        };
        serve(listener, crowd, session, shutdown).await;
        Ok(())
    };
    Service::vital("connections", "transport", body).draining()
}

/// Whoever connects to the Unix socket is the owner, since the transport admits
/// nobody else's user. Refuses processes of agents' commands (GATE-5), and whoever
/// cannot be told from them.
fn admit(peers: &Peers, Peer { uid, pid, handle }: Peer) -> Result<(), Status> {
    let Some(pid) = pid else {
        // The system does not say who connects; then no guardian runs on it.
        return Ok(());
    };
    let handle = handle
        .as_ref()
        .map(|handle| handle.as_ref().map(|h| h.as_fd()));
    let judged = peers.judge(pid, handle);
    judged.map_err(|refusal| match refusal {
        Refusal::Command => {
            tracing::warn!(target: "security", uid, pid, "a tool process tried to connect");
            Status::forbidden(refusal.to_string())
        }
        Refusal::Unreadable { .. } => {
            tracing::warn!(target: "security", uid, pid, %refusal, "a client that cannot be judged tried to connect");
            Status::forbidden(refusal.to_string())
        }
        Refusal::Exhausted(_) => {
            tracing::warn!(pid, %refusal, "a client was turned away");
            Status::shutting_down(refusal.to_string())
        }
    })
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
