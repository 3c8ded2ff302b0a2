//! The searchable part of a message: speaker, time and text.

use crate::index::fnv;
use crabtalk_domain::{ConversationKey, Message, Role};

/// A message of a person or an agent.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) speaker: String,
    pub(crate) at: String,
    pub(crate) text: String,
}

impl Turn {
    /// Converts a message of a person or an agent; `None` for all others. `archived_at`
    /// replaces an unknown time.
    pub(crate) fn of(key: &ConversationKey, archived_at: &str, message: &Message) -> Option<Self> {
        if message.auto_injected {
            return None;
        }
        let speaker = match message.role {
            Role::Tool => return None,
            Role::User => key.sender.as_str(),
            Role::Assistant if message.agent.is_empty() => key.agent.as_str(),
            Role::Assistant => &message.agent,
        };
        let text = without_recalled(&message.content);
        if text.trim().is_empty() {
            return None;
        }
        let at = match message.at.as_str() {
            "" => archived_at,
            at => at,
        };
        Some(Self {
            speaker: speaker.to_owned(),
            at: at.to_owned(),
            text,
        })
    }

    /// Days since 1970-01-01, if known.
    pub(super) fn day(&self) -> Option<i32> {
        self.at.get(..10)?.parse().ok().map(crate::days)
    }
}

/// Hash of a turn's text, which shows whether it matches the indexed one.
pub(crate) fn text_hash(text: &str) -> u32 {
    let hash = fnv(text.as_bytes());
    (hash ^ hash >> 32) as u32
}

/// Removes `<recall>` blocks from a message, so that recalled text is not remembered
/// again (MEM-2).
pub(crate) fn without_recalled(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, block)) = rest.split_once("<recall>") {
        out.push_str(before);
        rest = block.split_once("</recall>").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}
