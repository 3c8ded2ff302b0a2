//! The index: SQLite's full-text search, in `state/search/index.db`.
//!
//! Files are split into parts of some lines; each part is a row. The index does not store
//! text: hits are read from the file, so that a deleted or unreadable file is not shown.
//! Several programs may use the index concurrently. An index that is damaged or of another
//! version is rebuilt.

use crate::open::Stamp;
use crate::words::prepare;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Version of the tables; the index is rebuilt if it differs.
const VERSION: i64 = 1;

/// How long to wait for another program that is writing.
const BUSY: Duration = Duration::from_secs(10);

/// A part ends at the first line beyond one of these limits: about a screen.
const PART_LINES: usize = 40;
const PART_BYTES: usize = 4 * 1024;

/// The reason why the index cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// SQLite cannot use its file, usually for lack of permissions or space.
    #[error("the index in {path}: {source}")]
    Index {
        /// The file.
        path: String,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// An indexed file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is outside the searched folders, or looks like a secret.
    #[error("{0} is outside the searched folders; see `crabtalk-search list`")]
    Unknown(String),
    /// The query has no words.
    #[error("`{0}` contains no words to search for")]
    NoWords(String),
}

/// An open index.
#[derive(Debug)]
pub struct Index {
    pub(crate) connection: Connection,
    path: String,
}

/// A part of a file that matches a query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) path: Vec<u8>,
    /// Its first line, from 1, and its number of lines.
    pub(crate) line: usize,
    pub(crate) lines: usize,
    /// The score; higher is better.
    pub(crate) score: f64,
}

impl Index {
    /// Opens or creates the index in an existing folder.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("index.db");
        let shown = path.display().to_string();
        let failed = |source| Error::Index {
            path: shown.clone(),
            source,
        };
        let connection = match attempt(&path) {
            Ok(connection) => connection,
            Err(e) if is_broken(&e) => {
                for suffix in ["", "-wal", "-shm"] {
                    // If the file cannot be removed, the next attempt reports it.
                    let _ = std::fs::remove_file(folder.join(format!("index.db{suffix}")));
                }
                attempt(&path).map_err(failed)?
            }
            Err(e) => return Err(failed(e)),
        };
        Ok(Self {
            connection,
            path: shown,
        })
    }

    pub(crate) fn failed(&self, source: rusqlite::Error) -> Error {
        Error::Index {
            path: self.path.clone(),
            source,
        }
    }

    /// Number of files.
    pub fn files(&self) -> Result<u64, Error> {
        let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let counted = self
            .connection
            .query_row("SELECT count(*) FROM file WHERE taken", [], count);
        let counted = counted.map_err(|e| self.failed(e))?;
        Ok(u64::try_from(counted).unwrap_or_default())
    }

    /// Number of files in a folder.
    pub fn files_in(&self, folder: &Path) -> Result<u64, Error> {
        let (from, to) = range(folder);
        let asked = self.connection.query_row(
            "SELECT count(*) FROM file WHERE taken AND path >= ?1 AND path < ?2",
            params![from, to],
            |row| row.get::<_, i64>(0),
        );
        asked
            .map(|count| u64::try_from(count).unwrap_or_default())
            .map_err(|e| self.failed(e))
    }

    /// Whether a file is in the index.
    pub(crate) fn has(&self, path: &Path) -> Result<bool, Error> {
        let asked = self.connection.query_row(
            "SELECT 1 FROM file WHERE taken AND path = ?1",
            [path.as_os_str().as_bytes()],
            |_| Ok(()),
        );
        asked
            .optional()
            .map(|found| found.is_some())
            .map_err(|e| self.failed(e))
    }

    /// The best parts. A word in a file's name has a higher weight than one in its text.
    pub(crate) fn parts(&self, asked: &str, most: usize) -> Result<Vec<Part>, Error> {
        let find = || {
            let mut statement = self.connection.prepare(
                "SELECT file.path, part.line, part.lines, bm25(words, 3.0, 1.0) AS rank \
                 FROM words JOIN part ON part.id = words.rowid JOIN file ON file.id = part.file \
                 WHERE words MATCH ?1 ORDER BY rank, file.path, part.line LIMIT ?2",
            )?;
            let rows = statement.query_map(params![asked, most as i64], |row| {
                Ok(Part {
                    path: row.get(0)?,
                    line: row.get::<_, u32>(1)? as usize,
                    lines: row.get::<_, u32>(2)? as usize,
                    score: -row.get::<_, f64>(3)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<Part>>>()
        };
        find().map_err(|e| self.failed(e))
    }
}

fn attempt(path: &Path) -> rusqlite::Result<Connection> {
    // The file is private; SQLite's other files get the same mode.
    let mut options = std::fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.append(true).create(true).open(path);
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = OFF;")?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version == VERSION {
        return Ok(connection);
    }
    if version != 0 {
        return Err(rusqlite::Error::InvalidQuery);
    }
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         CREATE TABLE IF NOT EXISTS file (
             id INTEGER PRIMARY KEY, path BLOB UNIQUE NOT NULL, size INTEGER NOT NULL,
             modified INTEGER NOT NULL, changed INTEGER NOT NULL, inode INTEGER NOT NULL,
             seen INTEGER NOT NULL, taken INTEGER NOT NULL);
         CREATE TABLE IF NOT EXISTS made_by (rules TEXT NOT NULL);
         CREATE TABLE IF NOT EXISTS part (
             id INTEGER PRIMARY KEY, file INTEGER NOT NULL, line INTEGER NOT NULL,
             lines INTEGER NOT NULL);
         CREATE INDEX IF NOT EXISTS part_of ON part (file);
         CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
             name, text, content = '', contentless_delete = 1,
             tokenize = 'porter unicode61 remove_diacritics 2');
         PRAGMA user_version = {VERSION};
         COMMIT;"
    ))?;
    Ok(connection)
}

