//! A run's answer, for readers who want nothing else.

use super::Subscription;
use crate::Error;
use crabtalk_domain::{AgentEvent, End};
use std::sync::Arc;

/// How a run ended, and the text of its last step.
#[derive(Debug, Clone, PartialEq)]
pub struct RunAnswer {
    /// The End.
    pub end: End,
    /// What the agent said last.
    pub text: String,
    /// What whoever reads the run should know beside.
    pub notices: Vec<String>,
    /// What the gate refused, the first ones.
    pub denied: Vec<String>,
    /// The run's number within its conversation.
    pub run: u64,
}

impl Subscription {
    /// Reads the run to its end.
    pub async fn answer(mut self) -> Result<RunAnswer, Arc<Error>> {
        self.close_eyes();
        let (mut text, mut notices) = (String::new(), Vec::new());
        while let Some(next) = self.next().await? {
            match next.event {
                AgentEvent::Text(piece) => text.push_str(&piece),
                // Another step follows.
                AgentEvent::ToolStart(_) | AgentEvent::Steered(_) => text.clear(),
                AgentEvent::Notice(notice) => notices.push(notice),
                AgentEvent::End(end) => return Ok(self.answered(end, text, notices)),
                AgentEvent::Start { .. }
                | AgentEvent::UserMessage { .. }
                | AgentEvent::ThinkingStart
                | AgentEvent::Thinking(_)
                | AgentEvent::ThinkingEnd
                | AgentEvent::TextStart
                | AgentEvent::TextEnd
                | AgentEvent::ToolResult { .. }
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
            error: "the run's end had been read before".into(),
            ..End::default()
        };
        Ok(self.answered(end, text, notices))
    }

    fn answered(&self, end: End, text: String, notices: Vec<String>) -> RunAnswer {
        RunAnswer {
            end,
            text,
            notices,
            denied: self.log().denied(),
            run: self.log().run(),
        }
    }
}
