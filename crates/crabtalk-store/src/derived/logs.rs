//! The table of logs: their names, conversations and times of change.
//!
//! All operations but [`LogTable::touch`] block, and belong in the blocking pool.

use super::turns;
use crate::db::Database;
use crate::name;
use crabtalk_domain::ConversationKey;
use crabtalk_domain::records::Error;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A handle to the table. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LogTable(pub(super) Database);

/// A log, and the conversation that line 1 named when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogRow {
    pub(crate) name: String,
    /// Agent and sender.
    pub(crate) pair: Option<(String, String)>,
}

/// A log that may have changed since its last check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) name: String,
    pub(crate) modified: Option<SystemTime>,
    /// Whether line 1 has been read.
    pub(crate) is_read: bool,
    touched: i64,
}

/// The result of checking a log.
#[derive(Debug)]
pub(crate) struct CheckedLog {
    pub(crate) log: Changed,
    /// Time of the last change; `None` if the log does not exist.
    pub(crate) modified: Option<SystemTime>,
    /// Whether another program changed the log, so that all of it must be reindexed.
    pub(crate) is_foreign: bool,
    /// Agent and sender if line 1 was read; the inner value is `None` if it names none.
    pub(crate) read: Option<Option<(String, String)>>,
}

impl LogTable {
    /// Time of the folder's last change that the table reflects.
    pub(crate) fn folder(&self) -> Result<Option<SystemTime>, Error> {
        let nanos: Option<i64> = self.0.read_now(|c| {
            let mut rows = c.prepare_cached("SELECT modified FROM log_folder")?;
            rows.query_row([], |row| row.get(0)).optional()
        })?;
        Ok(nanos.map(time))
    }

    /// Replaces the names by those of a folder in this state.
    pub(crate) fn set_names(
        &self,
        names: Vec<String>,
        state: Option<SystemTime>,
    ) -> Result<(), Error> {
        self.0.write_now(move |c| {
            let mut known: HashSet<String> = names_of(c)?.into_iter().collect();
            for name in &names {
                if !known.remove(name) {
                    add(c, name, None)?;
                }
            }
            for gone in &known {
                remove(c, gone)?;
            }
            set_folder(c, state)
        })
    }

