//! The cron books: the outcome of each entry's due times.

use super::Error;
use crate::BoxFuture;

/// Content of the cron books. Texts are JSON of the schedules' own types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CronBooksContent {
    /// The account of each entry, by its number.
    pub accounts: Vec<(u64, String)>,
    /// The highest number that an entry ever had.
    pub last_entry: u64,
    /// The highest number that a run ever had.
    pub last_run: u64,
}

/// Changes of the books that belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CronBooksChange {
    /// The accounts that changed; `None` for an entry that is gone.
    pub accounts: Vec<(u64, Option<String>)>,
    /// Events, in order.
    pub facts: Vec<CronFact>,
}

/// The outcome of a due time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CronFact {
    /// A run begins, possibly for a second time.
    Begun {
        /// Its entry.
        entry: u64,
        /// Its number.
        run: u64,
        /// The stored JSON.
        text: String,
    },
    /// A run is over.
    Ended {
        /// Its number.
        run: u64,
        /// How it ended.
        text: String,
    },
    /// No run came of due times.
    Skipped {
        /// Their entry.
        entry: u64,
        /// Which ones, and why.
        text: String,
    },
}

/// One row of the books.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CronRow {
    /// A run, and how it ended if it has.
    Run(String, Option<String>),
    /// Due times that no run came of.
    Skipped(String),
}

/// Keeps the books of cron.
pub trait CronBooks: Send + Sync {
    /// Loads the content of the books.
    fn load(&self) -> BoxFuture<'static, Result<CronBooksContent, Error>>;

    /// Applies a change atomically.
    fn write(&self, change: CronBooksChange) -> BoxFuture<'static, Result<(), Error>>;

    /// The latest rows of an entry, or of all, newest first.
    fn latest(
        &self,
        entry: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<CronRow>, Error>>;
}
