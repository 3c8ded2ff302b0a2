//! TOML files with lists of numbered tables, parsed as people write them and edited with
//! comments kept.
//!
//! Invariants: an unreadable file is never overwritten; a file that changed since it was read
//! is a conflict.

use crate::{Existing, if_there, read_text, write};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml_edit::{ArrayOfTables, Document, DocumentMut, Item, Table};

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    /// The file is too large, not text, or has its tables in another form.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The problem.
        why: String,
    },
    /// A line is invalid, so that the whole file is refused.
    #[error("{}:{line}: {why}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The problem.
        why: String,
    },
    /// The file was edited at the same time, and that edit is not overwritten.
    #[error("{} was edited since it was read: reload, then try again", .0.display())]
    Conflict(PathBuf),
    /// The file could not be written, usually for lack of space or rights.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// The format of one kind of file.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The key of its tables.
    pub key: &'static str,
    /// The comment at the beginning of a new file.
    pub head: &'static str,
    /// Maximum bytes of a file.
    pub limit: u64,
}

/// The content of a file.
#[derive(Debug)]
pub struct Tables {
    /// The text; `None` if the file does not exist.
    pub text: Option<String>,
    /// The parsed text.
    pub document: Document<String>,
    /// Offsets of line ends.
    ends: Vec<usize>,
}

impl Tables {
    /// The line of a span in the document, from 1.
    #[must_use]
    pub fn line_of(&self, span: Option<Range<usize>>) -> usize {
        let at = span.map_or(0, |span| span.start);
        1 + self.ends.partition_point(|end| *end < at)
    }
}

/// A file that is being changed.
#[derive(Debug)]
pub struct TablesEdit {
    kind: Kind,
    path: PathBuf,
    before: Option<String>,
    document: DocumentMut,
}

impl Kind {
    /// Reads the whole file. A missing file is empty.
    ///
    /// # Errors
    /// The file is not TOML or not text.
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

    /// Opens the file for a change. `taken` is the text in force.
    ///
    /// # Errors
    /// [`TablesError::Conflict`] if the file has another text.
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
    /// Appends a table.
    ///
    /// # Errors
    /// The tables are not written as `[[key]]`.
    pub fn add(&mut self, mut table: Table) -> Result<(), TablesError> {
        let key = self.kind.key;
        let item = self.document.entry(key);
        let item = item.or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let Some(tables) = item.as_array_of_tables_mut() else {
            return Err(TablesError::Unreadable {
                path: self.path.clone(),
                why: format!("{key} must be written as [[{key}]]"),
            });
        };
        let is_first = tables.is_empty();
        if self.before.is_none() && is_first {
            table.decor_mut().set_prefix(self.kind.head);
        }
        tables.push(table);
        if is_first {
            self.trailing_above();
        }
        Ok(())
    }

    /// Removes every table with a number and the comment directly above it; returns whether
    /// there was one. Comments further above concern the file or other tables, and stay, as
    /// does the beginning of the file.
    pub fn remove(&mut self, id: u64) -> bool {
        let Some(tables) = self.tables() else {
            return false;
        };
        let before = tables.len();
        let mut above = String::new();
        for (index, table) in tables.iter_mut().enumerate() {
            let prefix = prefix_of(table);
            if id_of(table) == Some(id) {
                above.push_str(apart(&prefix, index == 0));
            } else if !above.is_empty() {
                let prefix = std::mem::take(&mut above) + &prefix;
                table.decor_mut().set_prefix(prefix);
            }
        }
        tables.retain(|table| id_of(table) != Some(id));
        let removed = before != tables.len();
        if !above.trim().is_empty() {
            let below = self.document.trailing().as_str().unwrap_or_default();
            let text = above + below;
            self.document.set_trailing(text);
        }
        removed
    }

