//! The events of runs.

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

/// The kind of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AskKind {
    /// The agent asks a question.
    #[default]
    Question,
    /// The gate asks for approval of a tool call.
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

/// One predefined answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskOption {
    /// The text of the answer.
    pub label: String,
    /// Its description.
    pub description: String,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskQuestion {
    /// The question's text.
    pub question: String,
    /// A heading of a word or two.
    pub header: String,
    /// Predefined answers; empty for free text.
    pub options: Vec<AskOption>,
    /// Whether several options may be chosen.
    pub multi_select: bool,
}

/// The rule that "Allow always" would store: later calls that match every field
/// are not asked about (GATE-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRule {
    /// The agent that may make the call.
    pub agent: String,
    /// The sender for whom it may.
    pub sender: String,
    /// The tool that it may call.
    pub tool: String,
    /// The exact command, path or change.
    pub exact: String,
    /// The working directory of the call.
    pub cwd: String,
    /// The prefix of the command that "Allow prefix" would store instead; empty if
    /// that is not offered.
    pub prefix: String,
}

/// Questions that a run waits for (RUN-7, GATE-4). Texts are unchanged; clients
/// make invisible characters visible.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ask {
    /// Identifies the ask within the life of the daemon.
    pub id: String,
    /// A question or an approval.
    pub kind: AskKind,
    /// The questions, at least one.
    pub questions: Vec<AskQuestion>,
    /// For an approval: the tool.
    pub tool: String,
    /// For an approval: the command, path or arguments.
    pub detail: String,
    /// For an approval: the change to a file.
    pub preview: Option<Preview>,
    /// For an approval: the working directory.
    pub cwd: String,
    /// For an approval: the reason for asking.
    pub reason: String,
    /// For an approval: the rule that "Allow always" stores; `None` if that is not offered.
    pub always: Option<AskRule>,
    /// For an approval: whether the call leaves the sandbox.
    pub outside: bool,
    /// The sender of the delegate that asks; empty for the run at the top.
    pub delegate: String,
}

/// The result of an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskOutcome {
    /// A person answered.
    Answered {
        /// The principal who answered.
        by: Principal,
        /// The answer as text (RUN-7).
        answer: String,
    },
    /// The run stopped waiting.
    Withdrawn,
    /// The time limit passed without an answer.
    TimedOut,
}

/// A change of state of a component or MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ComponentNews {
    /// The name of the component or server.
    pub name: String,
    /// How the daemon found it, as lists show it.
    pub source: String,
    /// The new state.
    pub state: String,
    /// The reason for a failure; empty otherwise.
    pub error: String,
    /// Number of tools that it offers.
    pub tools: usize,
    /// A description of the change for people.
    pub said: String,
}

/// How a run ended (WIRE-6).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct End {
    /// The agent that answered: the conversation's agent or the guest.
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
    /// Cost of all model calls of the run, including compactions and calls that were
    /// cancelled or cut off.
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
        /// The agent that answers: the conversation's agent or the guest.
        agent: String,
        /// Number of the run within its conversation.
        run: u64,
        /// The requested model.
        model: String,
        /// The mode in force; `None` in the replay of a run that ended earlier.
        mode: Option<Mode>,
    },
    /// The user's message that the run answers.
    UserMessage {
        /// The text.
        content: String,
        /// The guest asked to answer, if any.
        guest: String,
        /// The origin of the run.
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
        /// The id of the call.
        call_id: String,
        /// The text for the model.
        output: String,
        /// The duration of the call.
        duration_ms: u64,
        /// Whether it failed.
        is_error: bool,
        /// Images for the model.
        images: Vec<Image>,
    },
    /// A tool call reports progress.
    ToolProgress {
        /// The id of the call.
        call_id: String,
        /// The reported progress.
        progress: Progress,
    },
    /// Every call of the step has its result.
    ToolsComplete,
    /// The run waits for an answer.
    AskUser(Arc<Ask>),
    /// A shown ask has ended; sent exactly once for each.
    AskSettled {
        /// The id of the ask.
        id: String,
        /// The result of the ask.
        outcome: AskOutcome,
    },
    /// A steering message entered the history.
    Steered(String),
    /// The history was compacted, or compaction failed.
    Compacted {
        /// Estimated tokens before compaction.
        tokens_before: u64,
        /// Estimated tokens after compaction.
        tokens_after: u64,
        /// Title of the archive.
        title: String,
        /// The reason for a failure; empty on success.
        failed: String,
    },
    /// A crash interrupted an earlier run.
    Interrupted {
        /// Number of the interrupted run.
        run: u64,
        /// The reason recorded for the interruption.
        reason: String,
    },
    /// The run waits for an approval that the reader cannot give.
    Waiting {
        /// The people who can give it.
        whom: String,
        /// The time limit in seconds.
        timeout_secs: u64,
    },
    /// A notice for the readers of the run.
    Notice(String),
    /// A component or MCP server appeared, disappeared or changed. Belongs to no run;
    /// only subscribers to all events receive it.
    Component(Arc<ComponentNews>),
    /// The run ended.
    End(End),
}

impl AgentEvent {
    /// Replaces images by notes, for consumers that store many events.
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