    /// All names.
    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        self.0.read_now(names_of)
    }

    /// Logs whose names follow the rule and have this prefix when folded.
    pub(crate) fn with_prefix(&self, prefix: &str) -> Result<Vec<LogRow>, Error> {
        let from = prefix.to_owned();
        // Folded names are ASCII.
        let upto = format!("{prefix}\x7f");
        self.0.read_now(move |c| {
            let mut rows = c.prepare_cached(
                "SELECT name, agent, sender FROM log
                 WHERE follows_rule = 1 AND sort_key >= ?1 AND sort_key < ?2 ORDER BY sort_key",
            )?;
            rows.query_map([from, upto], log_row)?.collect()
        })
    }

    /// Logs whose names do not follow the rule.
    pub(crate) fn strays(&self) -> Result<Vec<LogRow>, Error> {
        self.0.read_now(|c| {
            let mut rows =
                c.prepare_cached("SELECT name, agent, sender FROM log WHERE follows_rule = 0")?;
            rows.query_map([], log_row)?.collect()
        })
    }

    /// Names of logs whose line 1 was read, after all queued changes.
    pub(crate) fn read_names(&self) -> Result<HashSet<String>, Error> {
        self.0.write_now(|c| {
            let mut rows = c.prepare_cached("SELECT name FROM log WHERE agent IS NOT NULL")?;
            rows.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// Adds a new log, and sets the folder's state.
    pub(crate) fn insert(
        &self,
        name: &str,
        key: &ConversationKey,
        state: Option<SystemTime>,
    ) -> Result<(), Error> {
        let (name, pair) = (name.to_owned(), pair_of(key));
        self.0.write_now(move |c| {
            add(c, &name, Some(&pair))?;
            set_folder(c, state)
        })
    }

    /// Removes a deleted log, and sets the folder's state.
    pub(crate) fn remove(&self, name: &str, state: Option<SystemTime>) -> Result<(), Error> {
        let name = name.to_owned();
        self.0.write_now(move |c| {
            remove(c, &name)?;
            set_folder(c, state)
        })
    }

    /// Renames a log, and sets the folder's state.
    pub(crate) fn rename(
        &self,
        old: &str,
        new: &str,
        key: &ConversationKey,
        state: Option<SystemTime>,
    ) -> Result<(), Error> {
        let (old, new, pair) = (old.to_owned(), new.to_owned(), pair_of(key));
        self.0.write_now(move |c| {
            remove(c, &new)?;
            let mut row = c.prepare_cached(
                "UPDATE log SET name = ?2, sort_key = ?3, follows_rule = ?4, agent = ?5,
                 sender = ?6 WHERE name = ?1",
            )?;
            let renamed = row.execute(params![
                old,
                new,
                name::sort_key(&new),
                name::follows_rule(&new),
                pair.0,
                pair.1
            ])?;
            if renamed == 0 {
                add(c, &new, Some(&pair))?;
            }
            set_folder(c, state)
        })
    }

    /// Records the conversation of a log, unless it is known.
    pub(crate) fn set_pair(&self, name: &str, key: &ConversationKey) {
        let (name, pair) = (name.to_owned(), pair_of(key));
        self.0.write_later(move |c| {
            let mut row = c.prepare_cached(
                "UPDATE log SET agent = ?2, sender = ?3 WHERE name = ?1 AND agent IS NULL",
            )?;
            row.execute([name, pair.0, pair.1])
        });
    }

    /// Records that a log is about to change. Does not block.
    pub(crate) fn touch(&self, name: &str) {
        let name = name.to_owned();
        self.0.write_later(move |c| {
            let mut row = c.prepare_cached(
                "UPDATE log SET modified = NULL, touched = touched + 1 WHERE name = ?1",
            )?;
            row.execute([name])
        });
    }

    /// Logs that may have changed, after all queued changes.
    pub(crate) fn changed(&self, most: u32) -> Result<Vec<Changed>, Error> {
        self.0.write_now(move |c| {
            let mut rows = c.prepare_cached(
                "SELECT name, modified, touched, agent IS NOT NULL FROM log
                 WHERE modified IS NULL LIMIT ?1",
            )?;
            rows.query_map([most], changed_row)?.collect()
        })
    }

    /// Logs whose names follow this one in order.
    pub(crate) fn behind(&self, name: &str, most: u32) -> Result<Vec<Changed>, Error> {
        let name = name.to_owned();
        self.0.read_now(move |c| {
            let mut rows = c.prepare_cached(
                "SELECT name, modified, touched, agent IS NOT NULL FROM log
                 WHERE name > ?1 ORDER BY name LIMIT ?2",
            )?;
            rows.query_map(params![name, most], changed_row)?.collect()
        })
    }

    /// Applies the results of checks, except for logs that changed in the meantime.
    pub(crate) fn looked(&self, found: Vec<CheckedLog>) -> Result<(), Error> {
        self.0.write_now(move |c| {
            let mut row = c.prepare_cached(
                "UPDATE log SET modified = ?3, agent = iif(?4, ?5, agent),
                 sender = iif(?4, ?6, sender), indexed = iif(?7, 0, indexed)
                 WHERE name = ?1 AND touched = ?2",
            )?;
            for CheckedLog {
                log,
                modified,
                is_foreign,
                read,
            } in found
            {
                let Some(modified) = modified else {
                    remove(c, &log.name)?;
                    continue;
                };
                let was_read = read.is_some();
                let (agent, sender) = read.flatten().unzip();
                row.execute(params![
                    log.name,
                    log.touched,
                    nanos(modified),
                    was_read,
                    agent,
                    sender,
                    is_foreign
                ])?;
            }
            Ok(())
        })
    }

    /// Names of logs, the last changed first.
    pub(crate) fn latest(
        &self,
        agent: Option<&str>,
        sender: Option<&str>,
        most: usize,
    ) -> Result<Vec<String>, Error> {
        let (agent, sender) = (agent.map(str::to_owned), sender.map(str::to_owned));
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.0.read_now(move |c| {
            let mut rows = c.prepare_cached(
                "SELECT name FROM log
                 WHERE (?1 IS NULL OR agent = ?1) AND (?2 IS NULL OR sender = ?2)
                 ORDER BY modified DESC, sort_key DESC LIMIT ?3",
            )?;
            rows.query_map(params![agent, sender, most], |row| row.get(0))?
                .collect()
        })
    }
}

fn pair_of(key: &ConversationKey) -> (String, String) {
    (key.agent.to_string(), key.sender.to_string())
}

fn names_of(c: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut rows = c.prepare_cached("SELECT name FROM log ORDER BY follows_rule DESC, sort_key")?;
    rows.query_map([], |row| row.get(0))?.collect()
}

fn add(c: &Connection, name: &str, pair: Option<&(String, String)>) -> rusqlite::Result<()> {
    remove(c, name)?;
    let mut row = c.prepare_cached(
        "INSERT INTO log (name, sort_key, follows_rule, agent, sender)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    row.execute(params![
        name,
        name::sort_key(name),
        name::follows_rule(name),
        pair.map(|pair| &pair.0),
        pair.map(|pair| &pair.1)
    ])?;
    Ok(())
}

fn remove(c: &Connection, name: &str) -> rusqlite::Result<()> {
    let mut row = c.prepare_cached("DELETE FROM log WHERE name = ?1 RETURNING id")?;
    let id: Option<i64> = row.query_row([name], |row| row.get(0)).optional()?;
    match id {
        Some(id) => turns::clear(c, id),
        None => Ok(()),
    }
}

fn set_folder(c: &Connection, state: Option<SystemTime>) -> rusqlite::Result<()> {
    let mut row = c.prepare_cached("INSERT OR REPLACE INTO log_folder VALUES (1, ?1)")?;
    row.execute([state.map(nanos)])?;
    Ok(())
}

fn log_row(row: &Row<'_>) -> rusqlite::Result<LogRow> {
    let (agent, sender): (Option<String>, Option<String>) = (row.get(1)?, row.get(2)?);
    Ok(LogRow {
        name: row.get(0)?,
        pair: agent.zip(sender),
    })
}

fn changed_row(row: &Row<'_>) -> rusqlite::Result<Changed> {
    let modified: Option<i64> = row.get(1)?;
    Ok(Changed {
        name: row.get(0)?,
        modified: modified.map(time),
        touched: row.get(2)?,
        is_read: row.get(3)?,
    })
}

pub(super) fn nanos(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

pub(super) fn time(nanos: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(nanos.max(0).unsigned_abs())
}
