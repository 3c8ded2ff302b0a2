//! The tools of providers, and stored approvals.
//!
//! Only [`execute`](crate::router::execute) calls a tool.

use crabtalk_domain::tool::{ToolProvider, ToolSpec};
use crabtalk_domain::{AskRule, Hook, Principal, ToolRegistry};
use crabtalk_gate::approvals::ApprovalBook;
use crabtalk_gate::{Approval, Disk};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The tools of providers, and the approvals for the gate.
pub(crate) struct Toolbox {
    providers: Vec<Arc<dyn ToolProvider>>,
    /// The providers of the hook (HOOK-1).
    of_hook: OnceCell<Vec<Arc<dyn ToolProvider>>>,
    pub(crate) approvals: Arc<dyn ApprovalBook>,
    disk: Arc<dyn Disk>,
}

impl Toolbox {
    pub(crate) fn new(
        providers: Vec<Arc<dyn ToolProvider>>,
        approvals: Arc<dyn ApprovalBook>,
        disk: Arc<dyn Disk>,
    ) -> Self {
        Self {
            providers,
            of_hook: OnceCell::new(),
            approvals,
            disk,
        }
    }

    /// Lets the hook register its tools, once.
    pub(crate) async fn ask_for_tools(&self, hook: &dyn Hook) {
        let ask = async {
            let mut tools = ToolRegistry::default();
            hook.on_register_tools(&mut tools).await;
            tools.into_providers()
        };
        self.of_hook.get_or_init(|| ask).await;
    }

    /// The providers in order of precedence.
    fn providers(&self) -> impl Iterator<Item = &Arc<dyn ToolProvider>> {
        let of_hook = self.of_hook.get().map(Vec::as_slice).unwrap_or_default();
        self.providers.iter().chain(of_hook)
    }

    /// Tools of providers in a stable order; of two with the same name, the one that would be
    /// called.
    pub(crate) fn offered(&self) -> Vec<Arc<ToolSpec>> {
        let mut offered: Vec<Arc<ToolSpec>> = Vec::new();
        for spec in self.providers().flat_map(|provider| provider.specs()) {
            if !offered.iter().any(|known| known.name == spec.name) {
                offered.push(spec);
            }
        }
        offered
    }

    /// The provider of a tool.
    pub(crate) fn provider(&self, name: &str) -> Option<&Arc<dyn ToolProvider>> {
        let has =
            |provider: &&Arc<dyn ToolProvider>| provider.specs().iter().any(|s| s.name == name);
        self.providers().find(has)
    }

    pub(crate) fn disk(&self) -> Arc<dyn Disk> {
        Arc::clone(&self.disk)
    }

    /// Stores a permanent approval; it is on disk when this returns.
    pub(crate) async fn keep(
        &self,
        rule: &AskRule,
        prefix: bool,
        at: String,
        by: &Principal,
    ) -> Result<(), String> {
        let approval = Approval {
            agent: rule.agent.clone(),
            sender: rule.sender.clone(),
            tool: rule.tool.clone(),
            exact: match prefix {
                true => rule.prefix.clone(),
                false => rule.exact.clone(),
            },
            cwd: rule.cwd.clone(),
            at,
            by: by.to_string(),
            prefix,
        };
        let kept = self.approvals.add(approval).await;
        kept.inspect_err(|error| tracing::warn!(%error, "cannot store an approval"))
    }
}
