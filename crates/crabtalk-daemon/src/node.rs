//! A node: the runtime and everything that it is configured with.

mod build;
mod duties;
mod reload;
mod table;

pub(crate) use table::start_services;

use crate::agents::AgentFiles;
use crate::approvals::ApprovalFile;
use crate::audit::Audit;
use crate::bus::Bus;
use crate::compose::InForce;
use crate::cron::Cron;
use crate::ledger::DayLedger;
use crate::mcp::Mcps;
use crate::models::Models;
use crate::notify::Notifier;
use crate::remote::Remote;
use crate::services::Services;
use crate::settings::Settings;
use crate::skills::Skills;
use crate::starter::Starter;
use arc_swap::ArcSwap;
use crabtalk_config::{Config, Home};
use crabtalk_guardian::{Children, Walls};
use crabtalk_memory::Memory;
use crabtalk_runtime::Runtime;
use crabtalk_store::Records;
use crabtalk_tools::OsTools;
use crabtalk_transport::Crowd;
use std::sync::Arc;
use std::time::Instant;

/// The state that all sessions share.
pub(crate) struct Node {
    pub(crate) home: Home,
    pub(crate) runtime: Runtime,
    pub(crate) models: Arc<Models>,
    pub(crate) ledger: Arc<DayLedger>,
    pub(crate) approvals: Arc<ApprovalFile>,
    pub(crate) agents: AgentFiles,
    pub(crate) children: Children,
    /// The tools of the operating system, and the changes that they made.
    pub(crate) tools: Arc<OsTools>,
    /// MCP servers and components.
    pub(crate) mcps: Arc<Mcps>,
    memory: Arc<ArcSwap<Memory>>,
    pub(crate) skills: Arc<Skills>,
    settings: Arc<Settings>,
    /// The files in force; locked during a change of the configuration.
    in_force: tokio::sync::Mutex<InForce>,
    started: Instant,
    /// All connections of all listeners (WIRE-9).
    pub(crate) crowd: Crowd,
    /// All long tasks of the daemon.
    pub(crate) services: Services,
    /// The cron entries.
    pub(crate) cron: Cron,
    /// Notifies the owner.
    pub(crate) notifier: Notifier,
    /// The subscriptions and events.
    pub(crate) bus: Bus,
    /// Tokens and TCP listeners.
    pub(crate) remote: Remote,
    /// The audit.
    pub(crate) audit: Audit,
    pub(crate) records: Records,
}

impl Node {
    pub(crate) fn memory(&self) -> Arc<Memory> {
        self.memory.load_full()
    }

    /// The configuration that is in force.
    pub(crate) fn config(&self) -> Arc<Config> {
        self.settings.config()
    }

    /// Creates a starter for the runs of cron entries and events.
    fn starter(&self) -> Starter {
        Starter {
            runtime: self.runtime.clone(),
            models: Arc::clone(&self.models),
            notifier: self.notifier.clone(),
            home: self.home.clone(),
            files: self.skills.files.clone(),
        }
    }

    pub(crate) fn uptime_secs(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// The sandbox of this machine; the first call probes it.
    pub(crate) async fn walls(&self) -> Arc<Walls> {
        self.tools.walls().await
    }

    /// Ends every run and closes every log.
    pub(crate) async fn shutdown(&self) {
        self.runtime.shutdown().await;
        let others = async {
            tokio::join!(
                self.tools.shut_down(),
                self.notifier.shut_down(),
                self.mcps.servers.shut_down()
            );
            self.children.sweep().await;
        };
        // Run concurrently, since either may wait for a hanging disk.
        tokio::join!(self.ledger.finish(), others);
    }
}
