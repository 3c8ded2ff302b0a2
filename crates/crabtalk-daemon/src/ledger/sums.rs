//! Model calls, added up by whatever tells them apart.
//!
//! Invariant: what is told apart in memory is bounded, and the total is not
//! touched by it.

use super::cells::{Cell, Cells, Sum};
use crabtalk_domain::{Cost, RunEnded, RunTotal, Spent, stamp};
use jiff::Zoned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Sums of a day that are told apart; what comes later is counted without its
/// conversation, since a gateway's senders have no end.
const MAX_CELLS: usize = 4096;

/// Runs that are told apart, for whoever wants to know what the last ones cost.
const MAX_RUNS: usize = 100;

/// A line of the ledger: a call, the calls of a cell, or what a run that ended
/// came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) at: String,
    #[serde(flatten)]
    pub(crate) cell: Cell,
    /// Its number within the conversation; 0 where several runs are added up.
    #[serde(default)]
    pub(crate) run: u64,
    /// Whether it is the total of a run that ended, whose calls other lines
    /// count already.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) ended: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) code: u32,
    /// The number of a reservation, which counts only if a crash left it unsettled.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) reserves: u64,
    /// The reservation that this line replaces.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) settles: u64,
    #[serde(flatten)]
    pub(crate) sum: Sum,
}

impl Entry {
    /// What an agent spent by it.
    pub(super) fn of_agent(&self, agent: &str) -> Sum {
        if self.ended || self.reserves != 0 || self.cell.speaker != agent {
            return Sum::default();
        }
        self.sum
    }

    /// What it adds to the day's total.
    pub(super) fn spent(&self) -> Sum {
        if self.ended || self.reserves != 0 {
            return Sum::default();
        }
        self.sum
    }

    /// A line about a reservation of an agent.
    pub(super) fn of_reservation(now: &Zoned, agent: &str, sum: Sum) -> Self {
        let cell = Cell {
            speaker: agent.to_owned(),
            agent: agent.to_owned(),
            ..Cell::default()
        };
        Self {
            at: at(now),
            ..cell.line(sum)
        }
    }

    pub(super) fn new(now: &Zoned, spent: &Spent<'_>, cost: &Cost) -> Self {
        Self {
            at: at(now),
            cell: Cell {
                speaker: spent.agent.name.to_string(),
                agent: spent.key.agent.to_string(),
                sender: spent.key.sender.to_string(),
                provider: spent.provider.to_owned(),
                model: spent.model.to_owned(),
            },
            run: spent.run,
            ended: false,
            code: 0,
            reserves: 0,
            settles: 0,
            sum: Sum::new(1, spent.usage, cost),
        }
    }

    /// What a run that ended came to.
    pub(super) fn of_run(now: &Zoned, ended: &RunEnded, total: &RunTotal) -> Self {
        let RunTotal { calls, usage, cost } = total;
        Self {
            at: at(now),
            cell: Cell {
                agent: ended.key.agent.to_string(),
                sender: ended.key.sender.to_string(),
                ..Cell::default()
            },
            run: ended.outcome.run,
            ended: true,
            code: ended.outcome.code,
            reserves: 0,
            settles: 0,
            sum: Sum::new(*calls, usage, cost),
        }
    }
}

impl Cell {
    /// The line of all its calls, whichever runs made them.
    pub(super) fn line(&self, sum: Sum) -> Entry {
        Entry {
            at: String::new(),
            cell: self.clone(),
            run: 0,
            ended: false,
            code: 0,
            reserves: 0,
            settles: 0,
            sum,
        }
    }
}

fn at(now: &Zoned) -> String {
    stamp(now.timestamp())
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The sums of a day.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub(super) cells: Cells,
    /// The last ones that ended, oldest first.
    pub(super) runs: VecDeque<Entry>,
    pub(super) total: Sum,
    pub(super) speakers: BTreeMap<String, Sum>,
}

impl Sums {
    /// Makes room for a run: runs that failed before anything was spent,
    /// perhaps again and again, do not crowd out those that cost something.
    fn forget_run(&mut self) {
        let free = self.runs.iter().position(|run| run.sum.calls == 0);
        self.runs.remove(free.unwrap_or_default());
    }

    /// What an agent spent.
    pub(super) fn of_agent(&self, agent: &str) -> Sum {
        self.speakers.get(agent).copied().unwrap_or_default()
    }

    /// Adds what came later.
    pub(super) fn merge(&mut self, later: &Self) {
        for (cell, sum) in later.cells.sorted() {
            self.add(cell.line(sum));
        }
        for run in &later.runs {
            self.add(run.clone());
        }
    }

    pub(super) fn add(&mut self, mut entry: Entry) {
        let sum = entry.sum;
        if entry.reserves != 0 || (entry.settles != 0 && sum == Sum::default()) {
            return;
        }
        if entry.ended {
            if self.runs.len() >= MAX_RUNS {
                self.forget_run();
            }
            return self.runs.push_back(entry);
        }
        self.total.add(&sum);
        match self.speakers.get_mut(&entry.cell.speaker) {
            Some(known) => known.add(&sum),
            None => {
                self.speakers.insert(entry.cell.speaker.clone(), sum);
            }
        }
        if self.cells.len() >= MAX_CELLS && !self.cells.contains(&entry.cell) {
            entry.cell.sender.clear();
        }
        self.cells.add(&entry.cell, &sum);
    }
}
