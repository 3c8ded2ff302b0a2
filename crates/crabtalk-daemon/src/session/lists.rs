//! Lists conversations.

use super::trash::info as as_logged;
use super::{Session, wanted};
use crate::error::Error;
use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::Summary;
use crabtalk_proto::*;
use crabtalk_runtime::LiveInfo;
use std::collections::{HashMap, HashSet};

/// The limit of a list; 0 means none.
fn bound(limit: u32) -> usize {
    match limit {
        0 => usize::MAX,
        limit => limit as usize,
    }
}

/// Truncates a list. Returns whether it was longer.
fn cut<T>(all: &mut Vec<T>, limit: u32) -> bool {
    let more = all.len() > bound(limit);
    all.truncate(bound(limit));
    more
}

impl Session {
    /// Stored conversations, most recently used first; one more than the limit if there are
    /// more.
    pub(super) async fn summaries(
        &self,
        agent: &str,
        sender: &str,
        limit: u32,
    ) -> Result<Vec<Summary>, Error> {
        let storage = self.node.runtime.storage();
        let most = match self.reaches_everything() {
            true => bound(limit).saturating_add(1),
            // Conversations beyond reach do not count towards the limit.
            false => usize::MAX,
        };
        let listed = storage.latest(wanted(agent), wanted(sender), most).await;
        let mut listed = listed?;
        listed.retain(|summary| self.reaches_key(&summary.key));
        listed.truncate(bound(limit).saturating_add(1));
        Ok(listed)
    }

    pub(super) async fn conversations(
        &self,
        request: ListConversationsMsg,
    ) -> Result<ConversationList, Error> {
        let live = self.live();
        let catalog = self.node.runtime.catalog();
        let info = |summary: Summary| {
            // The state in memory is newer than the stored one.
            let now = live.get(&summary.key).filter(|_| !summary.superseded);
            let meta = now.map_or(&summary.meta, |live| &live.meta);
            ConversationInfo {
                title: meta.title.clone(),
                message_count: now.map_or(summary.message_count, |live| live.message_count),
                alive_secs: meta.uptime_secs,
                date: summary.meta.created_at.clone(),
                cwd: catalog
                    .cwd(&summary.key, meta)
                    .to_string_lossy()
                    .into_owned(),
                ..as_logged(summary)
            }
        };
        let mut summaries = self
            .summaries(&request.agent, &request.sender, request.limit)
            .await?;
        let more = cut(&mut summaries, request.limit);
        Ok(ConversationList {
            conversations: summaries.into_iter().map(info).collect(),
            more,
        })
    }

    /// All conversations that can be continued, with their runs and asks.
    pub(super) async fn active_conversations(
        &self,
        request: ListActiveConversationsMsg,
    ) -> Result<ActiveConversationList, Error> {
        let mut summaries = self
            .summaries(&request.agent, &request.sender, request.limit)
            .await?;
        let unread = summaries.len() > bound(request.limit);
        summaries.retain(|summary| !summary.superseded);
        let live = self.live();
        let mut asks = self.asks_by_conversation();
        let seen: HashSet<ConversationKey> = summaries.iter().map(|s| s.key.clone()).collect();
        let fits = |want: &str, is: &str| want.is_empty() || want == is;
        let unlisted = live.values().filter(|live| {
            !seen.contains(&live.key)
                && fits(&request.agent, live.key.agent.as_str())
                && fits(&request.sender, live.key.sender.as_str())
        });
        let stored = summaries.into_iter().map(|summary| {
            live.get(&summary.key).cloned().unwrap_or(LiveInfo {
                key: summary.key,
                meta: summary.meta,
                message_count: summary.message_count,
                running: false,
                request_id: String::new(),
                queued: 0,
            })
        });
        let catalog = self.node.runtime.catalog();
        let info = |live: LiveInfo| ActiveConversationInfo {
            cwd: catalog
                .cwd(&live.key, &live.meta)
                .to_string_lossy()
                .into_owned(),
            agent: live.key.agent.to_string(),
            sender: live.key.sender.to_string(),
            message_count: live.message_count,
            alive_secs: live.meta.uptime_secs,
            context_used: live.meta.context.map(|context| context.used),
            context_window: live.meta.context.and_then(|context| context.window),
            title: live.meta.title,
            running: live.running,
            request_id: live.request_id,
            queued: u32::try_from(live.queued).unwrap_or(u32::MAX),
            asks: asks.remove(&live.key).unwrap_or_default(),
        };
        let mut all: Vec<LiveInfo> = stored.chain(unlisted.cloned()).collect();
        let more = cut(&mut all, request.limit) || unread;
        let conversations = all.into_iter().map(info).collect();
        Ok(ActiveConversationList {
            conversations,
            more,
        })
    }

    fn live(&self) -> HashMap<ConversationKey, LiveInfo> {
        let all = self.node.runtime.live_all();
        all.into_iter()
            .filter(|live| self.reaches_key(&live.key))
            .map(|live| (live.key.clone(), live))
            .collect()
    }
}
