//! The folder of entry files, and the index derived from it.
//!
//! Invariants: the files are the truth, and everything here can be dropped and
//! read again. An entry is named by its frontmatter and its sender, a file name
//! is a hint. A file that cannot be read hides no other one.

mod format;
mod keep;
mod look;
mod slug;
mod watch;

pub use format::Entry;
pub(crate) use format::parse;

use crate::index::{DocId, Index};
use crate::text::passages;
use crate::{Error, Warning};
use crabtalk_files::Existing;
use look::{MAX_FILE_BYTES, Stamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::PathBuf;
use watch::Watch;

/// Longest name; it is shown in lists and results.
pub const MAX_NAME_BYTES: usize = 200;
/// Longest description; it is one line of a result.
pub const MAX_DESCRIPTION_BYTES: usize = 2_000;
/// Longest content: a long chapter. Larger texts belong in a document.
pub const MAX_CONTENT_BYTES: usize = 256 * 1024;
/// Metadata of an entry kept in memory.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) sender: String,
    pub(crate) shared: bool,
    pub(crate) at: String,
    hash: u64,
    docs: Range<DocId>,
}

#[derive(Debug)]
enum State {
    Indexed(usize),
    /// Another file has the same name and sender.
    Shadowed {
        name: String,
        sender: String,
    },
    Broken(String),
}

#[derive(Debug)]
struct Known {
    stamp: Option<Stamp>,
    state: State,
}

impl Known {
    /// Why the file is passed over, if it is broken.
    fn reason(&self) -> Option<String> {
        match &self.state {
            State::Broken(reason) => Some(reason.clone()),
            State::Indexed(_) | State::Shadowed { .. } => None,
        }
    }
}

/// Files by the sender whose entries they hold.
type Claims = BTreeMap<String, BTreeSet<String>>;

#[derive(Debug)]
pub(crate) struct Entries {
    folder: PathBuf,
    watch: Watch,
    /// Changed files that were not read yet; `None`: all files.
    unseen: Option<BTreeSet<OsString>>,
    /// Why the folder cannot be used.
    trouble: Option<String>,
    files: BTreeMap<String, Known>,
    /// Links, whose targets change unseen by the watch.
    links: BTreeSet<String>,
    claims: HashMap<String, Claims>,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    per_sender: HashMap<String, usize>,
    index: Index,
    slot_of_doc: Vec<usize>,
    next_conversation: u32,
}

impl Entries {
    /// The folder's entries; nothing is read before `refresh`.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            watch: Watch::default(),
            unseen: None,
            trouble: None,
            files: BTreeMap::new(),
            links: BTreeSet::new(),
            claims: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            per_sender: HashMap::new(),
            index: Index::new(),
            slot_of_doc: Vec::new(),
            next_conversation: 0,
        }
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// The entry that a document belongs to, and which passage of it it is.
    pub(crate) fn of_doc(&self, doc: DocId) -> Option<(&Slot, usize)> {
        let slot = self
            .slots
            .get(*self.slot_of_doc.get(doc as usize)?)?
            .as_ref()?;
        Some((slot, doc.checked_sub(slot.docs.start)? as usize))
    }

    /// All entries, by file name.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.files.values().filter_map(|known| match known.state {
            State::Indexed(slot) => self.slots[slot].as_ref(),
            State::Shadowed { .. } | State::Broken(_) => None,
        })
    }

    /// The entries of a name, by sender.
    pub(crate) fn named(&self, name: &str) -> Vec<&Slot> {
        let files = self
            .claims
            .get(name)
            .into_iter()
            .flat_map(|c| c.values().flatten());
        let slots = files.filter_map(|file| match self.files.get(file)?.state {
            State::Indexed(slot) => self.slots[slot].as_ref(),
            State::Shadowed { .. } | State::Broken(_) => None,
        });
        slots.collect()
    }

    /// How many entries a sender has.
    pub(crate) fn count_of(&self, sender: &str) -> usize {
        self.per_sender.get(sender).copied().unwrap_or_default()
    }

    /// Files that were passed over.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let warnings = self.files.iter().filter_map(|(file, known)| {
            let reason = match &known.state {
                State::Broken(reason) => reason.clone(),
                State::Shadowed { name, sender } => {
                    let other = self.winner(name, sender).unwrap_or_default();
                    format!("is named {name:?} like {other}, which is used")
                }
                State::Indexed(_) => return None,
            };
            Some(Warning {
                file: self.folder.join(file),
                reason,
            })
        });
        let folder = self.trouble.iter().map(|reason| Warning {
            file: self.folder.clone(),
            reason: reason.clone(),
        });
        folder.chain(warnings).collect()
    }

    pub(crate) fn read(&self, slot: &Slot) -> Result<Entry, Error> {
        let file = self.folder.join(&slot.file);
        let parsed = crabtalk_files::read_text(&file, MAX_FILE_BYTES)
            .map_err(|e| e.to_string())
            .and_then(|text| format::parse(&text));
        parsed.map_err(|reason| Error::Broken { file, reason })
    }

    /// The passage of an entry that a document represents.
    pub(crate) fn passage(&self, slot: &Slot, passage: usize) -> Option<(Entry, Range<usize>)> {
        let entry = self.read(slot).ok()?;
        let range = passages(&entry.content).into_iter().nth(passage)?;
        Some((entry, range))
    }

    /// Writes an entry into a file, a new one if `None`.
    pub(crate) fn write(&mut self, entry: &Entry, file: Option<&str>) -> Result<(), Error> {
        let text = format::render(entry);
        let file = match file {
            Some(file) => {
                self.write_file(file, &text, Existing::Replace)?;
                file.to_owned()
            }
            None => self.write_new(entry, &text)?,
        };
        self.look_at(OsStr::new(&file), true);
        Ok(())
    }

    fn write_new(&self, entry: &Entry, text: &str) -> Result<String, Error> {
        for file in slug::file_names(&entry.name, &entry.sender) {
            match self.write_file(&file, text, Existing::Refuse) {
                Err(Error::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => return Ok(file),
            }
        }
        unreachable!("there is no end of file names")
    }

    fn write_file(&self, file: &str, text: &str, existing: Existing) -> Result<(), Error> {
        let file = self.folder.join(file);
        crabtalk_files::write(&file, text.as_bytes(), existing).map_err(|source| Error::Io {
            action: "write",
            file,
            source,
        })
    }

    pub(crate) fn remove(&mut self, file: &str) -> Result<(), Error> {
        let path = self.folder.join(file);
        crabtalk_files::remove(&path).map_err(|source| Error::Io {
            action: "remove",
            file: path,
            source,
        })?;
        self.look_at(OsStr::new(file), true);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
