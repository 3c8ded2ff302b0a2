//! The log of events in one SQLite database, from which a restart begins.
//!
//! Invariants: entries that are appended together are committed together, and are
//! on disk before anything is done about them; the whole state is stored from time
//! to time, so that a restart reads it and the few changes behind it; the log has a
//! bounded size; one NEXUS at a time has it.

use crate::clock::Ms;
pub use crate::config::Bounds;
use crate::world::{Entry, Patch};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use serde_json::Value;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The database in NEXUS's folder.
const DATABASE: &str = "nexus.db";

/// The log of earlier versions, which is imported once.
const EARLIER: &str = "events.jsonl";

const LOCK: &str = "lock";

/// A program that an ended NEXUS was about to start has a copy of the lock for a
/// moment: tries and the pause between them.
const LOCK_TRIES: (u32, Duration) = (50, Duration::from_millis(10));

/// How long a statement waits for another process, which only reads.
const BUSY: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS entry (n INTEGER PRIMARY KEY, at INTEGER NOT NULL,
        line TEXT NOT NULL, patch TEXT);
    CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY CHECK (id = 0),
        n INTEGER NOT NULL, at INTEGER NOT NULL, patch TEXT NOT NULL);";

/// Why the log cannot be used.
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
    #[error("the log {path} cannot be used: {source}; mend that, then start NEXUS again")]
    Database {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error(
        "entry #{n} in {path}: {source}; run the NEXUS that wrote it, or move the file away and \
         begin without what it holds"
    )]
    Broken {
        path: PathBuf,
        n: u64,
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
    bounds: Bounds,
    /// Bytes appended since the whole state was stored.
    appended: u64,
    _lock: File,
}

impl Journal {
    /// Opens the log of a folder, and gives each patch in it, with its entry's
    /// number, to `take`.
    pub fn open(
        folder: &Path,
        bounds: Bounds,
        mut take: impl FnMut(u64, Patch),
    ) -> Result<Self, Error> {
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(folder).map_err(failed("create", folder))?;
        let lock = lock(folder)?;
        crabtalk_files::sweep(folder);
        let path = folder.join(DATABASE);
        let mut options = File::options();
        let file = options.append(true).create(true).mode(0o600).open(&path);
        file.map_err(failed("open", &path))?;
        let database = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE);
        let database = database.map_err(of(&path))?;
        let mut journal = Self {
            database,
            path,
            bounds,
            appended: 0,
            _lock: lock,
        };
        let prepared = journal.prepare();
        prepared.map_err(of(&journal.path))?;
        journal.import(&folder.join(EARLIER))?;
        journal.appended = journal.restore(&mut take)?;
        Ok(journal)
    }

    fn prepare(&self) -> rusqlite::Result<()> {
        self.database.pragma_update(None, "journal_mode", "WAL")?;
        self.database.pragma_update(None, "synchronous", "FULL")?;
        self.database.execute_batch(SCHEMA)
    }

    /// Reads the last whole state and the changes behind it; how many bytes these
    /// have.
    fn restore(&self, take: &mut impl FnMut(u64, Patch)) -> Result<u64, Error> {
        let state = "SELECT n, patch FROM state";
        let state = self.database.query_row(state, [], row).optional();
        let state = state.map_err(of(&self.path))?;
        let since = state.as_ref().map_or(0, |(n, ..)| *n);
        if let Some((n, text)) = state {
            take(n, self.parsed(n, &text)?);
        }
        let mut bytes = 0;
        let changes = "SELECT n, patch FROM entry WHERE n > ?1 AND patch NOT NULL ORDER BY n";
        let mut changes = self.database.prepare(changes).map_err(of(&self.path))?;
        let rows = changes.query_map([signed(since)], row);
        for change in rows.map_err(of(&self.path))? {
            let (n, text) = change.map_err(of(&self.path))?;
            bytes += text.len() as u64;
            take(n, self.parsed(n, &text)?);
        }
        Ok(bytes)
    }

    fn parsed(&self, n: u64, text: &str) -> Result<Patch, Error> {
        serde_json::from_str(text).map_err(|source| Error::Broken {
            path: self.path.clone(),
            n,
            source,
        })
    }

    /// Appends entries and what changed with them, and waits until they are on disk.
    pub fn append(&mut self, entries: &[Entry], patch: &Patch) -> Result<(), Error> {
        let Some(last) = entries.last().map(|last| last.n) else {
            return Ok(());
        };
        let patch = json(patch);
        let append = |database: &mut Connection| {
            let transaction = database.transaction()?;
            for entry in entries {
                let patch = (entry.n == last).then_some(&patch);
                insert(&transaction, entry, patch)?;
            }
            transaction.commit()
        };
        append(&mut self.database).map_err(of(&self.path))?;
        self.appended += patch.len() as u64;
        Ok(())
    }

    /// Whether the whole state should be stored.
    pub fn is_full(&self) -> bool {
        self.appended >= self.bounds.page_bytes
    }

    /// Stores the whole state as of entry `n`, and removes the oldest entries beyond
    /// the bounds.
    pub fn compact(&mut self, n: u64, at: Ms, state: &Patch) -> Result<(), Error> {
        let kept = self
            .bounds
            .page_bytes
            .saturating_mul(self.bounds.pages as u64);
        let compact = |database: &mut Connection| {
            let transaction = database.transaction()?;
            transaction.execute(
                "INSERT OR REPLACE INTO state VALUES (0, ?1, ?2, ?3)",
                params![signed(n), signed(at), json(state)],
            )?;
            transaction.execute("UPDATE entry SET patch = NULL WHERE patch NOT NULL", [])?;
            transaction.execute(
                "DELETE FROM entry WHERE n <= (SELECT max(n) FROM (SELECT n, sum(length(line))
                    OVER (ORDER BY n DESC) AS bytes FROM entry) WHERE bytes > ?1)",
                [signed(kept)],
            )?;
            transaction.commit()
        };
        compact(&mut self.database).map_err(of(&self.path))?;
        self.appended = 0;
        Ok(())
    }

    /// The last entries behind `after`, in order, at most so many.
    pub fn latest(&self, after: u64, most: u32) -> Result<Vec<Entry>, Error> {
        let read = || {
            let mut statement = self.database.prepare_cached(
                "SELECT n, line FROM entry WHERE n > ?1 ORDER BY n DESC LIMIT ?2",
            )?;
            let lines = statement.query_map(params![signed(after), most], row)?;
            lines.collect::<rusqlite::Result<Vec<_>>>()
        };
        let lines = read().map_err(of(&self.path))?;
        let parsed = lines.iter().rev();
        // An entry of another version that cannot be read is left out.
        let parsed = parsed.filter_map(|(_, line)| serde_json::from_str(line).ok());
        Ok(parsed.collect())
    }

    /// Takes in the log of an earlier version, and puts it away.
    fn import(&mut self, earlier: &Path) -> Result<(), Error> {
        let file = match File::open(earlier) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed("open", earlier)(error)),
        };
        let import = |database: &mut Connection| {
            let transaction = database.transaction()?;
            for line in BufReader::new(file).lines().map_while(Result::ok) {
                // A crash may have cut the last line.
                let Ok(mut value) = serde_json::from_str::<Value>(&line) else {
                    break;
                };
                let patch = value.get_mut("set").map(|set| set.take().to_string());
                if let Ok(entry) = serde_json::from_value(value) {
                    insert(&transaction, &entry, patch.as_ref())?;
                }
            }
            transaction.commit()
        };
        import(&mut self.database).map_err(of(&self.path))?;
        let away = earlier.with_extension("imported");
        fs::rename(earlier, &away).map_err(failed("rename", earlier))
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

