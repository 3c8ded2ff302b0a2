//! The services of the daemon, each with its policy.

use super::Node;
use crate::memory::index_archives;
use crate::services::Service;
use anyhow::Context;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Between two looks at events that are kept for watchers.
const TIDY_EVERY: Duration = Duration::from_secs(3);

/// Between two passes over all conversations.
const MAINTAIN_EVERY: Duration = Duration::from_secs(3600);

/// Between two steps of a pass, for the runs beside them.
const MAINTAIN_PAUSE: Duration = Duration::from_millis(50);

/// Starts what runs beside the clients, who need not wait for any of it.
pub(crate) fn start_services(node: &Arc<Node>) {
    let services = &node.services;
    for service in [
        interrupted_runs(Arc::clone(node)),
        archive_index(Arc::clone(node)),
        conversation_index(Arc::clone(node)),
        skill_findings(Arc::clone(node)),
        trash(Arc::clone(node)),
        event_logs(Arc::clone(node)),
        orphans(Arc::clone(node)),
        reload_signal(Arc::clone(node)),
        cron(Arc::clone(node)),
        notifications(Arc::clone(node)),
        bus(Arc::clone(node)),
        audit(Arc::clone(node)),
        components(Arc::clone(node)),
    ] {
        services.start(service);
    }
}

/// Carries on or closes the runs that a crash cut off (STORE-7). What fails here is
/// done when its conversation is used.
fn interrupted_runs(node: Arc<Node>) -> Service {
    let body = async move |_| {
        // Said in the log before the first command is run.
        let _ = node.walls().await;
        node.settle_interrupted_runs().await;
        Ok(())
    };
    // At once: whoever attaches to such a run must find it.
    Service::optional("interrupted-runs", "runtime", body).once()
}

/// Tells which skills were passed over, and why.
fn skill_findings(node: Arc<Node>) -> Service {
    let body = async move |_| {
        node.tell_of_skills().await;
        Ok(())
    };
    Service::optional("skill-findings", "skills", body).once()
}

/// Makes archives known to recall, in moments of rest.
fn archive_index(node: Arc<Node>) -> Service {
    Service::restarted("archive-index", "memory", move |_| {
        let node = Arc::clone(&node);
        let archives = node.memory().archives().clone();
        async move {
            index_archives(&archives).await;
            Ok(())
        }
    })
}

/// Indexes conversations for lists and searches.
fn conversation_index(node: Arc<Node>) -> Service {
    Service::restarted("conversation-index", "store", move |_| {
        let storage = Arc::clone(node.runtime.storage());
        async move {
            loop {
                while storage.maintain().await? {
                    tokio::time::sleep(MAINTAIN_PAUSE).await;
                }
                tokio::time::sleep(MAINTAIN_EVERY).await;
            }
        }
    })
}

/// Sweeps what was removed long ago, every day.
fn trash(node: Arc<Node>) -> Service {
    Service::restarted("trash", "store", move |_| {
        let node = Arc::clone(&node);
        async move {
            node.sweep().await;
            Ok(())
        }
    })
}

/// Fires cron entries. Without their books it fires nothing, and tries again.
fn cron(node: Arc<Node>) -> Service {
    Service::restarted("cron", "cron", move |_| {
        crate::cron::work(node.cron.clone(), node.starter())
    })
}

/// Tells the owner what happens while nobody looks.
fn notifications(node: Arc<Node>) -> Service {
    Service::restarted("notifications", "notify", move |_| {
        let notifier = node.notifier.clone();
        async move {
            notifier.work().await;
            Ok(())
        }
    })
}

/// Fires what is published. Without its journal it fires nothing, and tries again.
fn bus(node: Arc<Node>) -> Service {
    Service::restarted("bus", "bus", move |_| {
        crate::bus::work(node.bus.clone(), node.starter())
    })
}

/// Writes what of the record nobody waits for: what was refused, and tried.
fn audit(node: Arc<Node>) -> Service {
    Service::restarted("audit", "audit", move |_| {
        let audit = node.audit.clone();
        async move { audit.work().await }
    })
}

/// Finds components and tells of them. What is connected stays so while it is
/// started again.
fn components(node: Arc<Node>) -> Service {
    Service::restarted("components", "mcp", move |_| {
        let (mcps, config) = (Arc::clone(&node.mcps), node.config());
        crate::mcp::work(mcps, config, node.home.clone(), node.runtime.clone())
    })
}

/// Lets events go that no watcher will come back for.
fn event_logs(node: Arc<Node>) -> Service {
    Service::restarted("event-logs", "runtime", move |_| {
        let node = Arc::clone(&node);
        async move {
            loop {
                tokio::time::sleep(TIDY_EVERY).await;
                node.runtime.tidy_events();
            }
        }
    })
}

/// Ends what falls to the daemon when a command kills its guardian. Without it
/// processes of commands would go on that nobody owns.
fn orphans(node: Arc<Node>) -> Service {
    Service::vital("orphans", "tools", async move |_| {
        let watched = node.children.watch().await;
        watched.context("cannot watch for orphans")
    })
}

/// Reads the configuration again on SIGHUP.
fn reload_signal(node: Arc<Node>) -> Service {
    Service::restarted("reload-signal", "configuration", move |_| {
        let node = Arc::clone(&node);
        async move {
            let mut hangups = signal(SignalKind::hangup()).context("cannot watch for signals")?;
            while hangups.recv().await.is_some() {
                if let Err(error) = node.reload().await {
                    tracing::warn!(%error, "the reload failed; the old configuration stays");
                }
            }
            Ok(())
        }
    })
}
