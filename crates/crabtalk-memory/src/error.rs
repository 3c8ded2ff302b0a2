//! What memory can fail with.

use crabtalk_domain::storage;
use std::io;
use std::path::PathBuf;

/// What memory can fail with; every message may be shown to a model.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum Error {
    /// The name is empty, too long or not one line.
    #[error("{0:?} cannot name a memory: use one line of 1 to {max} bytes", max = crate::entries::MAX_NAME_BYTES)]
    BadName(String),
    /// Too large to be one memory.
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
    /// A sender without the owner's authority has enough.
    #[error("{sender:?} has {limit} memories, which is the limit; forget some first")]
    TooMany { sender: String, limit: usize },
    /// Nothing of that name that the viewer may see.
    #[error("there is no memory named {0:?}; recall or list to see the names")]
    NotFound(String),
    /// An owner's entry, and the viewer is none.
    #[error("{0:?} belongs to an owner and only an owner may change it; choose another name")]
    NotYours(String),
    /// Several senders have one of that name.
    #[error("several senders have a memory named {name:?} ({}); remove the right file of config/memory/entries by hand", senders.join(", "))]
    Ambiguous {
        name: String,
        /// The senders who caused the entry.
        senders: Vec<String>,
    },
    /// Something that only owners may do.
    #[error("only an owner may {0}")]
    OwnersOnly(&'static str),
    /// A file that ought to be readable is not.
    #[error("{} {reason}; mend it or remove it, nothing was changed", file.display())]
    Broken { file: PathBuf, reason: String },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", file.display())]
    Io {
        action: &'static str,
        file: PathBuf,
        source: io::Error,
    },
    /// Archives could not be read.
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