fn insert(database: &Connection, entry: &Entry, patch: Option<&String>) -> rusqlite::Result<()> {
    let mut statement =
        database.prepare_cached("INSERT OR REPLACE INTO entry VALUES (?1, ?2, ?3, ?4)")?;
    let done = statement.execute(params![
        signed(entry.n),
        signed(entry.at),
        json(entry),
        patch
    ]);
    done.map(drop)
}

fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<(u64, String)> {
    Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
}

/// SQLite has signed numbers alone.
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

/// A time in the form of RFC 3339.
pub fn time(at: Ms) -> String {
    let at = i64::try_from(at).ok();
    let at = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    at.map_or_else(String::new, |at| at.to_string())
}

/// Reads the entries of a log in order, also while a NEXUS appends to it.
pub fn entries(folder: &Path, mut take: impl FnMut(Entry)) -> Result<(), Error> {
    let path = folder.join(DATABASE);
    if !path.exists() {
        return Ok(());
    }
    let read = |take: &mut dyn FnMut(Entry)| {
        let database = connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut statement = database.prepare("SELECT line FROM entry ORDER BY n")?;
        for line in statement.query_map([], |row| row.get::<_, String>(0))? {
            // An entry of another version that cannot be read is left out.
            if let Ok(entry) = serde_json::from_str(&line?) {
                take(entry);
            }
        }
        Ok(())
    };
    read(&mut take).map_err(of(&path))
}

/// Lets the database not grow any more, as on a full disk.
#[cfg(test)]
pub(crate) fn fill_disk(journal: &Journal) {
    let limited = journal.database.pragma_update(None, "max_page_count", 1);
    limited.expect("a limit is accepted");
}

#[cfg(test)]
mod tests;
