//! Stores the books of cron in the records.
//!
//! Invariants: a fact and the changed account are written together; a run without an end is
//! closed as interrupted when the books are opened, and corrected once its actual end is
//! known.

use crate::cron::account::{Account, Ended, Fired, Line, Outcome, Skipped, Usage};
use crabtalk_domain::records::{CronBooks, CronBooksChange, CronFact, CronRow, Error};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

/// Maximum number of unwritten lines.
const MAX_UNWRITTEN: usize = 10_000;

/// The content of the books at start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loaded {
    /// Accounts by entry.
    pub accounts: BTreeMap<u64, Account>,
    /// The last number of an entry.
    pub last_id: u64,
    /// The last number of a run.
    pub last_seq: u64,
    /// Runs without an end, which are now closed as interrupted.
    pub interrupted: Vec<Ended>,
    /// Number of unreadable accounts.
    pub broken: u64,
}

/// The outcome of a due time or of a run on demand.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// A run, and its end once it has ended.
    Run(Box<Fired>, Option<Box<Ended>>),
    /// Skipped due times.
    Skipped(Skipped),
}

/// The open books.
pub struct Books {
    records: Arc<dyn CronBooks>,
    /// Lines that could not be written yet.
    unwritten: VecDeque<Line>,
}

impl fmt::Debug for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Books").field(&self.unwritten).finish()
    }
}

impl Books {
    /// Opens the books and closes the runs that were open.
    ///
    /// # Errors
    /// The records cannot be read; then nothing may fire.
    pub async fn open(
        records: Arc<dyn CronBooks>,
        now: Timestamp,
    ) -> Result<(Self, Loaded), Error> {
        let content = records.load().await?;
        let mut loaded = Loaded {
            last_id: content.last_entry,
            last_seq: content.last_run,
            ..Loaded::default()
        };
        for (id, account) in &content.accounts {
            match serde_json::from_str(account) {
                Ok(account) => drop(loaded.accounts.insert(*id, account)),
                Err(_) => loaded.broken += 1,
            }
        }
        loaded.interrupted = loaded.open_runs(now);
        let closed = loaded.interrupted.iter().cloned().map(Line::Ended);
        let closed: Vec<Line> = closed.collect();
        closed.iter().for_each(|line| loaded.take(line));
        let mut books = Self {
            records,
            unwritten: VecDeque::new(),
        };
        let account = |id| loaded.accounts.get(&id);
        if books.append(&closed, account).await.is_err() {
            // If the disk is full, they are written with later lines.
            books.unwritten.extend(closed);
        }
        Ok((books, loaded))
    }

    /// Writes all lines or none, after earlier unwritten lines. `account` returns the current
    /// account of an entry.
    pub async fn append<'a>(
        &mut self,
        lines: &[Line],
        account: impl Fn(u64) -> Option<&'a Account>,
    ) -> Result<(), Error> {
        let lines = || self.unwritten.iter().chain(lines);
        let entries: BTreeSet<u64> = lines().map(Line::id).collect();
        if entries.is_empty() {
            return Ok(());
        }
        let accounts = entries.into_iter().map(|id| (id, account(id).map(json)));
        let change = CronBooksChange {
            accounts: accounts.collect(),
            facts: lines().filter_map(Line::fact).collect(),
        };
        self.records.write(change).await?;
        self.unwritten.clear();
        Ok(())
    }

    /// Queues a line for the next write, since the end of a run is a fact even if the disk is
    /// full.
    pub fn keep(&mut self, line: Line) {
        if self.unwritten.len() < MAX_UNWRITTEN {
            self.unwritten.push_back(line);
        }
    }

    /// Rows of one entry or of all, latest first, without unreadable ones.
    ///
    /// # Errors
    /// The records cannot be read.
    pub async fn rows(
        records: &dyn CronBooks,
        id: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        let rows = records.latest(id, limit).await?;
        Ok(rows.iter().filter_map(row).collect())
    }
}

fn json(of: &impl Serialize) -> String {
    serde_json::to_string(of).expect("names and numbers are JSON")
}

fn row(row: &CronRow) -> Option<Row> {
    fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
        serde_json::from_str(text).ok()
    }
    Some(match row {
        CronRow::Run(begun, ended) => {
            let ended = ended.as_deref().and_then(read);
            Row::Run(Box::new(read(begun)?), ended.map(Box::new))
        }
        CronRow::Skipped(skipped) => Row::Skipped(read(skipped)?),
    })
}

impl Line {
    /// The fact of the line for the rows of the books; `None` if it has none.
    pub fn fact(&self) -> Option<CronFact> {
        Some(match self {
            Self::Fired(fired) => CronFact::Begun {
                entry: fired.id,
                run: fired.seq,
                text: json(fired),
            },
            Self::Ended(ended) => CronFact::Ended {
                run: ended.seq,
                text: json(ended),
            },
            Self::Skipped(skipped) => CronFact::Skipped {
                entry: skipped.id,
                text: json(skipped),
            },
            Self::Known { .. } | Self::Paused { .. } | Self::Removed { .. } => return None,
        })
    }
}

impl Loaded {
    fn take(&mut self, line: &Line) {
        self.accounts.entry(line.id()).or_default().take(line);
    }

    fn open_runs(&self, now: Timestamp) -> Vec<Ended> {
        let open = self.accounts.iter();
        open.filter_map(|(id, account)| {
            Some(Ended {
                id: *id,
                seq: account.open?,
                at: now,
                outcome: Outcome::Interrupted,
                code: 0,
                error: "the daemon ended before the run did".into(),
                ms: 0,
                usage: Usage::default(),
                run: None,
                refused: Vec::new(),
                unstarted: false,
            })
        })
        .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests;
