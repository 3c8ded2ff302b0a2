//! The audit log: a hash chain of entries.

use super::Error;
use crate::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most bytes of one text of an entry; a longer one is cut.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// An action, without its place in the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When, RFC 3339.
    pub at: String,
    /// The action: one word, such as `login`.
    pub what: String,
    /// By whom, as the daemon knows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// From which address; empty for this machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// Further values by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub about: Map<String, Value>,
}

impl AuditEntry {
    /// An entry without further values.
    pub fn new(at: String, what: &str, by: impl ToString) -> Self {
        Self {
            at,
            what: what.to_owned(),
            by: by.to_string(),
            ..Self::default()
        }
    }

    /// Adds a value; an empty text adds nothing, and a long one is cut.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        let mut value = value.into();
        if let Value::String(text) = &mut value {
            if text.is_empty() {
                return self;
            }
            let bytes = text.len();
            if bytes > MAX_TEXT_BYTES {
                text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
                text.push_str(&format!(" [.. {bytes} bytes in all]"));
            }
        }
        self.about.insert(key.to_owned(), value);
        self
    }
}

/// The result of a verification of the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditCheck {
    /// Entries that fit.
    pub entries: u64,
    /// The first entry that does not fit, and why.
    pub problem: Option<String>,
}

/// Entries of the chain, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// Each as the JSON object whose hash the next one names.
    pub lines: Vec<String>,
    /// Whether there are older ones.
    pub more: bool,
}

/// Keeps the audit. Each entry has a number, from 1 in each chain, and the hash of
/// the entry before; the number and hash of the last one are kept beside them.
pub trait AuditLog: Send + Sync {
    /// Adds an entry, and answers with its number.
    ///
    /// # Errors
    /// [`Error::BrokenChain`] where the last entry is not the one that was written last.
    fn append(&self, entry: AuditEntry) -> BoxFuture<'static, Result<u64, Error>>;

    /// The latest entries of the chain below a number, at most `limit`.
    fn latest(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'static, Result<AuditPage, Error>>;

    /// Compares each entry of the chain with the next one, and the last one with what
    /// was kept beside it.
    fn verify(&self) -> BoxFuture<'static, Result<AuditCheck, Error>>;

    /// Begins another chain with an entry; those before it are kept.
    fn begin_chain(&self, first: AuditEntry) -> BoxFuture<'static, Result<(), Error>>;
}
