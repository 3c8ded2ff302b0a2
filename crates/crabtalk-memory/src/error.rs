//! Errors of memory.

use crabtalk_domain::{records, storage};
use std::io;
use std::path::PathBuf;

/// Errors of memory; every message may be shown to a model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is empty, too long or of several lines; it holds its beginning.
    #[error("{0:?} cannot name a memory: use one line of 1 to {max} bytes", max = crate::entries::MAX_NAME_BYTES)]
    BadName(String),
    /// A text is larger than what recall may put before a model.
    #[error(
        "the {what} of {name:?} has {bytes} bytes, the limit is {limit}; store less, or in several entries"
    )]
    TooLarge {
        /// `content` or `description`.
        what: &'static str,
        /// The entry.
        name: String,
        /// Bytes that it has.
        bytes: usize,
        /// Bytes that it may have.
        limit: usize,
    },
    /// Nothing was stored, so that one sender cannot fill the disk or the index of all.
    #[error("{sender:?} has {limit} memories, which is the limit; forget some first")]
    TooMany {
        /// Whose memories they are.
        sender: String,
        /// How many may be kept.
        limit: usize,
    },
    /// No entry has that name, or none that this sender may see.
    #[error("there is no memory named {0:?}; recall or list to see the names")]
    NotFound(String),
    /// The name is taken by an entry that this sender may not change, and may not see.
    #[error("{0:?} belongs to an owner and only an owner may change it; choose another name")]
    NotYours(String),
    /// Entries of different senders share the name, and none is chosen by guess.
    #[error("several senders have a memory named {name:?} ({}); remove the right file of config/memory/entries by hand", senders.join(", "))]
    Ambiguous {
        /// Their name.
        name: String,
        /// The senders who caused the entry.
        senders: Vec<String>,
    },
    /// The sender is not an owner of this node; holds the attempted operation.
    #[error("only an owner may {0}")]
    OwnersOnly(&'static str),
    /// An entry or page was edited by hand into something that cannot be read.
    #[error("{} {reason}; mend it or remove it, nothing was changed", file.display())]
    Broken {
        /// Which file.
        file: PathBuf,
        /// Description of the fault.
        reason: String,
    },
    /// The system refuses a file or a folder, mostly for want of rights or room.
    #[error("cannot {action} {}: {source}", file.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// Which file or folder.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The conversation's log cannot be read, so that its archives are not searched.
    #[error("cannot read archives: {0}")]
    Storage(#[from] storage::Error),
    /// The index of archives cannot be used.
    #[error("cannot index archives: {0}")]
    Index(#[from] records::Error),
}

/// A file that was passed over, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file.
    pub file: PathBuf,
    /// Description of the fault.
    pub reason: String,
}
