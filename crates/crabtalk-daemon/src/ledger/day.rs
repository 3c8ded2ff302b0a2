//! What is known of a day, apart from its file.
//!
//! Invariants: whatever was counted counts at once, written down or not; what
//! waits to be written is bounded, and beyond that counts in memory alone.

use super::book::Read;
use super::cells::Sum;
use super::sums::{Entry, Sums};
use jiff::civil::Date;
use std::collections::VecDeque;

/// Lines that wait for a disk which does not answer: a megabyte.
pub(super) const MAX_UNWRITTEN: usize = 4096;

/// Whether the day's file was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    Unread,
    Read,
    /// It cannot be: why.
    Unreadable(String),
    /// It could not be, and somebody wants to know whether that is still so.
    LookAgain,
}

pub(super) struct Day {
    pub(super) date: Date,
    pub(super) known: Known,
    /// What the file says, and what it will never say.
    sums: Sums,
    /// What the file does not say yet, oldest first.
    unwritten: VecDeque<Entry>,
    /// Whether it was told that lines are not written down.
    told: bool,
}

impl Day {
    pub(super) fn new(date: Date) -> Self {
        Self {
            date,
            known: Known::Unread,
            sums: Sums::default(),
            unwritten: VecDeque::new(),
            told: false,
        }
    }

    /// Counts something; whether it is to be written.
    pub(super) fn add(&mut self, entry: Entry) -> bool {
        if self.unwritten.len() < MAX_UNWRITTEN {
            self.unwritten.push_back(entry);
            return true;
        }
        if !std::mem::replace(&mut self.told, true) {
            tracing::error!(day = %self.date, "the disk of the ledger does not answer; what is spent now counts until a restart");
        }
        self.sums.add(entry);
        false
    }

    /// Whether its file is to be read.
    pub(super) fn is_asked_for(&self) -> bool {
        matches!(self.known, Known::Unread | Known::LookAgain)
    }

    /// Takes what its file says.
    pub(super) fn take(&mut self, read: Read) {
        let again = self.known == Known::LookAgain;
        self.known = match read.unreadable {
            Some(why) => Known::Unreadable(why),
            None => Known::Read,
        };
        // Without a file, or one that can be read, what was counted meanwhile is
        // the beginning.
        if self.known != Known::Read || read.absent {
            return;
        }
        let counted = std::mem::replace(&mut self.sums, read.sums);
        // Of a file that was mended, its lines are what counts.
        if !again {
            self.sums.merge(&counted);
        }
    }

    /// What is to be written next.
    pub(super) fn unwritten(&self) -> Vec<Entry> {
        self.unwritten.iter().cloned().collect()
    }

    /// So many were written, or never will be.
    pub(super) fn written(&mut self, count: usize) {
        for entry in self.unwritten.drain(..count.min(self.unwritten.len())) {
            self.sums.add(entry);
        }
    }

    /// What the file says, once everything is written.
    pub(super) fn written_sums(&self) -> Sums {
        self.sums.clone()
    }

    pub(super) fn sums(&self) -> Sums {
        let mut sums = self.sums.clone();
        for entry in &self.unwritten {
            sums.add(entry.clone());
        }
        sums
    }

    pub(super) fn total(&self) -> Sum {
        let mut total = self.sums.total;
        for entry in &self.unwritten {
            total.add(&entry.spent());
        }
        total
    }

    pub(super) fn of_agent(&self, agent: &str) -> Sum {
        let mut sum = self.sums.of_agent(agent);
        for entry in &self.unwritten {
            sum.add(&entry.of_agent(agent));
        }
        sum
    }
}
