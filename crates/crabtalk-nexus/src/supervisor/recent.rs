//! The latest entries in short, for boards.
//!
//! Invariant: a fixed size for any entries and any number of boards.

use super::Supervisor;
use crate::world::{Answer, Entry};
use std::collections::VecDeque;
use tokio::sync::watch;

/// Entries that are kept for them: some screens.
const KEPT: usize = 200;

/// Characters of a reason: a row of a wide terminal. The log has all of it.
const WHY_CHARS: usize = 240;

pub(super) struct Recent {
    entries: VecDeque<Entry>,
    count: watch::Sender<u64>,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            count: watch::Sender::new(0),
        }
    }
}

impl Recent {
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    pub(super) fn push(&mut self, entry: &Entry) {
        if self.entries.len() >= KEPT {
            self.entries.pop_front();
        }
        let cut = |text: &str| -> String {
            let line = text.lines().next().unwrap_or_default();
            line.chars().take(WHY_CHARS).collect()
        };
        self.entries.push_back(Entry {
            why: cut(&entry.why),
            did: entry.did.iter().map(|did| cut(did)).collect(),
            evidence: None,
            ..entry.clone()
        });
        self.count.send_modify(|count| *count += 1);
    }

    /// The kept entries after this one, and the number of all.
    fn behind(&self, after: u64) -> (u64, Vec<Entry>) {
        let count = *self.count.borrow();
        // A number of another NEXUS says nothing here.
        let after = if after > count { 0 } else { after };
        let new = usize::try_from(count - after).unwrap_or(KEPT);
        let passed = self.entries.len().saturating_sub(new);
        (count, self.entries.iter().skip(passed).cloned().collect())
    }
}

impl Supervisor {
    pub(super) fn board(&mut self, after: u64) -> Answer {
        let (agents, inbox, tasks) = self.world.board(self.clock.now());
        let (seen, entries) = self.recent.behind(after);
        Answer::Board {
            agents,
            inbox,
            tasks,
            seen,
            entries,
        }
    }
}
