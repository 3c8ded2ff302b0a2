//! Which messages were accepted for a run and wait for its next step, found out
//! from the lines of a log, newest first.

use super::{MetaRecord, RunPhase, RunRecord};
use std::collections::VecDeque;

/// Collects the messages waiting for a step from the lines of a log, newest first.
#[derive(Debug, Default)]
pub struct Steering {
    lines: Vec<Steered>,
    is_known: bool,
}

#[derive(Debug)]
enum Steered {
    /// Messages accepted by the line at that index.
    Accepted(u64, Vec<String>),
    /// One of them, or what a run answers, was written.
    Taken,
}

impl Steering {
    /// Takes notice of a message of a user: the oldest that waited was written by it.
    pub fn said(&mut self) {
        if !self.is_known {
            self.lines.push(Steered::Taken);
        }
    }

    /// Takes notice of a line of state, at this index, which may say what was accepted. One that repeats the
    /// requests repeats all that waits, too.
    pub fn state(&mut self, index: u64, state: &MetaRecord) {
        if self.is_known {
            return;
        }
        if let Some(steers) = &state.steers {
            self.lines.push(Steered::Accepted(index, steers.clone()));
        }
        self.is_known = state.requests.is_some();
    }

    /// Takes notice of a line of a run. Before one begins nothing waits, unless it carries on
    /// another, which hands it what waited.
    pub fn run(&mut self, run: &RunRecord) {
        self.is_known |= run.phase == RunPhase::Start && run.tries == 0;
    }

    /// Processes a marker: messages waiting before it are repeated after it.
    pub fn compacted(&mut self) {
        self.is_known = true;
    }

    /// Waiting messages, oldest first, each with the index of its line.
    pub fn waiting(self) -> Vec<(u64, String)> {
        let mut waiting = VecDeque::new();
        for line in self.lines.into_iter().rev() {
            match line {
                Steered::Accepted(index, steers) => {
                    waiting.extend(steers.into_iter().map(|steer| (index, steer)));
                }
                Steered::Taken => {
                    waiting.pop_front();
                }
            }
        }
        waiting.into()
    }
}
