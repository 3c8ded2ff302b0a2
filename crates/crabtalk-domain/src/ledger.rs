//! The port through which the run loop answers for what it spends (MODEL-7).

use crate::model::Error;
use crate::{AgentConfig, ConversationKey, Usage};

/// A model call that was made, and for whom.
#[derive(Debug, Clone, Copy)]
pub struct Spent<'a> {
    /// The conversation.
    pub key: &'a ConversationKey,
    /// The run within it; compaction on demand has the last one's.
    pub run: u64,
    /// The agent that spoke; its budget pays.
    pub agent: &'a AgentConfig,
    /// The provider that answered.
    pub provider: &'a str,
    /// The model that answered.
    pub model: &'a str,
    /// What it cost.
    pub usage: &'a Usage,
}

/// Keeps account of model calls. `()` allows everything and forgets it.
pub trait Ledger: Send + Sync {
    /// Whether the agent may call a model now. Asked before every call.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`](crate::model::ErrorKind::Budget), saying whose
    /// budget is spent and when it opens again.
    fn check(&self, agent: &AgentConfig) -> Result<(), Error>;

    /// Books a call. Told after every call that a provider answered, also of
    /// one that was cancelled or cut.
    fn record(&self, spent: Spent<'_>);
}

impl Ledger for () {
    fn check(&self, _: &AgentConfig) -> Result<(), Error> {
        Ok(())
    }

    fn record(&self, _: Spent<'_>) {}
}
