//! Finds the log files of a pair without reading other files, and the most recently
//! changed logs.
//!
//! Invariants: the folder is listed only on demand and only after it changed; a file
//! belongs to a pair only if its line 1 names the pair; names that differ only in case
//! count as equal and are not reused; without the database every lookup lists the
//! folder.

mod change;
mod fill;
mod latest;

pub(crate) use change::{name_beside, numbered};

use crate::derived::{LogRow, LogTable};
use crate::error::unreadable;
use crate::fs::{Access, FileLayer};
use crate::name;
use crate::tail::{HeadRead, read_head};
use crabtalk_domain::ConversationKey;
use crabtalk_domain::records;
use crabtalk_domain::storage::Error;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Number of touched logs to remember; above it, logs are recorded again.
const MAX_TOUCHED: usize = 4096;

/// The logs in the sessions folder.
pub(crate) struct Index {
    names: Mutex<Names>,
    table: LogTable,
    /// Logs that the table already has as changed.
    touched: Mutex<HashSet<String>>,
    /// Locked during a step of the search index.
    filling: Mutex<()>,
}

pub(crate) struct Names {
    fs: Arc<dyn FileLayer>,
    dir: PathBuf,
    table: LogTable,
    /// State of the folder that the table reflects.
    seen: Option<SystemTime>,
    /// The name after which the current pass has not checked logs.
    unchecked: Option<String>,
    /// Whether all logs were checked since the daemon started.
    was_checked: bool,
}

/// A file of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PairFile {
    pub(crate) name: String,
    pub(crate) seq: u32,
}

/// The files whose names fit a pair.
#[derive(Default)]
pub(crate) struct Files {
    /// Highest seq first.
    pub(crate) of_pair: Vec<PairFile>,
    /// A file whose line 1 cannot be read.
    broken: Option<(PairFile, String)>,
    /// A file whose creation was interrupted within line 1.
    abandoned: Option<PairFile>,
}

impl Files {
    /// The file that is the conversation, if there is one. An unreadable file with a higher
    /// number is an error, since it may be the conversation.
    pub(crate) fn current(&self, dir: &Path) -> Result<Option<&PairFile>, Error> {
        let current = self.of_pair.first();
        match &self.broken {
            Some((found, reason)) if current.is_none_or(|c| c.seq < found.seq) => {
                Err(Error::Broken {
                    log: dir.join(&found.name).display().to_string(),
                    line: 1,
                    reason: reason.clone(),
                })
            }
            _ => Ok(current),
        }
    }
}

impl Index {
    pub(crate) fn new(fs: Arc<dyn FileLayer>, dir: PathBuf, table: LogTable) -> Self {
        let names = Names {
            fs,
            dir,
            table: table.clone(),
            seen: None,
            unchecked: Some(String::new()),
            was_checked: false,
        };
        Self {
            names: Mutex::new(names),
            table,
            touched: Mutex::default(),
            filling: Mutex::default(),
        }
    }

    /// After a panic the table may be wrong until the next change of the folder.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a log is about to be written. Does not block.
    pub(crate) fn touch(&self, path: &Path) {
        // The store never creates a name that is not UTF-8.
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return;
        };
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        if touched.contains(name) {
            return;
        }
        if touched.len() >= MAX_TOUCHED {
            touched.clear();
        }
        touched.insert(name.to_owned());
        self.table.touch(name);
    }

    /// Makes the next touch of each log record it again.
    fn forget_touched(&self) {
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        touched.clear();
    }

    /// The table of logs.
    pub(crate) fn table(&self) -> &LogTable {
        &self.table
    }
}

impl Names {
    /// Lists the folder if it changed.
    fn refresh(&mut self) -> Result<(), Error> {
        // Read before the listing, so that the next lookup notices a concurrent change.
        let changed = self.fs.changed(&self.dir).map_err(|e| self.failed(e))?;
        if changed.is_some() && changed == self.seen {
            return Ok(());
        }
        let known = self.seen.is_none() && self.table.folder().is_ok_and(|of| of == changed);
        if !known || changed.is_none() {
            let names = self.list()?;
            // Another program changed the folder, and may have replaced logs too.
            self.unchecked = Some(String::new());
            if let Err(error) = self.table.set_names(names, changed) {
                return self.without_table(&error);
            }
        }
        self.seen = changed;
        Ok(())
    }

    /// The names in the folder.
    fn list(&self) -> Result<Vec<String>, Error> {
        let mut names = self.fs.names(&self.dir).map_err(|e| self.failed(e))?;
        names.retain(|name| name::is_bare(name));
        Ok(names)
    }

    fn failed(&self, error: io::Error) -> Error {
        unreadable("list", &self.dir, error)
    }

    /// Continues without the table, which can be rebuilt at any time.
    fn without_table(&mut self, error: &records::Error) -> Result<(), Error> {
        tracing::warn!(%error, "listing conversations without the index");
        self.seen = None;
        Ok(())
    }

