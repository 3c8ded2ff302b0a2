//! The folder of entry files, and the index derived from it.
//!
//! Invariants: the files take precedence, and all state here can be dropped and read
//! again. Frontmatter and sender name an entry; a file name is a hint. An unreadable file
//! does not affect others. Any change of the folder rebuilds the index of all entries.

mod format;
mod refresh;
mod slug;

pub use format::Entry;
pub(crate) use format::parse;

use crate::index::{Analysed, DocId, Index};
use crate::text::passages;
use crate::{Error, Warning};
use crabtalk_files::Existing;
use refresh::{MAX_FILE_BYTES, Stamp};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;

/// Longest name, which lists and results show.
pub const MAX_NAME_BYTES: usize = 200;
/// Longest description, which is one line of a result.
pub const MAX_DESCRIPTION_BYTES: usize = 2_000;
/// Longest content: a long chapter. Larger texts belong in a document.
pub const MAX_CONTENT_BYTES: usize = 256 * 1024;

/// Metadata of an entry, and the analysed text of its passages.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) sender: String,
    pub(crate) shared: bool,
    pub(crate) at: String,
    passages: Vec<Analysed>,
}

/// A file of the folder when it was last read.
#[derive(Debug)]
struct KnownFile {
    /// `None` if the file may change without a new stamp, so that it is read again.
    stamp: Option<Stamp>,
    /// The entry, or why the file is skipped.
    slot: Result<Slot, String>,
}

#[derive(Debug)]
pub(crate) struct Entries {
    folder: PathBuf,
    /// Why the folder cannot be used.
    trouble: Option<String>,
    files: BTreeMap<String, KnownFile>,
    /// The file that counts for each name and sender.
    winners: BTreeMap<(String, String), String>,
    per_sender: HashMap<String, usize>,
    index: Index,
    /// For each document: its file, and the number of the passage in the entry.
    documents: Vec<(String, usize)>,
}

impl Entries {
    /// Creates the state of a folder; `refresh` reads it.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            trouble: None,
            files: BTreeMap::new(),
            winners: BTreeMap::new(),
            per_sender: HashMap::new(),
            index: Index::new(),
            documents: Vec::new(),
        }
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// The entry of a document, and the number of the passage in it.
    pub(crate) fn of_doc(&self, doc: DocId) -> Option<(&Slot, usize)> {
        let (file, passage) = self.documents.get(doc as usize)?;
        Some((self.slot(file)?, *passage))
    }

    fn slot(&self, file: &str) -> Option<&Slot> {
        self.files.get(file)?.slot.as_ref().ok()
    }

    /// All entries, by name.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.winners.values().filter_map(|file| self.slot(file))
    }

    /// The entries with a name, by sender.
    pub(crate) fn named(&self, name: &str) -> Vec<&Slot> {
        let from = (name.to_owned(), String::new());
        let named = self.winners.range(from..);
        let named = named.take_while(|((other, _), _)| other == name);
        named.filter_map(|(_, file)| self.slot(file)).collect()
    }

    /// Number of a sender's entries.
    pub(crate) fn count_of(&self, sender: &str) -> usize {
        self.per_sender.get(sender).copied().unwrap_or_default()
    }

    /// Skipped files, with the reasons.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let warnings = self.files.iter().filter_map(|(file, known)| {
            let reason = match &known.slot {
                Err(reason) => reason.clone(),
                Ok(slot) => {
                    let Slot { name, sender, .. } = slot;
                    let winner = self.winners.get(&(name.clone(), sender.clone()));
                    let other = winner.filter(|winner| *winner != file)?;
                    format!("has the name {name:?}, as {other} does, which takes precedence")
                }
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

    /// Writes an entry to a file, or to a new one for `None`.
    pub(crate) fn write(&mut self, entry: &Entry, file: Option<&str>) -> Result<(), Error> {
        let text = format::render(entry);
        let file = match file {
            Some(file) => {
                self.write_file(file, &text, Existing::Replace)?;
                file.to_owned()
            }
            None => self.write_new(entry, &text)?,
        };
        self.read_again(&file);
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
        self.read_again(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
