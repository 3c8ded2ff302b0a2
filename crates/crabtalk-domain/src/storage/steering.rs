//! Collects steering messages that were accepted for a run but not consumed by a
//! step.

use super::{MetaRecord, RunPhase, RunRecord};
use std::collections::VecDeque;

/// Reads the lines of a log, newest first, for steering messages without a step.
#[derive(Debug, Default)]
pub struct Steering {
    lines: Vec<Steered>,
    is_known: bool,
}

#[derive(Debug)]
enum Steered {
    /// Messages accepted by the line with this index.
    Accepted(u64, Vec<String>),
    /// A user message was written, which consumes the oldest one.
    Taken,
}

impl Steering {
    /// Processes a user message, which consumes the oldest waiting message.
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