    /// Makes the next lookup list the folder, since an expected name is missing.
    pub(crate) fn list_again(&mut self) {
        self.seen = Some(SystemTime::UNIX_EPOCH);
    }

    /// Before a change by the store: whether the table matches the folder.
    fn is_current(&self) -> bool {
        self.fs
            .changed(&self.dir)
            .is_ok_and(|now| now.is_some() && now == self.seen)
    }

    /// After a change by the store: `note` updates the table with the folder's new state.
    fn changed(
        &mut self,
        was_current: bool,
        note: impl FnOnce(&LogTable, Option<SystemTime>) -> Result<(), records::Error>,
    ) {
        let state = match was_current {
            true => self.fs.changed(&self.dir).ok().flatten(),
            // Another program also changed the folder: list it on the next lookup.
            false => Some(SystemTime::UNIX_EPOCH),
        };
        match note(&self.table, state) {
            Ok(()) => self.seen = state,
            Err(error) => {
                tracing::warn!(%error, "the index of conversations is out of date");
                self.list_again();
            }
        }
    }

    /// All logs.
    pub(crate) fn all(&mut self) -> Result<Vec<String>, Error> {
        self.refresh()?;
        self.table.names().or_else(|_| self.list())
    }

    /// Logs whose names follow the rule and have this prefix when folded.
    fn with_prefix(&self, prefix: &str) -> Result<Vec<LogRow>, Error> {
        self.table.with_prefix(prefix).or_else(|_| {
            self.rows(|name| name::follows_rule(name) && name::sort_key(name).starts_with(prefix))
        })
    }

    fn strays(&self) -> Result<Vec<LogRow>, Error> {
        let strays = self.table.strays();
        strays.or_else(|_| self.rows(|name| !name::follows_rule(name)))
    }

    /// Lists the folder as rows.
    fn rows(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<LogRow>, Error> {
        let names = self.list()?.into_iter().filter(|name| is_wanted(name));
        Ok(names.map(|name| LogRow { name, pair: None }).collect())
    }

    /// The files of a pair.
    pub(crate) fn find(&mut self, key: &ConversationKey) -> Result<Files, Error> {
        self.refresh()?;
        // A `_` follows in the name, so that `tg:1` does not match `tg:10`.
        let prefix = name::folded_prefix(key) + "-";
        let mut files = Files::default();
        for row in self.with_prefix(&prefix)? {
            if let Some(parts) = name::parts(&row.name, key) {
                let seq = parts.seq;
                self.look(key, row, seq, &mut files)?;
            }
        }
        for row in self.strays()? {
            self.look(key, row, 0, &mut files)?;
        }
        files
            .of_pair
            .sort_by(|a, b| b.seq.cmp(&a.seq).then_with(|| b.name.cmp(&a.name)));
        Ok(files)
    }

    /// Classifies a file by line 1, which is read unless it is known to name another pair.
    fn look(
        &self,
        key: &ConversationKey,
        row: LogRow,
        seq: u32,
        files: &mut Files,
    ) -> Result<(), Error> {
        let known = row.pair.as_ref();
        let is_other = |(agent, sender): &(String, String)| {
            agent != key.agent.as_str() || sender != key.sender.as_str()
        };
        if known.is_some_and(is_other) {
            return Ok(());
        }
        let path = self.dir.join(&row.name);
        let found = PairFile {
            name: row.name,
            seq,
        };
        let opened = self.fs.open(&path, Access::Read);
        match opened.and_then(|file| read_head(&*file)) {
            Ok(HeadRead::Good { head, .. }) => {
                if let Some(own) = head.key().filter(|_| known.is_none()) {
                    self.table.set_pair(&found.name, &own);
                }
                if head.is_of(key) {
                    files.of_pair.push(found);
                }
            }
            // An unreadable file with another name may belong to any pair.
            Ok(HeadRead::Torn | HeadRead::Broken(_)) if !name::follows_rule(&found.name) => {}
            Ok(HeadRead::Torn) => files.abandoned = Some(found),
            Ok(HeadRead::Broken(reason)) => {
                let broken = files.broken.as_ref();
                if broken.is_none_or(|(other, _)| other.seq < found.seq) {
                    files.broken = Some((found, reason));
                }
            }
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
                ) => {}
            Err(e) => return Err(unreadable("read", &path, e)),
        }
        Ok(())
    }

    /// Removes the names of logs whose line 1 has been read and is valid.
    pub(crate) fn retain_unread(&mut self, names: &mut Vec<String>) -> Result<(), Error> {
        self.refresh()?;
        if let Ok(read) = self.table.read_names() {
            names.retain(|name| !read.contains(&**name));
        }
        Ok(())
    }

    /// Records the conversation of a log, which line 1 has just named.
    pub(crate) fn note_pair(&self, file: &str, key: &ConversationKey) {
        self.table.set_pair(file, key);
    }
}
