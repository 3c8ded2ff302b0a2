//! Conversations and archives for `/switch`.
//!
//! Invariant: a failed request leaves details empty, never the list.

use crate::text::{ago, counted, summary};
use crate::topic;
use crabtalk_client::{Client, Error};
use crabtalk_proto::{
    ActiveConversationInfo, ArchiveInfo, ConversationInfo, GetHistoryMsg, HistoryEntry,
    ListActiveConversationsMsg, ListArchivesMsg, ListConversationsMsg,
};
use futures_util::StreamExt;
use jiff::Timestamp;

/// Maximum number of conversations, newest first.
const MAX_CONVERSATIONS: u32 = 200;

/// Number of conversations whose messages and archives are requested.
const LOOKED_INTO: usize = 40;

/// Maximum concurrent requests.
const AT_ONCE: usize = 8;

/// Number of messages read from each end.
const NEAR_AN_END: u32 = 6;

/// A conversation, or an archive of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) agent: String,
    pub(crate) sender: String,
    /// The archive's number in its conversation.
    pub(crate) archive: Option<u32>,
    pub(crate) title: String,
    /// Working folder, if known.
    pub(crate) folder: String,
    /// The time of its last use.
    pub(crate) at: String,
    pub(crate) messages: u64,
    pub(crate) first: String,
    pub(crate) last: String,
    /// The topic; used only in the list of topics.
    pub(crate) topic: String,
    /// The state of its run; used only in the list of topics.
    pub(crate) state: &'static str,
    /// Messages near both ends, for the search.
    pub(crate) near_the_ends: String,
}

impl Place {
    /// Whether all words match, ignoring case.
    pub(crate) fn fits(&self, search: &str) -> bool {
        let name = self.name();
        let all = [
            &name,
            &self.agent,
            &self.sender,
            &self.title,
            &self.folder,
            &self.first,
            &self.last,
            &self.near_the_ends,
        ];
        let all = all.map(|text| text.to_lowercase()).join("\n");
        search
            .to_lowercase()
            .split_whitespace()
            .all(|word| all.contains(word))
    }

    /// A short name.
    pub(crate) fn name(&self) -> String {
        if !self.topic.is_empty() {
            return self.topic.clone();
        }
        let who = match self.sender.as_str() {
            "user" => self.agent.clone(),
            sender => format!("{} as {sender}", self.agent),
        };
        match self.archive {
            Some(number) => format!("{who}, archive {number}"),
            None => who,
        }
    }

    /// The title, or the first message.
    pub(crate) fn about(&self) -> String {
        match (self.title.as_str(), self.first.as_str()) {
            ("", "") => counted(self.messages, "message"),
            ("", first) => summary(first),
            (title, _) => summary(title),
        }
    }

    /// Its age.
    pub(crate) fn age(&self, now: Timestamp) -> String {
        ago(&self.at, now)
    }
}

/// The user's conversations, newest first, each followed by its archives.
pub(crate) async fn places(client: &Client, own: &str) -> Result<Vec<Place>, Error> {
    let request = ListConversationsMsg {
        limit: MAX_CONVERSATIONS,
        ..ListConversationsMsg::default()
    };
    let list = client.call(request).await?;
    let mine = list.conversations.into_iter();
    let mine: Vec<ConversationInfo> = mine.filter(|info| is_own(&info.sender, own)).collect();
    let looks = mine.into_iter().enumerate().map(|(at, info)| async move {
        match at < LOOKED_INTO {
            true => look_into(client, info).await,
            false => vec![of(&info)],
        }
    });
    let places: Vec<Vec<Place>> = futures_util::stream::iter(looks)
        .buffered(AT_ONCE)
        .collect()
        .await;
    Ok(places.into_iter().flatten().collect())
}

/// The conversations of an agent in one folder, newest first, with their states.
pub(crate) async fn topics(client: &Client, agent: &str, own: &str) -> Result<Vec<Place>, Error> {
    let active = client.call(ListActiveConversationsMsg {
        agent: agent.to_owned(),
        ..ListActiveConversationsMsg::default()
    });
    let (places, active) = futures_util::join!(places(client, own), active);
    let active = active.map(|list| list.conversations).unwrap_or_default();
    let folder = topic::split(own).0;
    let mut places = places?;
    places.retain(|place| {
        let (of, _) = topic::split(&place.sender);
        place.archive.is_none() && place.agent == agent && of == folder
    });
    for place in &mut places {
        let active = active.iter().find(|info| info.sender == place.sender);
        place.topic = topic::split(&place.sender).1.to_owned();
        place.state = state(active);
    }
    Ok(places)
}

