//! Collects the messages that were accepted for a run and wait for its next step
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

    /// Processes a state line at this index, which may list accepted messages. A line
    /// that repeats the requests also repeats all waiting messages.
    pub fn state(&mut self, index: u64, state: &MetaRecord) {
        if self.is_known {
            return;
        }
        if let Some(steers) = &state.steers {
            self.lines.push(Steered::Accepted(index, steers.clone()));
        }
        self.is_known = state.requests.is_some();
    }

    /// Processes a run line. No messages wait before the start of a run, unless the run
    /// continues another and inherits its waiting messages.
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
