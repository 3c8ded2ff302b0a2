//! `crons.toml`: read as people write it, edited with their comments kept.
//!
//! Invariants: a broken entry costs no other; a text that cannot be read is
//! never written over; a file that changed since it was taken is a conflict,
//! not a casualty.

use crate::entry::{Draft, Entry};
use crabtalk_files::Existing;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use toml_edit::{ArrayOfTables, Document, DocumentMut, Item, Table, Value};

/// Largest file: ten thousand entries with a prompt of some lines each.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The key of entries.
const ENTRIES: &str = "cron";

/// What the file begins with when the daemon makes it.
const HEAD: &str = "# Entries that start runs on a schedule. `crabtalk cron` lists and changes them;\n\
     # they may be edited by hand too, and count after `crabtalk daemon reload`.\n";

/// Why the file was not read or written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FileError {
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

/// Something in the file that is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where, from 1.
    pub line: usize,
    /// Which entry, if it has a number.
    pub id: Option<u64>,
    /// What is wrong, and what would be right.
    pub why: String,
    /// What it says, as far as that can be told.
    pub draft: Draft,
}

/// What the file says.
#[derive(Debug, Default)]
pub struct Read {
    /// Entries that may be scheduled.
    pub entries: Vec<Entry>,
    /// What is not taken.
    pub findings: Vec<Finding>,
    /// The text; `None` if there is no file.
    pub text: Option<String>,
}

/// What entries are checked against.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The agent of entries that name none.
    pub default_agent: &'a str,
    /// The zone of entries that name none.
    pub local: &'a TimeZone,
    /// Now.
    pub now: Timestamp,
    /// Entries that are taken, at most.
    pub limit: usize,
}

/// The file, open for a change.
#[derive(Debug)]
pub struct CronFile {
    path: PathBuf,
    before: Option<String>,
    document: DocumentMut,
}

impl CronFile {
    /// Reads the whole file. One that does not exist is empty.
    ///
    /// # Errors
    /// A file that is no TOML, or no text at all.
    pub fn read(path: &Path, around: Surroundings<'_>) -> Result<Read, FileError> {
        let text = text(path)?;
        let document = parse(path, text.as_deref().unwrap_or_default())?;
        let raw = document.raw().bytes().enumerate();
        let ends = raw.filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at);
        let ends: Vec<usize> = ends.collect();
        let line_of = |span: Option<std::ops::Range<usize>>| {
            let at = span.map_or(0, |span| span.start);
            1 + ends.partition_point(|end| *end < at)
        };
        let mut read = Read {
            text,
            ..Read::default()
        };
        let mut ids = HashSet::new();
        for (key, item) in document.as_table().iter() {
            let Some(tables) = item.as_array_of_tables().filter(|_| key == ENTRIES) else {
                read.findings.push(Finding {
                    line: line_of(item.span()),
                    id: None,
                    why: format!("{key:.64?} is unknown: entries are [[{ENTRIES}]]"),
                    draft: Draft::default(),
                });
                continue;
            };
            for table in tables {
                let line = line_of(table.span());
                let (draft, problem) = draft(table);
                let id = Some(draft.id).filter(|id| *id > 0);
                let taken = problem.and_then(|()| {
                    let id = id.ok_or("it has no id: give it a number that no entry has had")?;
                    if read.entries.len() >= around.limit {
                        return Err(format!(
                            "there are more than {} entries, the limit ([limits] crons)",
                            around.limit
                        ));
                    }
                    if !ids.insert(id) {
                        return Err(format!("another entry has the id {id}"));
                    }
                    let draft = draft.clone();
                    let checked = draft.check(around.default_agent, around.local, around.now);
                    checked.map_err(|error| error.to_string())
                });
                match taken {
                    Ok(entry) => read.entries.push(entry),
                    Err(why) => read.findings.push(Finding {
                        line,
                        id,
                        why,
                        draft,
                    }),
                }
            }
        }
        Ok(read)
    }

    /// Opens the file for a change. `taken` is the text that is in force.
    ///
    /// # Errors
    /// [`FileError::Conflict`] if that is not what the file says.
    pub fn open(path: &Path, taken: Option<&str>) -> Result<Self, FileError> {
        let before = text(path)?;
        if before.as_deref() != taken {
            return Err(FileError::Conflict(path.to_owned()));
        }
        let document = parse(path, before.as_deref().unwrap_or_default())?;
        Ok(Self {
            path: path.to_owned(),
            before,
            document: document.into_mut(),
        })
    }

    /// Adds an entry behind the others.
    ///
    /// # Errors
    /// Entries that are written otherwise than as `[[cron]]`.
    pub fn add(&mut self, entry: &Entry) -> Result<(), FileError> {
        let item = self
            .document
            .entry(ENTRIES)
            .or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let Some(tables) = item.as_array_of_tables_mut() else {
            return Err(FileError::Unreadable {
                path: self.path.clone(),
                why: format!("{ENTRIES} has to be written as [[{ENTRIES}]]"),
            });
        };
        let mut table = table(&entry.draft);
        if self.before.is_none() && tables.is_empty() {
            table.decor_mut().set_prefix(HEAD);
        }
        tables.push(table);
        Ok(())
    }

    /// Removes every entry of a number; whether there was one.
    pub fn remove(&mut self, id: u64) -> bool {
        let Some(tables) = self.entries() else {
            return false;
        };
        let before = tables.len();
        tables.retain(|table| id_of(table) != Some(id));
        before != tables.len()
    }

    /// Pauses an entry, or lets it go on; whether there is one.
    pub fn pause(&mut self, id: u64, paused: bool) -> bool {
        let Some(tables) = self.entries() else {
            return false;
        };
        let Some(table) = tables.iter_mut().find(|table| id_of(table) == Some(id)) else {
            return false;
        };
        match table.get_mut("paused") {
            Some(Item::Value(old)) => {
                let mut new = Value::from(paused);
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            _ if paused => drop(table.insert("paused", paused.into())),
            _ => {}
        }
        true
    }

    fn entries(&mut self) -> Option<&mut ArrayOfTables> {
        self.document.get_mut(ENTRIES)?.as_array_of_tables_mut()
    }

    /// Replaces the file, if it is as it was when it was opened; answers what
    /// it says now.
    ///
    /// # Errors
    /// [`FileError::Conflict`] if somebody was faster.
    pub fn save(self) -> Result<String, FileError> {
        let now = self.document.to_string();
        if text(&self.path)? != self.before {
            return Err(FileError::Conflict(self.path));
        }
        let written = crabtalk_files::write(&self.path, now.as_bytes(), Existing::Replace);
        match written {
            Ok(()) => Ok(now),
            Err(error) => Err(FileError::Write {
                path: self.path,
                error,
            }),
        }
    }
}

