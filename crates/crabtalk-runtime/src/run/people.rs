//! Lets hooks ask the owner.

use super::Publisher;
use crate::inner::Inner;
use crabtalk_domain::{AgentEvent, AskQuestion, BoxFuture, People};
use crabtalk_gate::Standing;
use std::sync::Arc;

/// Asks only owners, in the run's stream: hooks ask about trust, which only owners can
/// grant.
pub(super) struct Owner {
    pub(super) rt: Arc<Inner>,
    /// The stream that shows the question: that of the root of a delegation.
    pub(super) audience: Arc<Publisher>,
    pub(super) standing: Standing,
    /// Whether the run resumes another: then no person is present, and questions fail.
    pub(super) carried_on: bool,
}

impl People for Owner {
    fn ask<'a>(&'a self, question: AskQuestion) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            if !self.standing.is_owner || self.standing.unattended || self.carried_on {
                return None;
            }
            if !self.audience.log().is_viewed() {
                return None;
            }
            let text = question.question.clone();
            let answers = self.rt.ask(&self.audience, vec![question], String::new());
            let answers = answers.await?;
            Some(answers[&text].as_str()?.to_owned())
        })
    }

    fn tell(&self, notice: String) {
        self.audience.publish(AgentEvent::Notice(notice));
    }
}
