//! Records in `state/records.db`: what happened, and cannot be derived again.
//!
//! Each module implements one port of [`crabtalk_domain::records`] over the
//! tables of its `.sql` file.

use crate::db::{Contents, Database, Definition};
use std::path::Path;

/// The statements that make the tables, by format.
const MIGRATIONS: &[&str] = &[concat!(
    include_str!("records/audit.sql"),
    include_str!("records/costs.sql"),
    include_str!("records/crons.sql"),
    include_str!("records/events.sql"),
    include_str!("records/undo.sql"),
)];

/// The records of a home. Cheap to clone.
#[derive(Clone)]
pub struct Records(Database);

impl Records {
    /// The records in a `state` folder. Nothing is opened before the first use.
    pub fn in_state(folder: &Path) -> Self {
        Self(Database::new(Definition::new(
            folder.join("records.db"),
            Contents::Recorded,
            MIGRATIONS,
        )))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