/// Whether a new index file would solve the error.
fn is_broken(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error, rusqlite::Error::InvalidQuery)
        || error
            .sqlite_error_code()
            .is_some_and(|code| matches!(code, DatabaseCorrupt | NotADatabase))
}

/// The range of paths below a folder, in byte order.
pub(crate) fn range(folder: &Path) -> (Vec<u8>, Vec<u8>) {
    let mut from = folder.as_os_str().as_bytes().to_vec();
    while from.last() == Some(&b'/') {
        from.pop();
    }
    let mut to = from.clone();
    from.push(b'/');
    to.push(b'/' + 1);
    (from, to)
}

/// The id and stamp of a file.
pub(crate) fn known(
    transaction: &Transaction<'_>,
    path: &Path,
) -> rusqlite::Result<Option<(i64, Stamp)>> {
    let asked = transaction.query_row(
        "SELECT id, size, modified, changed, inode FROM file WHERE path = ?1",
        [path.as_os_str().as_bytes()],
        |row| {
            let stamp = Stamp {
                size: row.get::<_, i64>(1)?.cast_unsigned(),
                modified_ns: row.get(2)?,
                changed_ns: row.get(3)?,
                inode: row.get::<_, i64>(4)?.cast_unsigned(),
            };
            Ok((row.get(0)?, stamp))
        },
    );
    asked.optional()
}

/// Adds a file. A file without text is recorded, so that it is not read again.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    path: &Path,
    stamp: Stamp,
    seen: i64,
    text: Option<&str>,
) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO file (path, size, modified, changed, inode, seen, taken) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            path.as_os_str().as_bytes(),
            stamp.size.cast_signed(),
            stamp.modified_ns,
            stamp.changed_ns,
            stamp.inode.cast_signed(),
            seen,
            text.is_some()
        ],
    )?;
    let Some(text) = text else {
        return Ok(());
    };
    let file = transaction.last_insert_rowid();
    let name = prepare(&path.file_name().unwrap_or_default().to_string_lossy());
    let mut part =
        transaction.prepare("INSERT INTO part (file, line, lines) VALUES (?1, ?2, ?3)")?;
    let mut words =
        transaction.prepare("INSERT INTO words (rowid, name, text) VALUES (?1, ?2, ?3)")?;
    let (mut line, mut lines, mut begin) = (1, 0, 0);
    let mut at = 0;
    // An empty file can still be found by name.
    let ends = text.split_inclusive('\n').map(str::len).chain([0]);
    for length in ends {
        at += length;
        let is_last = length == 0;
        lines += usize::from(!is_last);
        if (is_last && (lines > 0 || line == 1)) || lines >= PART_LINES || at - begin >= PART_BYTES
        {
            part.execute(params![file, line as i64, lines as i64])?;
            let id = transaction.last_insert_rowid();
            words.execute(params![id, name, prepare(&text[begin..at])])?;
            (line, lines, begin) = (line + lines, 0, at);
        }
    }
    Ok(())
}

/// Empties the index if it was built with other rules.
pub(crate) fn made_by(transaction: &Transaction<'_>, rules: &str) -> rusqlite::Result<()> {
    let before = transaction.query_row("SELECT rules FROM made_by", [], |row| row.get(0));
    let before: Option<String> = before.optional()?;
    if before.as_deref() != Some(rules) {
        transaction.execute_batch(
            "DELETE FROM file; DELETE FROM part; DELETE FROM made_by; \
             INSERT INTO words (words) VALUES ('delete-all');",
        )?;
        transaction.execute("INSERT INTO made_by (rules) VALUES (?1)", [rules])?;
    }
    Ok(())
}

/// Removes a file.
pub(crate) fn remove(transaction: &Transaction<'_>, file: i64) -> rusqlite::Result<()> {
    transaction.execute(
        "DELETE FROM words WHERE rowid IN (SELECT id FROM part WHERE file = ?1)",
        [file],
    )?;
    transaction.execute("DELETE FROM part WHERE file = ?1", [file])?;
    transaction.execute("DELETE FROM file WHERE id = ?1", [file])?;
    Ok(())
}
