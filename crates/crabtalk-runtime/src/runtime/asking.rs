//! Answers to asks, and asks that no run waits for.

use super::Runtime;
use crate::Error;
use crate::asks::{Answer, PendingAsk};
use crate::events::HubEvent;
use crabtalk_domain::{Ask, AskKind, AskOption, AskQuestion, ConversationKey, Principal};
use std::sync::Arc;

/// What an owner is to decide apart from any run.
#[derive(Debug, Clone, Default)]
pub struct Matter {
    /// The question.
    pub question: String,
    /// The name under which it is shown, in place of a tool's.
    pub tool: String,
    /// All of what would be.
    pub detail: String,
    /// Why it is asked.
    pub reason: String,
}

impl Runtime {
    /// Answers a pending ask (RUN-7), for the owner. It bypasses the queue. What is allowed
    /// for good is on disk when this returns; if it cannot be kept, the ask
    /// stays as it was.
    pub async fn reply(
        &self,
        key: &ConversationKey,
        ask_id: Option<&str>,
        content: &str,
    ) -> Result<(), Error> {
        self.reply_from(key, ask_id, content, &Principal::Owner)
            .await
    }

    /// [`Runtime::reply`] by a client of this principal, who is kept beside
    /// what is allowed for good.
    pub async fn reply_from(
        &self,
        key: &ConversationKey,
        ask_id: Option<&str>,
        content: &str,
        by: &Principal,
    ) -> Result<(), Error> {
        let claim = self.0.asks.claim(key, ask_id, content)?;
        if let Some((rule, prefix)) = claim.rule() {
            let kept = self.0.toolbox.keep(rule, prefix, self.0.now(), by);
            kept.await.map_err(Error::NotKept)?;
        }
        claim.settle(by);
        Ok(())
    }

    /// Asks owners, in their inbox and before whoever watches, whether something
    /// may be, that no run waits for. `None` if the runtime goes down first.
    pub async fn ask_owner(&self, key: &ConversationKey, matter: Matter) -> Option<bool> {
        let rt = &self.0;
        let option = |label: &str, description: &str| AskOption {
            label: label.into(),
            description: description.into(),
        };
        let ask = Arc::new(Ask {
            id: rt.asks.new_id(),
            kind: AskKind::Approval,
            questions: vec![AskQuestion {
                question: matter.question,
                header: "Approval".into(),
                options: vec![
                    option("Allow once", "it counts from now on"),
                    option("Deny", "it does not count, and is kept aside"),
                ],
                multi_select: false,
            }],
            tool: matter.tool,
            detail: matter.detail,
            reason: matter.reason,
            ..Ask::default()
        });
        let pending = PendingAsk {
            key: key.clone(),
            ask,
            asked_at: rt.now(),
            inbox: true,
        };
        let mut wait = rt.asks.open(pending, None);
        let (inner, key) = (Arc::clone(rt), Arc::new(key.clone()));
        wait.show(move |event| {
            inner.hub.publish(|| HubEvent {
                seq: 0,
                key: Some(Arc::clone(&key)),
                run: 0,
                speaker: key.agent.as_str().into(),
                event,
                at: inner.now(),
            });
        });
        let answer = tokio::select! {
            answer = wait.answer() => answer?,
            () = rt.shutdown.cancelled() => return None,
        };
        Some(matches!(
            answer,
            Answer::AllowOnce
                | Answer::AllowAlways
                | Answer::AllowPrefix
                | Answer::AllowConversation
        ))
    }

    /// Pending asks, oldest first; `None` means any.
    pub fn asks(&self, agent: Option<&str>, sender: Option<&str>) -> Vec<PendingAsk> {
        self.0.asks.list(agent, sender)
    }
}
