//! Arguments, results and failures of calls.

use crate::backend::event::Evidence;
use crate::backend::prompt::Prompt;
use serde::{Deserialize, Serialize};

/// How an agent is brought up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Launch {
    /// A new session.
    Fresh,
    /// The session of this name is taken up by a new process. One that cannot
    /// be found any more becomes a new session, which the name in
    /// [`crate::backend::What::Ready`] tells.
    Resume {
        /// As [`crate::backend::What::Ready`] told it.
        session: String,
    },
    /// It may still run since NEXUS ended: NEXUS reconnects to it.
    Adopt {
        /// As [`crate::backend::What::Ready`] told it.
        session: String,
    },
}

/// A place in a transcript, in words that only the backend understands. It
/// outlives NEXUS and the agent's process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark(pub String);

/// A message on its way to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// Names it among all messages of NEXUS, for ever.
    pub id: String,
    /// The whole user turn.
    pub text: String,
    /// Where the transcript ended before it was first tried.
    pub mark: Mark,
    /// Whether it may have been submitted before.
    pub again: bool,
}

/// What became of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// It is typed and entered, or sent.
    Sent(Evidence),
    /// The transcript has it from before. Nothing was typed.
    AlreadyThere(Evidence),
    /// A person is at it, or it is busy: nothing was typed. NEXUS tries later.
    NotNow(Evidence),
}

/// What became of an answer to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// It counts; the evidence says which key or message, and that the prompt
    /// went away.
    Taken(Evidence),
    /// The prompt was not there any more: nothing was typed.
    Stale(Evidence),
}

/// What there is to see of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Whether it runs.
    pub alive: bool,
    /// Two probes with the same digest saw the same screen, transcript and
    /// process: nothing moved in between. A spinner or a clock on the screen
    /// is left out where the kind knows it.
    pub digest: String,
    /// The prompt that waits.
    pub prompt: Option<Prompt>,
    /// How this is known.
    pub evidence: Evidence,
}

/// What compression did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compressed {
    /// The session from now on.
    pub session: String,
    /// How it is known.
    pub evidence: Evidence,
}

/// The agent's screen or history, for a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// The screen, or the last of the conversation, as plain text.
    pub text: String,
    /// The command that brings a person there: `tmux attach ...`, `crabtalk
    /// attach ...`.
    pub attach: Vec<String>,
}

/// Why a call did not come about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A requirement is missing (no tmux, no daemon, no such
    /// program): a retry helps only after a person fixes that.
    #[error("{0}")]
    Missing(String),
    /// The agent does not run.
    #[error("the agent does not run: {0}")]
    NotRunning(String),
    /// A person is at it, or it is busy: nothing was typed.
    #[error("{}", .0.detail)]
    NotNow(Evidence),
    /// Its daemon does not answer at present, and may recover.
    #[error("{0}")]
    Unreachable(String),
    /// It took too long; what became of it is not known.
    #[error("no answer in time: {0}")]
    Timeout(String),
    /// It was refused or went wrong, for a reason that a person can read.
    #[error("{0}")]
    Failed(String),
}
