//! One line.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Before the first line there is none.
pub(crate) const NONE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Most bytes of one text of an entry; what is longer is cut, with its length and
/// hash in the place of the rest.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// What is to be told, without its place in the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When, RFC 3339.
    pub at: String,
    /// What was done: one word, such as `login`.
    pub what: String,
    /// By whom, as the daemon knows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// From which address; empty for this machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub about: Map<String, Value>,
}

impl AuditEntry {
    /// Something that was done.
    pub fn new(at: String, what: &str, by: impl ToString) -> Self {
        Self {
            at,
            what: what.to_owned(),
            by: by.to_string(),
            ..Self::default()
        }
    }

    /// Says something more. Empty texts say nothing.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        let mut value = value.into();
        if let Value::String(text) = &mut value {
            if text.is_empty() {
                return self;
            }
            *text = bounded(std::mem::take(text));
        }
        self.about.insert(key.to_owned(), value);
        self
    }
}

/// A text that takes no more room than it may.
fn bounded(text: String) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let cut = text.floor_char_boundary(MAX_TEXT_BYTES);
    let whole = hash(text.as_bytes());
    let bytes = text.len();
    format!("{} [.. {bytes} bytes in all, sha256 {whole}]", &text[..cut])
}

/// A line as it is in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Its number, from 1, over all files.
    pub n: u64,
    /// What it tells.
    #[serde(flatten)]
    pub entry: AuditEntry,
    /// The hash of the line before.
    pub prev: String,
}

impl Line {
    pub(crate) fn of(entry: AuditEntry, n: u64, prev: &str) -> Self {
        let prev = prev.to_owned();
        Self { n, entry, prev }
    }

    /// As it is written, without the newline.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("string keys and finite numbers are JSON")
    }
}

/// Of a line, by which the next one knows it.
pub(crate) fn hash(line: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(line) {
        // Writing into a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
