//! Announces a coming message to the model.
//!
//! Invariant: no model is called, so that the ledger is not involved, and no
//! conversation is created.

use super::Runtime;
use crate::Error;

impl Runtime {
    /// Announces to the model that a message to an agent is coming (MODEL-8). An empty name
    /// is the default agent; `model` is the model that the message will request. Does nothing
    /// if the configuration disables it.
    ///
    /// # Errors
    /// [`Error::UnknownAgent`] or [`Error::AgentRefused`].
    pub fn expect(&self, agent: &str, model: Option<&str>) -> Result<(), Error> {
        let catalog = self.0.catalog.load();
        let agent = catalog.agent(agent)?;
        if !catalog.prewarm {
            return Ok(());
        }
        let model = self.0.model_named(model.unwrap_or(&agent.model));
        // The registry may have no active model yet.
        if !model.is_empty() {
            self.0.model.expect(&model);
        }
        Ok(())
    }
}
