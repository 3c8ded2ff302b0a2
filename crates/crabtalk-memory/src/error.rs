//! Errors of memory.

use crabtalk_domain::{records, storage};
use std::io;
use std::path::PathBuf;

/// An error of memory; a model may see the message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is empty, too long or has several lines; holds its beginning.
    #[error("{0:?} is not a valid name of a memory entry: use one line of 1 to {max} bytes", max = crate::entries::MAX_NAME_BYTES)]
    BadName(String),
    /// A text is too large for a recall.
    #[error(
        "the {what} of {name:?} has {bytes} bytes, the limit is {limit}; shorten it or use several \
         entries"
    )]
    TooLarge {
        /// `content` or `description`.
        what: &'static str,
        /// The entry.
        name: String,
        /// The size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The sender has too many entries; nothing was stored.
    #[error("{sender:?} has {limit} memory entries, which is the limit; delete some first")]
    TooMany {
        /// The sender of the entries.
        sender: String,
        /// Maximum number of entries.
        limit: usize,
    },
    /// No entry has this name, or none that the sender may see.
    #[error("there is no memory entry named {0:?}; recall or list entries to see the names")]
    NotFound(String),
    /// The name belongs to an entry that the sender may neither change nor see.
    #[error("only an owner may change the memory entry {0:?}; choose another name")]
    NotYours(String),
    /// Entries of several senders have this name.
    #[error("several senders have a memory entry named {name:?} ({}); delete the intended file in config/memory/entries", senders.join(", "))]
    Ambiguous {
        /// The name.
        name: String,
        /// The senders who caused the entry.
        senders: Vec<String>,
    },
    /// The sender is not an owner of this node; holds the attempted operation.
    #[error("only an owner may {0}")]
    OwnersOnly(&'static str),
    /// A manual edit made an entry or page unreadable.
    #[error("{} {reason}; nothing was changed: fix or remove the file", file.display())]
    Broken {
        /// The file.
        file: PathBuf,
        /// Description of the fault.
        reason: String,
    },
    /// A file or folder cannot be accessed, usually for lack of rights or space.
    #[error("cannot {action} {}: {source}", file.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The file or folder.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The conversation's log cannot be read, so its archives are not searched.
    #[error("cannot read archives: {0}")]
    Storage(#[from] storage::Error),
    /// The index of archives cannot be used.
    #[error("cannot index archives: {0}")]
    Index(#[from] records::Error),
}

/// A skipped file, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file.
    pub file: PathBuf,
    /// Description of the fault.
    pub reason: String,
}
