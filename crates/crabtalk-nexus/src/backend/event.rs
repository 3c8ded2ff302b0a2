//! Events of an agent, each with its evidence.

use crate::backend::prompt::Prompt;
use serde::{Deserialize, Serialize};

/// Something that happened, and how it is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// What happened.
    pub what: What,
    /// How it is known; the log keeps it.
    pub evidence: Evidence,
}

/// How something is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Where it was seen.
    pub source: Source,
    /// The observation in one line: the hook's name, a transcript's record, the
    /// counters of the window, an event of the wire. No secrets, 1 KiB at most.
    pub detail: String,
}

impl Evidence {
    /// Evidence of this source.
    pub fn new(source: Source, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { source, detail }
    }
}

/// Where something was seen, the better evidence first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The daemon's protocol said it.
    Wire,
    /// A hook of the agent's program said it.
    Hook,
    /// The transcript has it.
    Transcript,
    /// The process is known to the system.
    Process,
    /// It is on the screen.
    Screen,
    /// NEXUS itself: a time that passed, a command of ADMIN.
    Nexus,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// The agent takes messages: once for each launch.
    Ready {
        /// What [`crate::backend::Launch::Resume`] and [`crate::backend::Launch::Adopt`] find it by.
        session: String,
        /// Whether a turn is in flight, as after adopting a busy agent.
        busy: bool,
    },
    /// Its session goes by another name from now on (some programs begin a new
    /// file when they are cleared).
    Session {
        /// The new name.
        session: String,
    },
    /// A turn began, also one that NEXUS did not cause.
    TurnBegan,
    /// The transcript has a message of NEXUS as a user turn: once for each
    /// id that was submitted.
    Seen {
        /// [`crate::backend::Submission::id`].
        id: String,
    },
    /// It works: output, a tool call, a transcript that grows. May be left out
    /// or merged, at most one in a second.
    Progress,
    /// It waits for an answer. Once for each prompt; an old prompt further up
    /// the screen is none.
    Prompt(Prompt),
    /// The prompt closed: it was answered or withdrawn.
    PromptGone {
        /// [`Prompt::id`].
        id: String,
        /// How it was answered, where that can be told.
        how: String,
    },
    /// Its context was compacted, also without an order of NEXUS.
    Compacted,
    /// A turn ended: once for each [`What::TurnBegan`], also where it failed or
    /// was cancelled. Never before the [`What::Seen`] of the message that began it.
    TurnEnded(Turn),
    /// A person opened or left the window: nothing is sent while it is open.
    Held {
        /// Whether it is open.
        held: bool,
    },
    /// It ended without having been asked to. Nothing of this life of it comes
    /// after.
    Died(Exit),
}

/// How a turn ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The final output alone: the text behind the last tool call. Empty if
    /// there is none. 1 MiB at most.
    pub output: String,
    /// Why it failed; `cancelled` if it was cancelled.
    pub error: Option<String>,
    /// Tokens of its last request to the model, where known: what the context
    /// holds now.
    pub tokens: Option<u64>,
    /// The model's window, where known.
    pub window: Option<u64>,
    /// Bytes of the transcript since its beginning or since the last
    /// compression, where it is a file.
    pub transcript_bytes: Option<u64>,
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Its status.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its last output, in a few lines, where that helps.
    pub said: String,
}
