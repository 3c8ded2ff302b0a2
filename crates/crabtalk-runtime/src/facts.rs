//! The description of a run for hooks.

use crabtalk_domain::{AgentConfig, ConversationKey, Origin, RunContext};
use std::path::PathBuf;
use std::sync::Arc;

/// The unchanging facts of a run.
pub(crate) struct Facts {
    pub(crate) key: ConversationKey,
    pub(crate) origin: Origin,
    /// The agent that answers: the conversation's agent or a guest.
    pub(crate) agent: Arc<AgentConfig>,
    pub(crate) cwd: PathBuf,
    pub(crate) run: u64,
    pub(crate) for_owner: bool,
    pub(crate) has_archives: bool,
}

impl Facts {
    pub(crate) fn context(&self) -> RunContext<'_> {
        RunContext {
            key: &self.key,
            origin: &self.origin,
            agent: &self.agent,
            cwd: &self.cwd,
            run: self.run,
            for_owner: self.for_owner,
            has_archives: self.has_archives,
        }
    }
}
