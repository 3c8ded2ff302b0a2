//! Collects the trace of one run from the lines of a log, newest first.

use super::{RunPhase, RunRecord};
use crate::{Message, Role};
use std::ops::ControlFlow;

/// The recorded trace of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunTrace {
    /// The guest that answered; empty for the conversation's own agent.
    pub guest: String,
    /// The last text of the run; `None` if the run ended with tool calls.
    pub answer: Option<String>,
    /// The recorded end or interruption of the run; `None` before one is recorded.
    pub end: Option<RunRecord>,
}

/// Collects the trace of one run from the lines of a log, newest first.
#[derive(Debug, Default)]
pub struct Tracing {
    run: u64,
    trace: RunTrace,
    /// The last assistant message since the previous run line; `Some(None)` if it has
    /// tool calls.
    said: Option<Option<String>>,
}

impl Tracing {
    /// Creates a collector for the run with this number.
    pub fn of(run: u64) -> Self {
        Self {
            run,
            ..Self::default()
        }
    }

    /// Processes a message, which may be the run's answer.
    pub fn message(&mut self, message: &Message) {
        if self.said.is_none() && message.role == Role::Assistant {
            let is_answer = message.tool_calls.is_empty();
            self.said = Some(is_answer.then(|| message.content.clone()));
        }
    }

    /// Processes a run line. `Break` ends the search with the result, since no earlier
    /// line can change it.
    pub fn run(&mut self, run: &RunRecord) -> ControlFlow<Option<RunTrace>> {
        if run.phase != RunPhase::Start {
            if run.id == self.run && self.trace.end.is_none() {
                self.trace.end = Some(run.clone());
            }
            return ControlFlow::Continue(());
        }
        let said = self.said.take();
        if run.id > self.run {
            return ControlFlow::Continue(());
        }
        if run.id < self.run {
            return ControlFlow::Break(None);
        }
        self.trace.guest.clone_from(&run.guest);
        let answered = said.is_some();
        self.trace.answer = said.flatten();
        if answered || run.tries == 0 {
            return ControlFlow::Break(Some(std::mem::take(&mut self.trace)));
        }
        // This run resumed the one before, whose answer was complete but not its end.
        self.run -= 1;
        ControlFlow::Continue(())
    }
}
