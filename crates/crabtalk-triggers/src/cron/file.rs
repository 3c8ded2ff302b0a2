//! Reads and edits `crons.toml`, keeping comments.
//!
//! Invariants: a broken entry does not affect others; an unreadable file is never
//! overwritten; a concurrent change is a conflict.

use crate::cron::entry::{CronEntry, Draft};
use crabtalk_files::tables::{Kind, TablesEdit, TablesError};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::HashSet;
use std::path::Path;
use toml_edit::{Item, Table, Value};

/// Largest file: ten thousand entries with some lines of prompt each.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

const ENTRIES: &str = "cron";

/// The head of a file that the daemon creates.
const HEAD: &str = "# Entries that start runs on a schedule. `crabtalk cron` changes them.\n\
     # After an edit by hand, run `crabtalk daemon reload`.\n";

/// `[[cron]]` tables.
pub const CRONS: Kind = Kind {
    key: ENTRIES,
    head: HEAD,
    limit: MAX_BYTES,
};

/// An invalid part of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// The number of the entry, if it has one.
    pub id: Option<u64>,
    /// The error and the remedy.
    pub why: String,
    /// The readable part of its content.
    pub draft: Draft,
}

/// The content of the file.
#[derive(Debug, Default)]
pub struct Read {
    /// Valid entries.
    pub entries: Vec<CronEntry>,
    /// Invalid parts.
    pub findings: Vec<Finding>,
    /// The text; `None` if the file does not exist.
    pub text: Option<String>,
}

/// The context for checking entries.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The default agent.
    pub default_agent: &'a str,
    /// The default time zone.
    pub local: &'a TimeZone,
    /// The current time.
    pub now: Timestamp,
    /// Maximum number of entries.
    pub limit: usize,
}

/// Calls a macro with the texts of a draft and their keys, in the order of the file.
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

/// Reads the entries of the file; a missing file has none.
///
/// # Errors
///
/// The file cannot be read or is not TOML.
pub fn read_crons(path: &Path, around: Surroundings<'_>) -> Result<Read, TablesError> {
    let tables = CRONS.read(path)?;
    let line_of = |span| tables.line_of(span);
    let mut read = Read {
        text: tables.text.clone(),
        ..Read::default()
    };
    let mut ids = HashSet::new();
    for (key, item) in tables.document.as_table().iter() {
        let Some(entries) = item.as_array_of_tables().filter(|_| key == ENTRIES) else {
            read.findings.push(Finding {
                line: line_of(item.span()),
                id: None,
                why: format!("{key:.64?} is unknown: entries are [[{ENTRIES}]]"),
                draft: Draft::default(),
            });
            continue;
        };
        for table in entries {
            let line = line_of(table.span());
            let (draft, problem) = draft(table);
            let id = Some(draft.id).filter(|id| *id > 0);
            let taken = problem.and_then(|()| {
                let id = id.ok_or("it has no id: give it a number that was never used")?;
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

/// Pauses or resumes every entry with this id; `false` if there is none.
pub fn pause(file: &mut TablesEdit, id: u64, paused: bool) -> bool {
    let mut any = false;
    for table in file.numbered(id) {
        any = true;
        if paused || table.contains_key("paused") {
            set(table, "paused", Some(paused.into()));
        }
    }
    any
}

/// Writes the changed keys of an entry; `false` if there is none.
pub fn replace(file: &mut TablesEdit, entry: &CronEntry) -> bool {
    let mut draft = entry.draft.clone();
    let (once, by_agent, id) = (draft.once, draft.by_agent, draft.id);
    let chain = draft.chain;
    let mut any = false;
    for table in file.numbered(id) {
        any = true;
        for (key, text) in texts!(draft) {
            let known = table.get(key).and_then(Item::as_str).unwrap_or_default();
            if known != text.as_str() {
                set(table, key, (!text.is_empty()).then(|| text.as_str().into()));
            }
        }
        set(table, "once", once.then(|| once.into()));
        set(table, "by_agent", by_agent.then(|| by_agent.into()));
        set(table, "chain", (chain > 0).then(|| i64::from(chain).into()));
    }
    any
}

/// Replaces a value and keeps its comment.
fn set(table: &mut Table, key: &str, value: Option<Value>) {
    let Some(mut new) = value else {
        table.remove(key);
        return;
    };
    match table.get_mut(key) {
        Some(Item::Value(old)) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        _ => drop(table.insert(key, Item::Value(new))),
    }
}

/// The draft of a table and its first error.
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
                _ => Err("id must be a number from 1".to_owned()),
            },
            "chain" => match item.as_integer().map(u32::try_from) {
                Some(Ok(chain)) => {
                    draft.chain = chain;
                    Ok(())
                }
                _ => Err("chain must be a number".to_owned()),
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
                    None => Err(format!("{key} must be true or false")),
                }
            }
            _ => {
                let mut texts = texts!(draft);
                let known = texts.iter_mut().find(|(name, _)| *name == key);
                // Dates of TOML are converted to text.
                let text = item.as_str().map(str::to_owned);
                let text = text.or_else(|| item.as_datetime().map(ToString::to_string));
                match (known, text) {
                    (Some((_, to)), Some(text)) => {
                        **to = text;
                        Ok(())
                    }
                    (Some(_), None) => Err(format!("{key} must be a string in quotes")),
                    (None, _) => Err(format!("the key {key:.64?} is unknown")),
                }
            }
        };
        problem = problem.and(read);
    }
    (draft, problem)
}

/// Converts a draft to its table.
pub fn table(draft: &Draft) -> Table {
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
