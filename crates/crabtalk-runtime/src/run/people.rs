//! The people behind a run, for hooks that have to ask them.

use super::Publisher;
use crate::asks::{Answer, PendingAsk};
use crate::inner::Inner;
use crabtalk_domain::{AgentEvent, Ask, AskKind, AskQuestion, BoxFuture, People};
use crabtalk_gate::Standing;
use std::sync::Arc;

/// Asks in the run's own stream, and an owner only: what a hook asks is about
/// trust, which is not a stranger's to give.
pub(super) struct Owner {
    pub(super) rt: Arc<Inner>,
    /// Where it is shown: at the root of a delegation.
    pub(super) audience: Arc<Publisher>,
    pub(super) standing: Standing,
    /// A run that a daemon carries on by itself has nobody before it, and must
    /// not wait for a day to be told what a hook does well without.
    pub(super) carried_on: bool,
}

impl People for Owner {
    fn ask<'a>(&'a self, question: AskQuestion) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            if !self.standing.is_owner || self.standing.unattended || self.carried_on {
                return None;
            }
            // Nobody would see it: a hook has to do without.
            if !self.audience.log().is_viewed() {
                return None;
            }
            let text = question.question.clone();
            let ask = Arc::new(Ask {
                id: self.rt.asks.new_id(),
                kind: AskKind::Question,
                questions: vec![question],
                ..Ask::default()
            });
            let pending = PendingAsk {
                key: self.audience.key().clone(),
                ask,
                asked_at: self.rt.now(),
                inbox: false,
            };
            let log = Arc::clone(self.audience.log());
            let mut wait = self.rt.asks.open(pending, Some(log));
            let audience = Arc::clone(&self.audience);
            wait.show(move |event| audience.publish(event));
            match wait.answer().await {
                Some(Answer::Questions(answers)) => Some(answers[&text].as_str()?.to_owned()),
                Some(
                    Answer::AllowOnce
                    | Answer::AllowAlways
                    | Answer::AllowPrefix
                    | Answer::AllowConversation
                    | Answer::Deny(_),
                )
                | None => None,
            }
        })
    }

    fn tell(&self, notice: String) {
        self.audience.publish(AgentEvent::Notice(notice));
    }
}
