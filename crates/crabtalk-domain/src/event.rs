//! What happens in a run, as every client may see it.

use crate::tool::{Preview, Progress};
use crate::{ContextUse, Cost, Image, Mode, Principal, Usage};
use std::sync::Arc;

/// An announced tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallInfo {
    /// Pairs the announcement with its result.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// Arguments as JSON text.
    pub arguments: String,
}

/// What an ask is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AskKind {
    /// The agent wants to know something.
    #[default]
    Question,
    /// The gate wants a tool call approved.
    Approval,
}

impl AskKind {
    /// The kind's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Approval => "approval",
        }
    }
}

/// One answer that a question offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskOption {
    /// What to answer.
    pub label: String,
    /// Its description.
    pub description: String,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskQuestion {
    /// The question itself.
    pub question: String,
    /// A heading of a word or two.
    pub header: String,
    /// Offered answers; none means free text.
    pub options: Vec<AskOption>,
    /// Whether several options may be chosen.
    pub multi_select: bool,
}

/// What "Allow always" would keep: a call that matches all of it is not asked
/// for again (GATE-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRule {
    /// The agent that may.
    pub agent: String,
    /// For whom.
    pub sender: String,
    /// With which tool.
    pub tool: String,
    /// Exactly what.
    pub exact: String,
    /// In which working folder.
    pub cwd: String,
    /// The beginning of the command that "Allow prefix" would keep in its place;
    /// empty where that is not offered.
    pub prefix: String,
}

/// Questions that a run waits for (RUN-7, GATE-4). Texts are exact; what
/// shows them makes visible what a screen would hide.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ask {
    /// Names the ask; unique in the life of the daemon.
    pub id: String,
    /// A question or an approval.
    pub kind: AskKind,
    /// The questions, at least one.
    pub questions: Vec<AskQuestion>,
    /// For an approval: the tool.
    pub tool: String,
    /// For an approval: what would be done.
    pub detail: String,
    /// For an approval: what would be written.
    pub preview: Option<Preview>,
    /// For an approval: where.
    pub cwd: String,
    /// For an approval: why it is asked.
    pub reason: String,
    /// For an approval: what "Allow always" keeps; `None` where that is not
    /// offered.
    pub always: Option<AskRule>,
    /// For an approval: whether the call leaves the sandbox.
    pub outside: bool,
    /// The sender of the delegate that asks; empty for the run at the top.
    pub delegate: String,
}

/// How an ask ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskOutcome {
    /// An answer was given.
    Answered {
        /// Who, as their connection proved it.
        by: Principal,
        /// What, in the words that answer such an ask (RUN-7).
        answer: String,
    },
    /// The run no longer waits for an answer.
    Withdrawn,
    /// No answer came in time.
    TimedOut,
}

/// How a component or MCP server fares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ComponentNews {
    /// Its name.
    pub name: String,
    /// Where the daemon knows it from, in the words of lists.
    pub source: String,
    /// Its state.
    pub state: String,
    /// Why it failed; empty if it did not.
    pub error: String,
    /// Tools that it offers.
    pub tools: usize,
    /// What happened, for a person.
    pub said: String,
}

/// How a run ended (WIRE-6).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct End {
    /// Who spoke: the agent or the guest.
    pub agent: String,
    /// Empty on success.
    pub error: String,
    /// 0 on success, else one of the codes of WIRE-3.
    pub code: u32,
    /// The provider that answered last.
    pub provider: String,
    /// The model that answered last.
    pub model: String,
    /// Tokens of all steps together.
    pub usage: Option<Usage>,
    /// Money of all its model calls together: compaction within it, and what
    /// was cancelled or cut, included.
    pub cost: Cost,
    /// How full the context is after the run, if known; boxed to keep events
    /// small.
    pub context: Option<Box<ContextUse>>,
}

/// An event of a run. Start comes first, exactly one End last.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// The run began.
    Start {
        /// Who speaks: the agent or the guest.
        agent: String,
        /// Number of the run within its conversation.
        run: u64,
        /// The model that was asked for.
        model: String,
        /// The mode in force; `None` for a run that ended before.
        mode: Option<Mode>,
    },
    /// The user's message that the run answers.
    UserMessage {
        /// The text.
        content: String,
        /// The guest asked to answer, if any.
        guest: String,
        /// Where the message came from.
        origin: String,
    },
    /// Reasoning begins.
    ThinkingStart,
    /// A piece of reasoning.
    Thinking(String),
    /// Reasoning ends.
    ThinkingEnd,
    /// Text begins.
    TextStart,
    /// A piece of text.
    Text(String),
    /// Text ends.
    TextEnd,
    /// Tool calls begin; their messages are on disk.
    ToolStart(Vec<ToolCallInfo>),
    /// A tool call ended; its result is on disk.
    ToolResult {
        /// The call.
        call_id: String,
        /// The text for the model.
        output: String,
        /// How long it took.
        duration_ms: u64,
        /// Whether it failed.
        is_error: bool,
        /// The images.
        images: Vec<Image>,
    },
    /// A tool call says how far it is.
    ToolProgress {
        /// The call.
        call_id: String,
        /// How far.
        progress: Progress,
    },
    /// Every call of the step has its result.
    ToolsComplete,
    /// The run waits for an answer.
    AskUser(Arc<Ask>),
    /// An ask that was shown has ended: exactly one for each.
    AskSettled {
        /// Which one.
        id: String,
        /// How the ask ended.
        outcome: AskOutcome,
    },
    /// A steering message entered the history.
    Steered(String),
    /// The history was compacted, or could not be.
    Compacted {
        /// Estimated tokens before.
        tokens_before: u64,
        /// Estimated tokens after.
        tokens_after: u64,
        /// Title of the archive.
        title: String,
        /// Why nothing changed; empty on success.
        failed: String,
    },
    /// An earlier run was cut off by a crash.
    Interrupted {
        /// Number of that run.
        run: u64,
        /// What happened to it.
        reason: String,
    },
    /// The run waits for an approval that is not the reader's to give.
    Waiting {
        /// For whom it waits.
        whom: String,
        /// How long at most, in seconds.
        timeout_secs: u64,
    },
    /// A notice for the readers of the run.
    Notice(String),
    /// A component or MCP server appeared, vanished or changed. It belongs to no
    /// run; watchers of everything are told.
    Component(Arc<ComponentNews>),
    /// The run ended.
    End(End),
}

impl AgentEvent {
    /// The same with notes in place of images, for those who keep many events.
    #[must_use]
    pub fn without_images(mut self) -> Self {
        if let Self::ToolResult { output, images, .. } = &mut self {
            for image in images.drain(..) {
                crate::image::push_note(output, &image.note());
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ImageType;

    #[test]
    fn events_have_notes_for_images() {
        let image = Image::new(ImageType::Webp, b"four").expect("small");
        let result = |output: &str, images| AgentEvent::ToolResult {
            call_id: "c".into(),
            output: output.into(),
            duration_ms: 1,
            is_error: false,
            images,
        };
        assert_eq!(
            result("seen", vec![image.clone(), image]).without_images(),
            result(
                "seen\n[image/webp, 4 bytes]\n[image/webp, 4 bytes]",
                Vec::new()
            )
        );
    }
}
