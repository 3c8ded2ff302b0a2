//! The audit log: a hash chain of entries.

use super::Error;
use crate::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum bytes of one text of an entry; longer texts are cut.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// An action to record, before it has a place in the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// RFC 3339 instant of the action.
    pub at: String,
    /// The name of the action, such as `login`.
    pub what: String,
    /// The principal, as the daemon verified it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The address of the client; empty for this machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// Further values by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub about: Map<String, Value>,
}

impl AuditEntry {
    /// Creates an entry without further values.
    pub fn new(at: String, what: &str, by: impl ToString) -> Self {
        Self {
            at,
            what: what.to_owned(),
            by: by.to_string(),
            ..Self::default()
        }
    }

    /// Adds a value. An empty text is omitted, and a long one is cut.
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

/// The result of verifying the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditCheck {
    /// Number of entries that fit.
    pub entries: u64,
    /// The first entry that does not fit, and why.
    pub problem: Option<String>,
}

/// Entries of the chain, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// Each entry as the JSON object that the next one hashes.
    pub lines: Vec<String>,
    /// Whether older entries exist.
    pub more: bool,
}

/// Stores the audit. Each entry has the hash of the entry before it and a number, from 1
/// in each chain. The number and hash of the last entry are also stored separately.
pub trait AuditLog: Send + Sync {
    /// Appends an entry and returns its number.
    ///
    /// # Errors
    /// [`Error::BrokenChain`] if the last entry differs from the one that was written last.
    fn append(&self, entry: AuditEntry) -> BoxFuture<'static, Result<u64, Error>>;

    /// Returns up to `limit` of the latest entries of the chain below a number.
    fn latest(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'static, Result<AuditPage, Error>>;

    /// Compares each entry of the chain with the next one, and the last one with the
    /// separate copy of its number and hash.
    fn verify(&self) -> BoxFuture<'static, Result<AuditCheck, Error>>;

    /// Begins another chain with an entry; earlier chains remain.
    fn begin_chain(&self, first: AuditEntry) -> BoxFuture<'static, Result<(), Error>>;
}
