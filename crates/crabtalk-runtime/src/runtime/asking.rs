//! Replies to asks.

use super::Runtime;
use crate::Error;
use crate::asks::PendingAsk;
use crabtalk_domain::{ConversationKey, Principal};

impl Runtime {
    /// Answers a pending ask (RUN-7) as the owner, bypassing the queue. A permanent approval
    /// is on disk when this returns; if it cannot be stored, the ask stays pending.
    pub async fn reply(
        &self,
        key: &ConversationKey,
        ask_id: Option<&str>,
        content: &str,
    ) -> Result<(), Error> {
        self.reply_from(key, ask_id, content, &Principal::Owner)
            .await
    }

    /// Like [`Runtime::reply`] for another principal, which is stored with a permanent
    /// approval.
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

    /// Pending asks, oldest first; `None` matches any.
    pub fn asks(&self, agent: Option<&str>, sender: Option<&str>) -> Vec<PendingAsk> {
        self.0.asks.list(agent, sender)
    }
}
