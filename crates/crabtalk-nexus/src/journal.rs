//! The log of events and the state of the team, in one SQLite database.
//!
//! Invariants: entries and the changed rows of the state are committed
//! together, and are on disk before any effect; the log has a bounded
//! size; one NEXUS at a time opens it.

use crate::clock::Ms;
use crate::world::{Entry, Patch, World};
use rusqlite::{Connection, OpenFlags, params};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The database in NEXUS's folder.
const DATABASE: &str = "nexus.db";

const LOCK: &str = "lock";

/// Attempts to take the lock, and the pause between them: a program that an ended NEXUS was about
/// to start has a copy of the lock for a moment.
const LOCK_TRIES: (u32, Duration) = (50, Duration::from_millis(10));

/// How long a statement waits for another process, which only reads.
const BUSY: Duration = Duration::from_secs(5);

/// Maximum bytes of entries: some days of a working team.
const KEPT_BYTES: u64 = 128 * 1024 * 1024;

/// Bytes of entries between two removals of old entries.
const PRUNED_EVERY: u64 = 8 * 1024 * 1024;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS entry (n INTEGER PRIMARY KEY, at INTEGER NOT NULL,
        line TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT NOT NULL);";

/// The reason why the log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("another NEXUS runs in {}", .0.display())]
    Taken(PathBuf),
    #[error("cannot {what} {path}: {source}")]
    Io {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("the log {path} cannot be used: {source}; fix that, then start NEXUS again")]
    Database {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error(
        "{key} in {path}: {source}; run the NEXUS version that wrote it, or move the file away to \
         start without its state"
    )]
    Broken {
        path: PathBuf,
        key: String,
        source: serde_json::Error,
    },
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { what, path, source }
}

/// The log, open for appending.
#[derive(Debug)]
pub struct Journal {
    database: Connection,
    path: PathBuf,
    /// Bytes of entries appended since the last removal.
    appended: u64,
    _lock: File,
}

impl Journal {
    /// Opens the log of a folder, and restores the number of the last entry and the state
    /// into `world`.
    pub fn open(folder: &Path, world: &mut World) -> Result<Self, Error> {
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(folder).map_err(failed("create", folder))?;
        let lock = lock(folder)?;
        crabtalk_files::sweep(folder);
        let path = folder.join(DATABASE);
        let mut options = File::options();
        let file = options.append(true).create(true).mode(0o600).open(&path);
        file.map_err(failed("open", &path))?;
        let prepare = || {
            let database = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            database.pragma_update(None, "journal_mode", "WAL")?;
            database.pragma_update(None, "synchronous", "FULL")?;
            database.execute_batch(SCHEMA)?;
            Ok(database)
        };
        let mut journal = Self {
            database: prepare().map_err(of(&path))?,
            path,
            appended: 0,
            _lock: lock,
        };
        journal.restore(world)?;
        journal.prune(KEPT_BYTES)?;
        Ok(journal)
    }

    fn restore(&self, world: &mut World) -> Result<(), Error> {
        let read = || {
            let last = "SELECT coalesce(max(n), 0) FROM entry";
            let last = self
                .database
                .query_row(last, [], |row| row.get::<_, i64>(0))?;
            let mut rows = self.database.prepare("SELECT key, value FROM state")?;
            let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let rows = rows.collect::<rusqlite::Result<Vec<(String, String)>>>()?;
            Ok((last.cast_unsigned(), rows))
        };
        let (last, rows) = read().map_err(of(&self.path))?;
        world.go_on_behind(last);
        for (key, value) in rows {
            world
                .restore(&key, &value)
                .map_err(|source| Error::Broken {
                    path: self.path.clone(),
                    key,
                    source,
                })?;
        }
        Ok(())
    }

