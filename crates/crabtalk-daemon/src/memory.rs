//! The memory of a node.

use crate::mcp::memory as mcp;
use crate::settings::Settings;
use arc_swap::ArcSwap;
use crabtalk_config::Home;
use crabtalk_domain::storage::Storage;
use crabtalk_domain::tool::{Invocation, Subject, ToolOutput, ToolProvider, ToolSpec};
use crabtalk_domain::{BoxFuture, SystemClock};
use crabtalk_mcp::Servers;
use crabtalk_memory::{ArchiveIndex, Memory, Parts};
use std::sync::Arc;

/// Opens the memory. Reads nothing before the first request.
pub(crate) fn memory(
    home: &Home,
    settings: &Arc<Settings>,
    storage: &Arc<dyn Storage>,
    archives: ArchiveIndex,
) -> Memory {
    let wanted = &settings.config().memory;
    let owners = Arc::clone(settings);
    Memory::new(Parts {
        config: home.config_dir(),
        settings: crabtalk_memory::Settings {
            enabled: wanted.enabled,
            recall_limit: wanted.recall_limit as usize,
            soul_editable: wanted.soul_editable,
            recall_scope: wanted.recall_scope,
        },
        storage: Arc::clone(storage),
        archives,
        owners: Arc::new(move |sender: &str| owners.is_owner(sender)),
        clock: Arc::new(SystemClock),
    })
}

/// Indexes archives in the background, until it is dropped.
pub(crate) async fn index_archives(archives: &ArchiveIndex) {
    archives.begin().await;
    loop {
        archives.fill().await;
    }
}

/// The tools of the memory in force.
pub(crate) struct MemoryTools {
    pub(crate) memory: Arc<ArcSwap<Memory>>,
    /// The component that may replace it.
    pub(crate) servers: Servers,
    pub(crate) settings: Arc<Settings>,
}

impl ToolProvider for MemoryTools {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        let memory = self.memory.load();
        if memory.settings().enabled {
            memory.specs()
        } else {
            Vec::new()
        }
    }

    fn subject<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>> {
        let memory = self.memory.load_full();
        Box::pin(async move { memory.subject(call).await })
    }

    fn call<'a>(&'a self, call: &'a Invocation, subject: &'a Subject) -> BoxFuture<'a, ToolOutput> {
        let memory = self.memory.load_full();
        Box::pin(async move {
            let provider = self.settings.config().memory.provider.clone();
            if let Some(provider) = provider.filter(|_| mcp::TOOLS.contains(&call.name.as_str())) {
                let viewer = memory.viewer(&call.key, &call.origin);
                return mcp::call(&self.servers, &provider, &viewer, call).await;
            }
            memory.call(call, subject).await
        })
    }
}
