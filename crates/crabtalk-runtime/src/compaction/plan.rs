//! Decides when to compact, and which messages to keep.

use crabtalk_domain::model::Model;
use crabtalk_domain::{AgentConfig, Message, Role};
use std::sync::Arc;

/// Upper limit of the threshold in percent of the model's window (RUN-4); the rest is
/// for the answer, the tools and the error of the estimate.
const WINDOW_PERCENT: u64 = 80;

/// Percentage of the threshold that the kept tail may use.
const KEEP_PERCENT: u64 = 40;

/// Percentage to which a history must grow after a failed attempt before the next one.
const BACK_OFF_PERCENT: u64 = 110;

/// Estimated tokens of a history.
pub(crate) fn tokens(history: &[Arc<Message>]) -> u64 {
    history
        .iter()
        .map(|message| message.estimated_tokens())
        .sum()
}

/// Determines when a run compacts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    threshold: Option<u64>,
    /// Tokens below which a failed attempt is not repeated.
    not_before: u64,
}

impl Budget {
    pub(crate) fn new(agent: &AgentConfig, model: &dyn Model) -> Self {
        let window = model
            .context_limit(&agent.model)
            .map(|w| w / 100 * WINDOW_PERCENT);
        let threshold = agent
            .compact_threshold
            .map(|t| window.map_or(t, |w| t.min(w)));
        Self {
            threshold,
            not_before: 0,
        }
    }

    /// Whether to compact now. `reported` is the provider's count for the history, if
    /// known.
    pub(crate) fn is_exceeded(&self, estimate: u64, reported: u64) -> bool {
        let tokens = estimate.max(reported);
        self.threshold.is_some_and(|threshold| tokens > threshold) && tokens >= self.not_before
    }

    /// Records a failed attempt; the next one waits until the history has grown.
    pub(crate) fn back_off(&mut self, estimate: u64, reported: u64) {
        self.not_before = estimate.max(reported) / 100 * BACK_OFF_PERCENT + 1;
    }

    /// Tokens that the kept tail may use.
    pub(crate) fn keep_tokens(&self) -> u64 {
        self.threshold.unwrap_or(u64::MAX / 100) / 100 * KEEP_PERCENT
    }
}

/// The archived and the kept part of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Messages at the end that follow the summary verbatim.
    pub(crate) keep: usize,
    /// Index of the unanswered question, if there is one.
    question: Option<usize>,
}

impl Plan {
    /// Archives everything, for a history without an open question.
    pub(crate) fn all() -> Self {
        Self {
            keep: 0,
            question: None,
        }
    }

    /// Plans a compaction during a run: keeps the latest messages up to `budget` tokens,
    /// at most back to the open question.
    pub(crate) fn in_run(history: &[Arc<Message>], budget: u64) -> Self {
        let question = history.iter().rposition(|m| m.role == Role::User);
        let mut keep = 0;
        let mut used = 0;
        // From the end, group by group: a user message, or an assistant
        // message with the results of its calls.
        let mut group = 0;
        for message in history.iter().rev() {
            group += 1;
            used += message.estimated_tokens();
            if used > budget {
                break;
            }
            if message.role != Role::Tool {
                keep += group;
                group = 0;
            }
            if question.is_some_and(|at| history.len() - keep == at) {
                break;
            }
        }
        // At least one message must be archived.
        if keep >= history.len() {
            keep = 0;
        }
        Self { keep, question }
    }

    /// The text of the open question, unless it is kept.
    pub(crate) fn open_question(&self, history: &[Arc<Message>]) -> Option<String> {
        let at = self.question.filter(|at| *at < history.len() - self.keep)?;
        // The archive still has the images.
        Some(history[at].with_notes(|image| Some(image.note())).content)
    }
}