    /// Appends entries and the changes of the state, and waits until they are on disk.
    pub fn append(&mut self, entries: &[Entry], patch: &Patch) -> Result<(), Error> {
        if entries.is_empty() && patch.is_empty() {
            return Ok(());
        }
        let append = |database: &mut Connection| {
            let mut bytes = 0;
            let transaction = database.transaction()?;
            for entry in entries {
                let line = json(entry);
                bytes += line.len() as u64;
                transaction
                    .prepare_cached("INSERT INTO entry (n, at, line) VALUES (?1, ?2, ?3)")?
                    .execute(params![signed(entry.n), signed(entry.at), line])?;
            }
            for (key, value) in patch {
                match value {
                    Some(value) => transaction
                        .prepare_cached("INSERT OR REPLACE INTO state VALUES (?1, ?2)")?
                        .execute([key, value])?,
                    None => transaction.execute("DELETE FROM state WHERE key = ?1", [key])?,
                };
            }
            transaction.commit()?;
            Ok(bytes)
        };
        self.appended += append(&mut self.database).map_err(of(&self.path))?;
        if self.appended >= PRUNED_EVERY {
            self.prune(KEPT_BYTES)?;
        }
        Ok(())
    }

    /// Removes the oldest entries beyond `kept` bytes.
    fn prune(&mut self, kept: u64) -> Result<(), Error> {
        let prune = "DELETE FROM entry WHERE n <= (SELECT max(n) FROM (SELECT n,
            sum(length(line)) OVER (ORDER BY n DESC) AS bytes FROM entry) WHERE bytes > ?1)";
        let pruned = self.database.execute(prune, [signed(kept)]);
        pruned.map_err(of(&self.path))?;
        self.appended = 0;
        Ok(())
    }

    /// Up to `most` of the last entries after `after`, in order.
    pub fn latest(&self, after: u64, most: u32) -> Result<Vec<Entry>, Error> {
        let read = || {
            let mut statement = self
                .database
                .prepare_cached("SELECT line FROM entry WHERE n > ?1 ORDER BY n DESC LIMIT ?2")?;
            let lines = statement.query_map(params![signed(after), most], |row| row.get(0))?;
            lines.collect::<rusqlite::Result<Vec<String>>>()
        };
        let lines = read().map_err(of(&self.path))?;
        let parsed = lines.iter().rev();
        // Skip entries of other versions that cannot be parsed.
        let parsed = parsed.filter_map(|line| serde_json::from_str(line).ok());
        Ok(parsed.collect())
    }
}

fn of(path: &Path) -> impl FnOnce(rusqlite::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Database { path, source }
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let database = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    database.busy_timeout(BUSY)?;
    Ok(database)
}

/// SQLite has only signed integers.
fn signed(n: u64) -> i64 {
    n.cast_signed()
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data is JSON")
}

fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false).mode(0o600);
    let file = file.open(&path).map_err(failed("open", &path))?;
    let (tries, pause) = LOCK_TRIES;
    for _ in 0..tries {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(pause),
            Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
        }
    }
    Err(Error::Taken(folder.to_owned()))
}

/// Formats a time by RFC 3339.
pub fn time(at: Ms) -> String {
    let at = i64::try_from(at).ok();
    let at = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    at.map_or_else(String::new, |at| at.to_string())
}

/// Reads the entries of a log, latest first, until `take` returns false; works while a
/// NEXUS appends to it.
pub fn entries(folder: &Path, mut take: impl FnMut(Entry) -> bool) -> Result<(), Error> {
    let path = folder.join(DATABASE);
    if !path.exists() {
        return Ok(());
    }
    let mut read = || {
        let database = connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut statement = database.prepare("SELECT line FROM entry ORDER BY n DESC")?;
        for line in statement.query_map([], |row| row.get::<_, String>(0))? {
            // Skip entries of other versions that cannot be parsed.
            if let Ok(entry) = serde_json::from_str(&line?)
                && !take(entry)
            {
                break;
            }
        }
        Ok(())
    };
    read().map_err(of(&path))
}

/// Keeps the database from growing, to simulate a full disk.
#[cfg(test)]
pub(crate) fn fill_disk(journal: &Journal) {
    let limited = journal.database.pragma_update(None, "max_page_count", 1);
    limited.expect("a limit is accepted");
}

#[cfg(test)]
mod tests;
