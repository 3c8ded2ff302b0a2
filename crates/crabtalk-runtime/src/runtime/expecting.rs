//! A message that is about to be said.
//!
//! Invariant: nothing is asked of a model, so that neither a ledger nor a budget
//! has to do with it, and no conversation comes into being.

use super::Runtime;
use crate::Error;

impl Runtime {
    /// Tells the model that will answer that a message to an agent is coming; an
    /// empty name is the default agent, `model` the one that the message will name
    /// (MODEL-8). Nothing happens where the configuration says so.
    ///
    /// # Errors
    /// An agent that is not there.
    pub fn expect(&self, agent: &str, model: Option<&str>) -> Result<(), Error> {
        let catalog = self.0.catalog.load();
        let agent = catalog.agent(agent)?;
        if !catalog.prewarm {
            return Ok(());
        }
        let model = self.0.model_named(model.unwrap_or(&agent.model));
        // Before the first run none may be known.
        if !model.is_empty() {
            self.0.model.expect(&model);
        }
        Ok(())
    }
}
