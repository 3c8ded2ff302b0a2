//! What memory can fail with.

use crabtalk_domain::storage;
use std::io;
use std::path::PathBuf;

/// What memory can fail with; every message may be shown to a model.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("{0:?} cannot name a memory: use one line of 1 to {max} bytes", max = crate::entries::MAX_NAME_BYTES)]
    BadName(String),
    #[error(
        "the {what} of {name:?} has {bytes} bytes, the limit is {limit}; store less, or in several entries"
    )]
    TooLarge {
        /// `content` or `description`.
        what: &'static str,
        name: String,
        bytes: usize,
        limit: usize,
    },
    #[error("{sender:?} has {limit} memories, which is the limit; forget some first")]
    TooMany { sender: String, limit: usize },
    #[error("there is no memory named {0:?}; recall or list to see the names")]
    NotFound(String),
    #[error("{0:?} belongs to an owner and only an owner may change it; choose another name")]
    NotYours(String),
    #[error("several senders have a memory named {name:?} ({}); remove the right file of config/memory/entries by hand", senders.join(", "))]
    Ambiguous {
        name: String,
        /// The senders who caused the entry.
        senders: Vec<String>,
    },
    #[error("only an owner may {0}")]
    OwnersOnly(&'static str),
    #[error("{} {reason}; mend it or remove it, nothing was changed", file.display())]
    Broken { file: PathBuf, reason: String },
    #[error("cannot {action} {}: {source}", file.display())]
    Io {
        action: &'static str,
        file: PathBuf,
        source: io::Error,
    },
    #[error("cannot read archives: {0}")]
    Storage(#[from] storage::Error),
}

/// A file that was passed over, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}
