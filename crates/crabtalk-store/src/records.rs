//! Records in `state/records.db` that cannot be derived from logs.
//!
//! Each module implements one port of [`crabtalk_domain::records`] over the
//! tables of its `.sql` file.

mod audit;
mod changes;
mod costs;
mod crons;
mod events;

use crate::db::{Contents, Database, Definition};
use crabtalk_domain::records::Error;
use rusqlite::Connection;
use std::path::Path;

/// The statements that migrate each format to the next. A released format is never
/// changed; new statements are appended.
pub(crate) const MIGRATIONS: &[&str] = &[
    concat!(
        include_str!("records/audit.sql"),
        include_str!("records/costs.sql"),
    ),
    concat!(
        include_str!("records/events.sql"),
        include_str!("records/crons.sql"),
    ),
    include_str!("records/changes.sql"),
    include_str!("records/imported.sql"),
];

/// The records of a home. Cheap to clone.
#[derive(Clone)]
pub struct Records(Database);

impl Records {
    /// The records in a `state` folder. The first use opens the database.
    pub fn in_state(folder: &Path) -> Self {
        Self(Database::new(Definition::new(
            folder.join("records.db"),
            Contents::Recorded,
            MIGRATIONS,
        )))
    }

    /// Fails if a newer program wrote the records. Ignores absent records and other failures.
    /// Waits for the disk.
    ///
    /// # Errors
    /// [`Error::Newer`].
    pub fn refuse_newer(&self) -> Result<(), Error> {
        if !self.0.path().exists() {
            return Ok(());
        }
        match self.0.write_now(|_| Ok(())) {
            Err(error @ Error::Newer { .. }) => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Writes a consistent copy to a new path, also while another process writes records, and
    /// returns whether there are any. Waits for the disk.
    ///
    /// # Errors
    /// The database cannot be read, or another process has exclusive access, as on a network
    /// file system; the copy cannot be written.
    pub fn copy_to(&self, path: &Path) -> Result<bool, Error> {
        if !self.0.path().exists() {
            return Ok(false);
        }
        // One transaction reads the whole database.
        let path = path.to_string_lossy().into_owned();
        let copied = self.0.alone(move |c| c.execute("VACUUM INTO ?1", [path]));
        copied.map(|_| true)
    }

    /// Returns the faults that SQLite's `integrity_check` reports.
    ///
    /// # Errors
    /// The database cannot be opened.
    pub async fn check(&self) -> Result<Vec<String>, Error> {
        if !self.0.path().exists() {
            return Ok(Vec::new());
        }
        let checked = self.0.read(|c| {
            let mut rows = c.prepare("PRAGMA integrity_check(10)")?;
            rows.query_map([], |row| row.get(0))?.collect()
        });
        let mut found: Vec<String> = checked.await?;
        found.retain(|line| line != "ok");
        Ok(found)
    }
}

/// Records that a file of an earlier version was imported, in the transaction that adds
/// its content. Returns `false` if it was imported before.
fn begin_import(c: &Connection, name: &str) -> rusqlite::Result<bool> {
    let mut row = c.prepare_cached("INSERT OR IGNORE INTO imported VALUES (?1)")?;
    Ok(row.execute([name])? == 1)
}
