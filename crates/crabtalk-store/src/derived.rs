//! Indexes in `state/index.db`, which can be rebuilt from conversations and memory
//! entries, so that the file may be deleted at any time.
//!
//! Each module implements one port of [`crabtalk_domain::records`] over the
//! tables of its `.sql` file.

mod logs;
mod passages;
mod terms;
mod turns;

pub(crate) use logs::{Changed, CheckedLog, LogRow, LogTable};
pub(crate) use turns::{FoundTurn, Indexed, Turn, Unindexed};

use crate::db::{Contents, Database, Definition};
use crabtalk_domain::records::Passages;
use std::path::Path;
use std::sync::Arc;

/// The statements that create the tables. A file with another schema is recreated.
pub(crate) const MIGRATIONS: &[&str] = &[concat!(
    include_str!("derived/logs.sql"),
    include_str!("derived/turns.sql"),
    include_str!("derived/passages.sql"),
)];

/// The indexes of a home. Cheap to clone.
#[derive(Clone)]
pub struct Indexes(Database);

impl Indexes {
    /// The indexes in a `state` folder. The first use opens the database.
    pub fn in_state(folder: &Path) -> Self {
        Self(Database::new(Definition::new(
            folder.join("index.db"),
            Contents::Derived,
            MIGRATIONS,
        )))
    }

    pub(crate) fn logs(&self) -> LogTable {
        LogTable(self.0.clone())
    }

    /// The index of archived turns.
    pub fn passages(&self) -> Arc<dyn Passages> {
        Arc::new(passages::PassageTable(self.0.clone()))
    }
}
