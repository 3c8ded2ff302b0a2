//! The cron books: the outcome of each entry's due times.

use super::Error;
use crate::BoxFuture;

/// Content of the cron books. Texts are JSON of the schedules' types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CronBooksContent {
    /// Accounts by the number of their entry.
    pub accounts: Vec<(u64, String)>,
    /// The highest number of an entry so far.
    pub last_entry: u64,
    /// The highest number of a run so far.
    pub last_run: u64,
}

/// A change of the books, applied atomically.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CronBooksChange {
    /// Changed accounts; `None` for a removed entry.
    pub accounts: Vec<(u64, Option<String>)>,
    /// Outcomes of due times, in order.
    pub facts: Vec<CronFact>,
}

/// The outcome of a due time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CronFact {
    /// A run begins, possibly again.
    Begun {
        /// The number of the entry.
        entry: u64,
        /// The number of the run.
        run: u64,
        /// The stored JSON.
        text: String,
    },
    /// A run ended.
    Ended {
        /// The number of the run.
        run: u64,
        /// The outcome as JSON.
        text: String,
    },
    /// Due times were skipped without a run.
    Skipped {
        /// The number of their entry.
        entry: u64,
        /// The due times and the reason, as JSON.
        text: String,
    },
}

/// One row of the books.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CronRow {
    /// A run, and its outcome once it has ended.
    Run(String, Option<String>),
    /// Skipped due times.
    Skipped(String),
}

/// Stores the books of cron.
pub trait CronBooks: Send + Sync {
    /// Loads the content of the books.
    fn load(&self) -> BoxFuture<'static, Result<CronBooksContent, Error>>;

    /// Applies a change atomically.
    fn write(&self, change: CronBooksChange) -> BoxFuture<'static, Result<(), Error>>;

    /// The latest rows of one entry or of all, newest first.
    fn latest(
        &self,
        entry: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<CronRow>, Error>>;
}
