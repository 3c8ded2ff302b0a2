//! Combines records to turns.
//!
//! Invariant: every ended turn had begun, and every begun turn ends once.

use super::Record;
use crate::backend::Turn;
use crate::terminal::tmux::text::cut;

/// Longest output stored for a turn.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// Maximum number of calls without a result; an agent runs a few at once.
const MAX_CALLS: usize = 64;

/// A call without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) subject: String,
}

/// A change by a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Began(&'static str),
    User(String),
    Ended(Turn, &'static str),
    Compacted,
}

/// The state of a session's turns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    /// Whether a turn is in flight.
    pub(crate) is_busy: bool,
    /// Calls of the turn that have no result.
    pub(crate) calls: Vec<Call>,
    output: String,
    tokens: Option<u64>,
    window: Option<u64>,
}

impl Turns {
    /// Applies a record; returns the changes in order.
    pub(crate) fn take(&mut self, record: Record) -> Vec<Step> {
        let mut steps = Vec::new();
        match record {
            Record::Head { .. } => {}
            Record::Began => self.begin("a turn's begin", &mut steps),
            Record::User(text) => {
                self.begin("a user's turn", &mut steps);
                self.output.clear();
                steps.push(Step::User(text));
            }
            Record::Text(text) => {
                self.begin("an answer", &mut steps);
                if !self.output.is_empty() {
                    self.output.push('\n');
                }
                let room = MAX_OUTPUT_BYTES.saturating_sub(self.output.len());
                self.output.push_str(cut(&text, room));
            }
            Record::Call { id, tool, subject } => {
                self.begin("a call", &mut steps);
                self.output.clear();
                if self.calls.len() < MAX_CALLS {
                    self.calls.push(Call { id, tool, subject });
                }
            }
            Record::Result { id } => self.calls.retain(|call| call.id != id),
            Record::Usage { tokens, window } => {
                self.tokens = tokens.or(self.tokens);
                self.window = window.or(self.window);
            }
            Record::Ended {
                error,
                output,
                name,
            } => {
                if let Some(turn) = self.end(error, output) {
                    steps.push(Step::Ended(turn, name));
                }
            }
            Record::Compacted => steps.push(Step::Compacted),
        }
        steps
    }

    fn begin(&mut self, name: &'static str, steps: &mut Vec<Step>) {
        if !self.is_busy {
            self.is_busy = true;
            self.output.clear();
            self.calls.clear();
            steps.push(Step::Began(name));
        }
    }

    /// Forgets a turn whose end will not be recorded.
    pub(crate) fn drop_turn(&mut self) {
        self.is_busy = false;
        self.calls.clear();
    }

    /// Ends the turn in flight.
    pub(crate) fn end(&mut self, error: Option<String>, output: Option<String>) -> Option<Turn> {
        if !self.is_busy {
            return None;
        }
        self.is_busy = false;
        self.calls.clear();
        let gathered = std::mem::take(&mut self.output);
        Some(Turn {
            // A repeated end of a turn contains only its last message.
            output: match output {
                Some(output) if gathered.is_empty() => cut(&output, MAX_OUTPUT_BYTES).to_owned(),
                _ => gathered,
            },
            error,
            tokens: self.tokens,
            window: self.window,
            transcript_bytes: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(error: Option<&str>) -> Record {
        Record::Ended {
            error: error.map(str::to_owned),
            output: None,
            name: "end",
        }
    }

    #[test]
    fn the_final_output_is_what_follows_the_last_call() {
        let mut turns = Turns::default();
        let call = Record::Call {
            id: "1".into(),
            tool: "bash".into(),
            subject: "ls".into(),
        };
        assert_eq!(turns.take(Record::Began), [Step::Began("a turn's begin")]);
        assert_eq!(
            turns.take(Record::User("go".into())),
            [Step::User("go".into())]
        );
        turns.take(Record::Text("I will".into()));
        turns.take(call);
        assert_eq!(turns.calls.len(), 1);
        turns.take(Record::Result { id: "1".into() });
        turns.take(Record::Text("done".into()));
        turns.take(Record::Text("indeed".into()));
        let steps = turns.take(ended(None));
        let [Step::Ended(turn, _)] = steps.as_slice() else {
            panic!("{steps:?}");
        };
        assert_eq!(turn.output, "done\nindeed");
        assert!(turns.calls.is_empty() && !turns.is_busy);
        assert!(turns.take(ended(None)).is_empty(), "it ends once");
    }

    #[test]
    fn forms_without_a_begin_begin_with_the_user() {
        let mut turns = Turns::default();
        let steps = turns.take(Record::User("go".into()));
        assert_eq!(steps.len(), 2);
        let steps = turns.take(ended(Some("cancelled")));
        assert!(matches!(&steps[0], Step::Ended(turn, _) if turn.error.is_some()));
    }
}
