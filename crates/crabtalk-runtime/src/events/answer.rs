//! Collects the answer of a run.

use super::Subscription;
use crate::Error;
use crabtalk_domain::{AgentEvent, End};
use std::sync::Arc;

/// The end of a run and the text of its last step.
#[derive(Debug, Clone, PartialEq)]
pub struct RunAnswer {
    /// The End event.
    pub end: End,
    /// The last text of the agent.
    pub text: String,
    /// Notices of the run.
    pub notices: Vec<String>,
    /// The first refusals of the gate.
    pub denied: Vec<String>,
    /// Why the run did nothing, if the gate refused all its calls.
    pub refusal: Option<String>,
    /// The run's number within its conversation.
    pub run: u64,
}

/// Number of calls, and whether one succeeded.
#[derive(Default)]
struct Calls {
    made: usize,
    has_worked: bool,
}

impl Subscription {
    /// Reads the run's events to the end.
    pub async fn answer(mut self) -> Result<RunAnswer, Arc<Error>> {
        self.stop_viewing();
        let (mut text, mut notices, mut calls) = (String::new(), Vec::new(), Calls::default());
        while let Some(next) = self.next().await? {
            match next.event {
                AgentEvent::Text(piece) => text.push_str(&piece),
                // Only the text of the last step counts.
                AgentEvent::ToolStart(_) | AgentEvent::Steered(_) => text.clear(),
                AgentEvent::Notice(notice) => notices.push(notice),
                AgentEvent::ToolResult { is_error, .. } => {
                    calls.made += 1;
                    calls.has_worked |= !is_error;
                }
                AgentEvent::End(end) => return Ok(self.answered(end, text, notices, calls)),
                AgentEvent::Start { .. }
                | AgentEvent::UserMessage { .. }
                | AgentEvent::ThinkingStart
                | AgentEvent::Thinking(_)
                | AgentEvent::ThinkingEnd
                | AgentEvent::TextStart
                | AgentEvent::TextEnd
                | AgentEvent::ToolsComplete
                | AgentEvent::ToolProgress { .. }
                | AgentEvent::Component(_)
                | AgentEvent::AskUser(_)
                | AgentEvent::AskSettled { .. }
                | AgentEvent::Compacted { .. }
                | AgentEvent::Waiting { .. }
                | AgentEvent::Interrupted { .. } => {}
            }
        }
        let end = End {
            code: 500,
            error: "the end of the run was read before".into(),
            ..End::default()
        };
        Ok(self.answered(end, text, notices, calls))
    }

    fn answered(&self, end: End, text: String, notices: Vec<String>, calls: Calls) -> RunAnswer {
        let denied = self.log().denied();
        // Refusals include those of members, results do not.
        let refused = !calls.has_worked && calls.made <= denied.len();
        let first = denied.first().filter(|_| refused);
        RunAnswer {
            end,
            text,
            notices,
            refusal: first.map(|first| format!("every call was refused: {first}")),
            denied,
            run: self.log().run(),
        }
    }
}