    /// Keeps the text of a file without tables at its beginning.
    fn trailing_above(&mut self) {
        let text = self.document.trailing().as_str().unwrap_or_default();
        if text.trim().is_empty() {
            return;
        }
        let text = text.to_owned();
        self.document.set_trailing("");
        if let Some(first) = self.tables().and_then(|tables| tables.get_mut(0)) {
            let prefix = prefix_of(first);
            first.decor_mut().set_prefix(text + &prefix);
        }
    }

    /// Every table with a number: several if a person copied one and kept its number.
    pub fn numbered(&mut self, id: u64) -> impl Iterator<Item = &mut Table> {
        let tables = self.tables().into_iter().flat_map(ArrayOfTables::iter_mut);
        tables.filter(move |table| id_of(table) == Some(id))
    }

    fn tables(&mut self) -> Option<&mut ArrayOfTables> {
        self.document
            .get_mut(self.kind.key)?
            .as_array_of_tables_mut()
    }

    /// Replaces the file, if it has not changed since it was opened; returns its new text.
    ///
    /// # Errors
    /// [`TablesError::Conflict`] if the file was changed.
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

/// The text above a table.
fn prefix_of(table: &Table) -> String {
    let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str());
    // New tables are separated by a blank line, as `toml_edit` does.
    prefix.unwrap_or("\n").to_owned()
}

/// The part of the text above a table that does not concern it: everything at the beginning
/// of the file, else the part before the last blank line.
fn apart(prefix: &str, is_first: bool) -> &str {
    if is_first {
        return prefix;
    }
    let end = prefix.rfind("\n\n").map_or(0, |at| at + 1);
    &prefix[..end]
}

/// The `id` of a table; `None` if it is absent or not a number.
#[must_use]
pub fn id_of(table: &Table) -> Option<u64> {
    u64::try_from(table.get("id")?.as_integer()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml_edit::value;

    const KIND: Kind = Kind {
        key: "one",
        head: "# The head.\n",
        limit: 4096,
    };

    /// The text of a file after a change.
    fn changed(before: Option<&str>, change: impl FnOnce(&mut TablesEdit)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.toml");
        if let Some(text) = before {
            std::fs::write(&path, text).unwrap();
        }
        let mut edit = KIND.edit(&path, before).unwrap();
        change(&mut edit);
        edit.save().unwrap()
    }

    fn table(id: i64) -> Table {
        let mut table = Table::new();
        table.insert("id", value(id));
        table
    }

    #[test]
    fn removal_keeps_comments_of_other_tables() {
        let text = "# The head.\n[[one]]\nid = 1\n\n# Of both.\n\n# Of the second.\n[[one]]\nid = 2\n\n\
             # Of the third.\n[[one]]\nid = 3\n# The end.\n";
        let without = |id| {
            changed(Some(text), |edit| {
                assert!(edit.remove(id));
            })
        };
        let first = without(1);
        assert!(first.starts_with("# The head.\n") && first.contains("# Of the second."));
        let second = without(2);
        assert!(
            second.contains("# Of both.") && !second.contains("# Of the second."),
            "{second}"
        );
        assert!(second.contains("# Of the third.\n[[one]]"), "{second}");
        let third = without(3);
        assert!(!third.contains("# Of the third.") && third.ends_with("# The end.\n"));
    }

    #[test]
    fn head_stays_when_tables_are_removed_and_added() {
        let made = changed(None, |edit| edit.add(table(1)).unwrap());
        assert_eq!(made, "# The head.\n[[one]]\nid = 1\n");
        let empty = changed(Some(&made), |edit| {
            edit.remove(1);
        });
        assert_eq!(empty, "# The head.\n");
        let again = changed(Some(&empty), |edit| {
            edit.add(table(2)).unwrap();
            edit.add(table(3)).unwrap();
        });
        assert!(again.starts_with("# The head.\n"), "{again}");
        assert!(again.find("id = 2") < again.find("id = 3"), "{again}");
        assert_eq!(again.matches("# The head.").count(), 1, "{again}");
    }
}
