//! Names in messages: case-insensitive, written in capitals.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest name: the grammar's `ALPHA *31(..)`.
pub const MAX_NAME: usize = 32;

/// Longest topic, in characters.
pub const MAX_TOPIC: usize = 64;

/// The sender or recipient of a message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// Parses a name; `None` if it is invalid.
    pub fn new(text: &str) -> Option<Self> {
        let is_first = |c: char| c.is_ascii_alphabetic();
        let is_more = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let mut characters = text.chars();
        let valid = characters.next().is_some_and(is_first)
            && characters.all(is_more)
            && text.len() <= MAX_NAME;
        valid.then(|| Self(text.to_ascii_uppercase()))
    }

    /// The supervisor itself.
    pub fn nexus() -> Self {
        Self("NEXUS".into())
    }

    /// The person whose team it is.
    pub fn admin() -> Self {
        Self("ADMIN".into())
    }

    /// Any free agent, in tasks only.
    pub fn any() -> Self {
        Self("ANY".into())
    }

    /// Whether agents must not have this name.
    pub fn is_reserved(&self) -> bool {
        matches!(self.as_str(), "NEXUS" | "ADMIN" | "ANY")
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder of an agent of this name.
    pub fn folder(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bare = text.strip_prefix('@').unwrap_or(text);
        Self::new(bare).ok_or_else(|| {
            format!(
                "{text:?} is not a valid name: a letter, then at most {} letters, digits, `_` or `-`",
                MAX_NAME - 1
            )
        })
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

/// The topic of a message, in capitals.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Topic(String);

impl Topic {
    /// Parses a topic; `None` if it is invalid.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim().to_uppercase();
        let is_allowed = |c: char| c != ']' && !c.is_control();
        let count = text.chars().count();
        ((1..=MAX_TOPIC).contains(&count) && text.chars().all(is_allowed)).then_some(Self(text))
    }

    /// Creates a topic from a constant that is valid.
    pub(crate) fn own(text: &'static str) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Topic {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text).ok_or_else(|| format!("{text:?} is not a valid topic"))
    }
}

impl From<Topic> for String {
    fn from(topic: Topic) -> Self {
        topic.0
    }
}
