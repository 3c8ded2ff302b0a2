//! Lists asks and replies to them.

use super::{Session, narrowed, wire};
use crate::error::Error;
use crabtalk_domain::ConversationKey;
use crabtalk_proto::*;
use crabtalk_runtime::PendingAsk as Waiting;
use std::collections::HashMap;

impl Session {
    pub(super) async fn asks(&self, request: ListAsksMsg) -> Result<AskList, Error> {
        let agent = narrowed(&request.agent);
        let sender = narrowed(&request.sender);
        let pending = |pending: Waiting| PendingAsk {
            agent: pending.key.agent.to_string(),
            sender: pending.key.sender.to_string(),
            ask: Some(wire::ask(&pending.ask)),
            asked_at: pending.asked_at,
            inbox: pending.inbox,
        };
        let asks = self.node.runtime.asks(agent, sender);
        let seen = asks.into_iter().filter(|ask| self.sees_ask(ask));
        Ok(AskList {
            asks: seen.map(pending).collect(),
        })
    }

    /// Pending asks that this client may see, by conversation.
    pub(super) fn asks_by_conversation(&self) -> HashMap<ConversationKey, Vec<AskUserEvent>> {
        let mut by_key: HashMap<_, Vec<_>> = HashMap::new();
        let asks = self.node.runtime.asks(None, None).into_iter();
        for pending in asks.filter(|pending| self.sees_ask(pending)) {
            by_key
                .entry(pending.key)
                .or_default()
                .push(wire::ask(&pending.ask));
        }
        by_key
    }

    /// Answers an ask, or one question of it.
    pub(super) async fn reply(&self, request: ReplyToAsk) -> Result<(), Error> {
        let key = self.key(&request.agent, &request.sender)?;
        let id = request.ask_id.as_deref().filter(|id| !id.is_empty());
        self.check_ask(id)?;
        let (runtime, by) = (&self.node.runtime, self.answering());
        Ok(runtime.reply_from(&key, id, &request.content, &by).await?)
    }
}
