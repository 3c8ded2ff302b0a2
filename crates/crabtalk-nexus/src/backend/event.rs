//! Events of an agent, each with its evidence.

use crate::backend::prompt::Prompt;
use serde::{Deserialize, Serialize};

/// An event and its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The event itself.
    pub what: What,
    /// The evidence, which the log stores.
    pub evidence: Evidence,
}

/// The source of a piece of information.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The kind of source.
    pub source: Source,
    /// The observation in one line: a hook's name, a transcript's record, the
    /// counters of the window, an event of the wire. It has no secrets and 1 KiB at most.
    pub detail: String,
}

impl Evidence {
    /// Creates evidence from a source.
    pub fn new(source: Source, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { source, detail }
    }
}

/// A kind of source, the most reliable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The daemon's protocol.
    Wire,
    /// A hook of the agent's program.
    Hook,
    /// The transcript.
    Transcript,
    /// The system's information about the process.
    Process,
    /// The screen.
    Screen,
    /// NEXUS itself: a timeout, or a command of ADMIN.
    Nexus,
}

/// A kind of event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// The agent accepts messages; reported once per launch.
    Ready {
        /// The name for [`crate::backend::Launch::Resume`] and [`crate::backend::Launch::Adopt`].
        session: String,
        /// Whether a turn is in flight, as after adopting a busy agent.
        busy: bool,
    },
    /// The session has another name from now on (some programs begin a new
    /// file when they are cleared).
    Session {
        /// The new name.
        session: String,
    },
    /// A turn began, whether NEXUS caused it or not.
    TurnBegan,
    /// A message of NEXUS is in the transcript as a user turn; reported once per submitted
    /// id.
    Seen {
        /// [`crate::backend::Submission::id`].
        id: String,
    },
    /// The agent works: output, a tool call, a transcript that grows. May be omitted
    /// or merged; at most one per second.
    Progress,
    /// The agent waits for an answer. Reported once per prompt; an old prompt further up
    /// the screen does not count.
    Prompt(Prompt),
    /// The prompt closed: it was answered or withdrawn.
    PromptGone {
        /// [`Prompt::id`].
        id: String,
        /// How it was answered, if known.
        how: String,
    },
    /// The context was compacted, whether NEXUS requested it or not.
    Compacted,
    /// A turn ended. Reported once per [`What::TurnBegan`], even if it failed or
    /// was cancelled, and never before the [`What::Seen`] of the message that began the turn.
    TurnEnded(Turn),
    /// A person opened or closed the window; nothing is sent while it is open.
    Held {
        /// Whether it is open.
        held: bool,
    },
    /// The process ended without a request. No further event of this process
    /// follows.
    Died(Exit),
}

/// How a turn ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The final output: the text after the last tool call. It may be empty and has
    /// 1 MiB at most.
    pub output: String,
    /// The reason for a failure; `cancelled` after a cancellation.
    pub error: Option<String>,
    /// Tokens of the last request to the model, if known: the current size of the
    /// context.
    pub tokens: Option<u64>,
    /// The model's context window, if known.
    pub window: Option<u64>,
    /// Bytes of the transcript since its beginning or the last
    /// compression, if it is a file.
    pub transcript_bytes: Option<u64>,
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit status.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The last lines of its output, if they help.
    pub said: String,
}