/// The state of a conversation in memory.
fn state(active: Option<&ActiveConversationInfo>) -> &'static str {
    match active {
        Some(active) if !active.asks.is_empty() => "waiting for you",
        Some(active) if active.running => "running",
        Some(_) | None => "idle",
    }
}

/// Whether a sender is the user, in any project.
fn is_own(sender: &str, own: &str) -> bool {
    let person = |sender: &str| sender.split('/').next().unwrap_or_default().to_owned();
    sender == own
        || sender == "user"
        || sender.starts_with("user/")
        || person(sender) == person(own)
}

fn of(info: &ConversationInfo) -> Place {
    Place {
        agent: info.agent.clone(),
        sender: info.sender.clone(),
        archive: None,
        title: info.title.clone(),
        folder: info.cwd.clone(),
        at: info.used_at.clone(),
        messages: info.message_count,
        ..Place::default()
    }
}

/// A conversation with its messages and archives.
async fn look_into(client: &Client, info: ConversationInfo) -> Vec<Place> {
    let page = |first: bool| {
        client.call(GetHistoryMsg {
            agent: info.agent.clone(),
            sender: info.sender.clone(),
            before: None,
            limit: NEAR_AN_END,
            first,
        })
    };
    let archives = client.call(ListArchivesMsg {
        agent: info.agent.clone(),
        sender: info.sender.clone(),
    });
    let (first, last, archives) = futures_util::join!(page(true), page(false), archives);
    let mut place = of(&info);
    let entries = |page: Result<crabtalk_proto::HistoryPage, Error>| {
        page.map(|page| page.entries).unwrap_or_default()
    };
    let (first, last) = (entries(first), entries(last));
    place.first = words(first.iter());
    place.last = words(last.iter().rev());
    let near = first.iter().chain(&last);
    let near = near.map(|entry| summary(&entry.content));
    place.near_the_ends = near.collect::<Vec<_>>().join("\n");
    let archives = archives.map(|list| list.archives).unwrap_or_default();
    let archives = archives
        .into_iter()
        .rev()
        .map(|archive| of_archive(&info, archive));
    std::iter::once(place).chain(archives).collect()
}

fn of_archive(info: &ConversationInfo, archive: ArchiveInfo) -> Place {
    Place {
        agent: info.agent.clone(),
        sender: info.sender.clone(),
        archive: Some(archive.index),
        title: archive.title,
        folder: info.cwd.clone(),
        at: archive.archived_at,
        messages: archive.message_count,
        first: String::new(),
        last: summary(&archive.summary),
        ..Place::default()
    }
}

/// The first user message.
fn words<'a>(mut entries: impl Iterator<Item = &'a HistoryEntry>) -> String {
    let said = entries.find(|entry| {
        let speaks = matches!(entry.role.as_str(), "user" | "assistant");
        speaks && !entry.compact && !entry.content.trim().is_empty()
    });
    said.map_or_else(String::new, |entry| summary(&entry.content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_matches_all_words() {
        let place = Place {
            agent: "crab".into(),
            sender: "user/house".into(),
            title: "The roof".into(),
            folder: "/home/me/house".into(),
            last: "It is fixed.".into(),
            ..Place::default()
        };
        for search in ["", "roof", "HOUSE fixed", "crab roof house"] {
            assert!(place.fits(search), "{search}");
        }
        assert!(!place.fits("roof garden"));
        assert_eq!(place.name(), "crab as user/house");
    }

    #[test]
    fn state_tells_running_from_waiting() {
        let running = ActiveConversationInfo {
            running: true,
            ..ActiveConversationInfo::default()
        };
        let waiting = ActiveConversationInfo {
            asks: vec![Default::default()],
            ..running.clone()
        };
        assert_eq!(state(Some(&running)), "running");
        assert_eq!(state(Some(&waiting)), "waiting for you");
        assert_eq!(state(Some(&ActiveConversationInfo::default())), "idle");
        assert_eq!(state(None), "idle");
    }

    #[test]
    fn only_own_conversations_are_listed() {
        for (sender, own, is) in [
            ("user", "user", true),
            ("user/house", "user", true),
            ("user", "user/house", true),
            ("root/house", "root", true),
            ("tg:1", "user", false),
            ("cron:3", "user", false),
            ("users", "user", false),
        ] {
            assert_eq!(is_own(sender, own), is, "{sender} for {own}");
        }
    }
}