fn text(path: &Path) -> Result<Option<String>, FileError> {
    let read = crabtalk_files::if_there(crabtalk_files::read_text(path, MAX_BYTES));
    read.map_err(|error| FileError::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
    })
}

fn parse(path: &Path, text: &str) -> Result<Document<String>, FileError> {
    Document::parse(text.to_owned()).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let before = text.as_bytes()[..at].iter();
        FileError::Broken {
            path: path.to_owned(),
            line: 1 + before.filter(|byte| **byte == b'\n').count(),
            why: error.message().to_owned(),
        }
    })
}

fn id_of(table: &Table) -> Option<u64> {
    u64::try_from(table.get("id")?.as_integer()?).ok()
}

/// The texts of a draft under their keys, in the order in which they are
/// written.
macro_rules! texts {
    ($draft:expr) => {
        [
            ("schedule", &mut $draft.schedule),
            ("at", &mut $draft.at),
            ("zone", &mut $draft.zone),
            ("agent", &mut $draft.agent),
            ("sender", &mut $draft.sender),
            ("skill", &mut $draft.skill),
            ("args", &mut $draft.args),
            ("content", &mut $draft.content),
            ("cwd", &mut $draft.cwd),
            ("quiet_start", &mut $draft.quiet_start),
            ("quiet_end", &mut $draft.quiet_end),
            ("missed", &mut $draft.missed),
            ("asks", &mut $draft.asks),
            ("notify", &mut $draft.notify),
            ("by", &mut $draft.by),
        ]
    };
}

/// What a table says, and the first thing in it that means nothing.
fn draft(table: &Table) -> (Draft, Result<(), String>) {
    let mut draft = Draft::default();
    let mut problem = Ok(());
    for (key, item) in table.iter() {
        let read = match key {
            "id" => match item.as_integer().map(u64::try_from) {
                Some(Ok(id)) if id > 0 => {
                    draft.id = id;
                    Ok(())
                }
                _ => Err("id is no number from 1 on".to_owned()),
            },
            "chain" => match item.as_integer().map(u32::try_from) {
                Some(Ok(chain)) => {
                    draft.chain = chain;
                    Ok(())
                }
                _ => Err("chain is no number".to_owned()),
            },
            "once" | "paused" | "by_agent" => {
                let flag = match key {
                    "once" => &mut draft.once,
                    "paused" => &mut draft.paused,
                    _ => &mut draft.by_agent,
                };
                match item.as_bool() {
                    Some(value) => {
                        *flag = value;
                        Ok(())
                    }
                    None => Err(format!("{key} is neither true nor false")),
                }
            }
            _ => {
                let mut texts = texts!(draft);
                let known = texts.iter_mut().find(|(name, _)| *name == key);
                // A date and time of TOML is as good as its text.
                let text = item.as_str().map(str::to_owned);
                let text = text.or_else(|| item.as_datetime().map(ToString::to_string));
                match (known, text) {
                    (Some((_, to)), Some(text)) => {
                        **to = text;
                        Ok(())
                    }
                    (Some(_), None) => Err(format!("{key} is no text: put it into quotes")),
                    (None, _) => Err(format!("the key {key:.64?} is unknown")),
                }
            }
        };
        problem = problem.and(read);
    }
    (draft, problem)
}

fn table(draft: &Draft) -> Table {
    let mut draft = draft.clone();
    let mut table = Table::new();
    let id = i64::try_from(draft.id).unwrap_or(i64::MAX);
    table.insert("id", id.into());
    for (key, flag) in [
        ("once", draft.once),
        ("paused", draft.paused),
        ("by_agent", draft.by_agent),
    ] {
        if flag {
            table.insert(key, flag.into());
        }
    }
    if draft.chain > 0 {
        table.insert("chain", i64::from(draft.chain).into());
    }
    for (key, text) in texts!(draft) {
        if !text.is_empty() {
            table.insert(key, text.as_str().into());
        }
    }
    table
}

#[cfg(test)]
mod tests;
