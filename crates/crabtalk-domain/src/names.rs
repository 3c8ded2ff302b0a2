//! Names that identify agents, senders and conversations (CONV-1, CONV-2).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Maximum bytes of a sender: room for a gateway's addresses, yet small enough to repeat
/// in every log and list.
const MAX_SENDER_BYTES: usize = 4096;

/// Maximum length of an agent, skill, component, provider or cron-skill name (CONV-2).
const MAX_NAME_BYTES: usize = 64;

/// Why a name was refused. The wire answers 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name does not match `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`.
    #[error(
        "{0:?} is not a valid name: use 1 to 64 letters, digits, `_` or `-`, beginning with a letter or digit"
    )]
    BadName(String),
    /// The sender is empty; callers supply their default first.
    #[error("the sender is empty")]
    EmptySender,
    /// The sender exceeds the limit; holds its length in bytes.
    #[error("the sender has {0} bytes, the limit is {MAX_SENDER_BYTES}")]
    LongSender(usize),
}

/// Checks an agent, skill, component, provider or cron-skill name (CONV-2).
///
/// # Errors
/// [`NameError`] describes a valid name.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    let rest = bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if first && rest && name.len() <= MAX_NAME_BYTES {
        Ok(())
    } else {
        Err(NameError::BadName(shorten(name)))
    }
}

/// Shortens a refused name for the error that quotes it.
fn shorten(name: &str) -> String {
    name.chars().take(MAX_NAME_BYTES + 16).collect()
}

/// The name of a configured agent.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(Arc<str>);

impl AgentName {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Self, NameError> {
        check_name(name)?;
        Ok(Self(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AgentName {
    type Error = NameError;
    fn try_from(name: String) -> Result<Self, NameError> {
        Self::new(&name)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0.as_ref().to_owned()
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The sender of messages to an agent: any text, compared byte by byte.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sender(Arc<str>);

impl Sender {
    /// Checks a sender.
    pub fn new(sender: &str) -> Result<Self, NameError> {
        match sender.len() {
            0 => Err(NameError::EmptySender),
            n if n > MAX_SENDER_BYTES => Err(NameError::LongSender(n)),
            _ => Ok(Self(sender.into())),
        }
    }

    /// The sender as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether only the daemon may use this sender (CONV-10).
    pub fn is_reserved(&self) -> bool {
        &*self.0 == "cron"
            || ["cron:", "delegate:", "event:"]
                .iter()
                .any(|p| self.0.starts_with(p))
    }
}

impl TryFrom<String> for Sender {
    type Error = NameError;
    fn try_from(sender: String) -> Result<Self, NameError> {
        Self::new(&sender)
    }
}

impl From<Sender> for String {
    fn from(sender: Sender) -> Self {
        sender.0.as_ref().to_owned()
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Identifies a conversation outside the daemon (CONV-1).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ConversationKey {
    /// The agent whose conversation it is.
    pub agent: AgentName,
    /// The sender.
    pub sender: Sender,
}

impl ConversationKey {
    /// The conversation of this agent with this sender.
    ///
    /// # Errors
    ///
    /// The agent's name or the sender is not valid.
    pub fn new(agent: &str, sender: &str) -> Result<Self, NameError> {
        Ok(Self {
            agent: AgentName::new(agent)?,
            sender: Sender::new(sender)?,
        })
    }
}

impl fmt::Display for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.agent, self.sender)
    }
}

/// Whether a sender is one of the owners (CONV-11). An entry is a whole name, or a
/// name with `/*` for each further segment: `user/*` matches `user/house`, and
/// `user/*/*` matches `user/house/roof`.
pub fn is_owner(owners: &[String], sender: &str) -> bool {
    owners.iter().any(|owner| {
        let name = owner.trim_end_matches("/*");
        let wildcards = (owner.len() - name.len()) / "/*".len();
        if wildcards == 0 {
            return owner == sender;
        }
        let rest = sender.strip_prefix(name);
        rest.and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|rest| {
                let mut segments = rest.split('/');
                segments.clone().count() == wildcards && segments.all(|part| !part.is_empty())
            })
    })
}

/// The sender whose permanent approvals apply to runs of an owner: for the topic
/// `user/house/roof` that of its folder, `user/house`, and for `user/-/roof`, outside
/// a work tree, `user` (CONV-11). Only an owner's folder counts, so that an approval
/// never reaches another person.
pub fn approval_sender<'a>(owners: &[String], sender: &'a Sender) -> &'a str {
    let whole = sender.as_str();
    let parts: Vec<&str> = whole.split('/').collect();
    let folder = match parts[..] {
        [person, "-", _] => person,
        [_, _, topic] => &whole[..whole.len() - topic.len() - 1],
        _ => whole,
    };
    match is_owner(owners, whole) && is_owner(owners, folder) {
        true => folder,
        false => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_topics_of_an_owners_folder_share_approvals() {
        let all = ["user", "user/*", "user/*/*"].map(str::to_owned);
        for (sender, shared) in [
            ("user/house/roof", "user/house"),
            ("user/-/roof", "user"),
            ("user/house", "user/house"),
            ("user", "user"),
            ("user//roof", "user//roof"),
            ("tg/group/ada", "tg/group/ada"),
        ] {
            let sender = Sender::new(sender).unwrap();
            assert_eq!(approval_sender(&all, &sender), shared);
            let topics_alone = &all[2..];
            assert_eq!(approval_sender(topics_alone, &sender), sender.as_str());
        }
    }

    #[test]
    fn names_follow_conv_2() {
        let long = "a".repeat(64);
        for good in ["a", "A1", "a-b_c", "0", long.as_str()] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let too_long = "a".repeat(65);
        for bad in ["", "-a", "_a", "a b", "a/b", "../x", "é", too_long.as_str()] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn senders_are_any_nonempty_bounded_text() {
        for good in ["user", "tg:1", "../x", "🦀", &"x".repeat(1024)] {
            assert!(Sender::new(good).is_ok());
        }
        assert_eq!(Sender::new(""), Err(NameError::EmptySender));
        assert!(Sender::new(&"x".repeat(4097)).is_err());
    }

    #[test]
    fn reserved_senders_belong_to_the_daemon() {
        for reserved in ["cron", "cron:1", "delegate:7", "event:x"] {
            assert!(
                Sender::new(reserved).expect("valid").is_reserved(),
                "{reserved}"
            );
        }
        for free in ["cronos", "user", "delegate", "events"] {
            assert!(!Sender::new(free).expect("valid").is_reserved(), "{free}");
        }
    }

    #[test]
    fn owner_patterns_match_segments() {
        let owners = ["user", "user/*", "a*"].map(String::from);
        for (sender, is) in [
            ("user", true),
            ("user/house", true),
            ("user/*", true),
            ("user/", false),
            ("user/house/roof", false),
            ("users/house", false),
            ("other/house", false),
            ("a*", true),
            ("ab", false),
            ("", false),
        ] {
            assert_eq!(is_owner(&owners, sender), is, "{sender:?}");
        }
        assert!(!is_owner(&["/*".into()], "user"));
        let topics = ["user/*/*".to_owned()];
        for (sender, is) in [
            ("user/house/roof", true),
            ("user/house", false),
            ("user//roof", false),
            ("user/house/", false),
            ("user/house/roof/tiles", false),
        ] {
            assert_eq!(is_owner(&topics, sender), is, "{sender:?}");
        }
        assert!(!is_owner(&["user/*".into()], "user"));
    }
}
