//! TOML files that are lists of numbered tables: read as people write them, edited
//! with their comments kept.
//!
//! Invariants: a text that cannot be read is never written over; a file that changed
//! since it was taken is a conflict, not a casualty.

use crate::{Existing, if_there, read_text, write};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml_edit::{ArrayOfTables, Document, DocumentMut, Item, Table};

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TablesError {
    #[error("{}: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("{}:{line}: {why}", path.display())]
    Broken {
        path: PathBuf,
        line: usize,
        why: String,
    },
    #[error("{} was edited since it was read: reload, and do it again", .0.display())]
    Conflict(PathBuf),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// What kind of list a file is.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The key of its tables.
    pub key: &'static str,
    /// What the file begins with when the daemon makes it.
    pub head: &'static str,
    /// Bytes of the largest file that is read.
    pub limit: u64,
}

/// A file as it was read.
#[derive(Debug)]
pub struct Tables {
    /// The text; `None` if there is no file.
    pub text: Option<String>,
    /// What the text says.
    pub document: Document<String>,
    /// Where its lines end.
    ends: Vec<usize>,
}

impl Tables {
    /// The line of something in the document, from 1.
    #[must_use]
    pub fn line_of(&self, span: Option<Range<usize>>) -> usize {
        let at = span.map_or(0, |span| span.start);
        1 + self.ends.partition_point(|end| *end < at)
    }
}

/// A file, open for a change.
#[derive(Debug)]
pub struct TablesEdit {
    kind: Kind,
    path: PathBuf,
    before: Option<String>,
    document: DocumentMut,
}

impl Kind {
    /// Reads the whole file. One that does not exist is empty.
    ///
    /// # Errors
    /// A file that is no TOML, or no text at all.
    pub fn read(self, path: &Path) -> Result<Tables, TablesError> {
        let text = self.text(path)?;
        let document = parse(path, text.as_deref().unwrap_or_default())?;
        let bytes = document.raw().bytes().enumerate();
        let ends = bytes.filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at);
        Ok(Tables {
            ends: ends.collect(),
            text,
            document,
        })
    }

    /// Opens the file for a change. `taken` is the text that is in force.
    ///
    /// # Errors
    /// [`TablesError::Conflict`] if that is not what the file says.
    pub fn edit(self, path: &Path, taken: Option<&str>) -> Result<TablesEdit, TablesError> {
        let before = self.text(path)?;
        if before.as_deref() != taken {
            return Err(TablesError::Conflict(path.to_owned()));
        }
        let document = parse(path, before.as_deref().unwrap_or_default())?;
        Ok(TablesEdit {
            kind: self,
            path: path.to_owned(),
            before,
            document: document.into_mut(),
        })
    }

    fn text(self, path: &Path) -> Result<Option<String>, TablesError> {
        if_there(read_text(path, self.limit)).map_err(|error| TablesError::Unreadable {
            path: path.to_owned(),
            why: error.to_string(),
        })
    }
}

impl TablesEdit {
    /// Adds a table behind the others.
    ///
    /// # Errors
    /// Tables that are written otherwise than as `[[key]]`.
    pub fn add(&mut self, mut table: Table) -> Result<(), TablesError> {
        let key = self.kind.key;
        let item = self.document.entry(key);
        let item = item.or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let Some(tables) = item.as_array_of_tables_mut() else {
            return Err(TablesError::Unreadable {
                path: self.path.clone(),
                why: format!("{key} has to be written as [[{key}]]"),
            });
        };
        if self.before.is_none() && tables.is_empty() {
            table.decor_mut().set_prefix(self.kind.head);
        }
        tables.push(table);
        Ok(())
    }

    /// Removes every table of a number; whether there was one.
    pub fn remove(&mut self, id: u64) -> bool {
        let Some(tables) = self.tables() else {
            return false;
        };
        let before = tables.len();
        tables.retain(|table| id_of(table) != Some(id));
        before != tables.len()
    }

    /// Every table of a number: more than one where a person copied one and
    /// kept its number.
    pub fn numbered(&mut self, id: u64) -> impl Iterator<Item = &mut Table> {
        let tables = self.tables().into_iter().flat_map(ArrayOfTables::iter_mut);
        tables.filter(move |table| id_of(table) == Some(id))
    }

    /// How many tables there are.
    pub fn count(&mut self) -> usize {
        self.tables().map_or(0, |tables| tables.len())
    }

    fn tables(&mut self) -> Option<&mut ArrayOfTables> {
        self.document
            .get_mut(self.kind.key)?
            .as_array_of_tables_mut()
    }

    /// Replaces the file, if it is as it was when it was opened; answers what
    /// it says now.
    ///
    /// # Errors
    /// [`TablesError::Conflict`] if somebody was faster.
    pub fn save(self) -> Result<String, TablesError> {
        let now = self.document.to_string();
        if self.kind.text(&self.path)? != self.before {
            return Err(TablesError::Conflict(self.path));
        }
        match write(&self.path, now.as_bytes(), Existing::Replace) {
            Ok(()) => Ok(now),
            Err(error) => Err(TablesError::Write {
                path: self.path,
                error,
            }),
        }
    }
}

fn parse(path: &Path, text: &str) -> Result<Document<String>, TablesError> {
    Document::parse(text.to_owned()).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let before = text.as_bytes()[..at].iter();
        TablesError::Broken {
            path: path.to_owned(),
            line: 1 + before.filter(|byte| **byte == b'\n').count(),
            why: error.message().to_owned(),
        }
    })
}

/// The number of a table.
#[must_use]
pub fn id_of(table: &Table) -> Option<u64> {
    u64::try_from(table.get("id")?.as_integer()?).ok()
}
