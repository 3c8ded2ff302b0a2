//! The services of the daemon, each with its policy.

use super::Node;
use crate::memory::index_archives;
use crate::services::Service;
use anyhow::Context;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Interval between index passes over all conversations.
const MAINTAIN_EVERY: Duration = Duration::from_secs(3600);

/// Pause between steps of a pass, so that runs are not delayed.
const MAINTAIN_PAUSE: Duration = Duration::from_millis(50);

/// Starts the services.
pub(crate) fn start_services(node: &Arc<Node>) {
    let services = &node.services;
    for service in [
        interrupted_runs(Arc::clone(node)),
        archive_index(Arc::clone(node)),
        conversation_index(Arc::clone(node)),
        skill_findings(Arc::clone(node)),
        trash(Arc::clone(node)),
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

/// Resumes or closes interrupted runs (STORE-7). If this fails, a run is closed when its
/// conversation is used.
fn interrupted_runs(node: Arc<Node>) -> Service {
    let body = async move |_| {
        // Logs the state of the sandbox before the first command.
        let _ = node.walls().await;
        node.settle_interrupted_runs().await;
        Ok(())
    };
    // The first service, so that clients find the run when they attach.
    Service::once("interrupted-runs", "runtime", body)
}

/// Logs ignored skills with the reasons.
fn skill_findings(node: Arc<Node>) -> Service {
    let body = async move |_| {
        node.report_skills().await;
        Ok(())
    };
    Service::once("skill-findings", "skills", body)
}

/// Indexes archives for recall while the daemon is idle.
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

/// Sweeps the trash and old outputs every day.
fn trash(node: Arc<Node>) -> Service {
    Service::restarted("trash", "store", move |_| {
        let node = Arc::clone(&node);
        async move {
            node.sweep().await;
            Ok(())
        }
    })
}

/// Fires cron entries. Restarts until the books can be read.
fn cron(node: Arc<Node>) -> Service {
    Service::restarted("cron", "cron", move |_| {
        crate::cron::work(node.cron.clone(), node.starter())
    })
}

/// Delivers notifications to the owner.
fn notifications(node: Arc<Node>) -> Service {
    Service::restarted("notifications", "notify", move |_| {
        let notifier = node.notifier.clone();
        async move {
            notifier.work().await;
            Ok(())
        }
    })
}

/// Fires events. Restarts until the records can be read.
fn bus(node: Arc<Node>) -> Service {
    Service::restarted("bus", "bus", move |_| {
        crate::bus::work(node.bus.clone(), node.starter())
    })
}

/// Writes queued entries of the audit, such as refusals.
fn audit(node: Arc<Node>) -> Service {
    Service::restarted("audit", "audit", move |_| {
        let audit = node.audit.clone();
        async move { audit.work().await }
    })
}

/// Discovers components and publishes their changes. Connections survive its restart.
fn components(node: Arc<Node>) -> Service {
    Service::restarted("components", "mcp", move |_| {
        let (mcps, config) = (Arc::clone(&node.mcps), node.config());
        crate::mcp::work(mcps, config, node.home.clone(), node.runtime.clone())
    })
}

/// Ends processes of commands whose guardian was killed.
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
