//! Arguments, results and failures of calls.

use crate::backend::event::Evidence;
use crate::backend::prompt::Prompt;
use serde::{Deserialize, Serialize};

/// How an agent is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Launch {
    /// Begin a new session.
    Fresh,
    /// Continue the session of this name in a new process. If it cannot
    /// be found, a new session begins; [`crate::backend::What::Ready`] reports the name of
    /// the session.
    Resume {
        /// The name from [`crate::backend::What::Ready`].
        session: String,
    },
    /// Reconnect to an agent that may have survived the end of NEXUS.
    Adopt {
        /// The name from [`crate::backend::What::Ready`].
        session: String,
    },
}

/// A position in a transcript, in a format of the backend. It
/// remains valid after restarts of NEXUS and of the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark(pub String);

/// A message for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// A message id, unique for ever within NEXUS.
    pub id: String,
    /// The whole user turn.
    pub text: String,
    /// The end of the transcript before the first attempt.
    pub mark: Mark,
    /// Whether an earlier attempt may have submitted it.
    pub again: bool,
}

/// The outcome of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// The text was typed and entered, or sent.
    Sent(Evidence),
    /// An earlier attempt reached the transcript. Nothing was typed.
    AlreadyThere(Evidence),
    /// A person has the window open, or the agent is busy: nothing was typed. NEXUS retries later.
    NotNow(Evidence),
}

/// The outcome of an answer to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// The prompt closed; the evidence names the key or
    /// message.
    Taken(Evidence),
    /// The prompt had already closed: nothing was typed.
    Stale(Evidence),
}

/// Observations of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Whether the agent runs.
    pub alive: bool,
    /// Equal digests of two probes mean that screen, transcript and
    /// process did not change in between. Spinners and clocks on the screen
    /// are excluded if the kind knows them.
    pub digest: String,
    /// The open prompt.
    pub prompt: Option<Prompt>,
    /// The evidence of the observations.
    pub evidence: Evidence,
}

/// The outcome of a compression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compressed {
    /// The session after the compression.
    pub session: String,
    /// The evidence of the compression.
    pub evidence: Evidence,
}

/// The agent's screen or history, for a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// The screen, or the end of the conversation, as plain text.
    pub text: String,
    /// The command with which a person attaches: `tmux attach ...` or `crabtalk
    /// attach ...`.
    pub attach: Vec<String>,
}

/// The reason why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A requirement is missing (no tmux, no daemon, no such
    /// program): a retry helps only after a person installs it.
    #[error("{0}")]
    Missing(String),
    /// The agent is not running.
    #[error("the agent does not run: {0}")]
    NotRunning(String),
    /// A person has the window open, or the agent is busy: nothing was typed.
    #[error("{}", .0.detail)]
    NotNow(Evidence),
    /// The agent's daemon does not answer, which may be temporary.
    #[error("{0}")]
    Unreachable(String),
    /// The call timed out; its outcome is unknown.
    #[error("no answer in time: {0}")]
    Timeout(String),
    /// The call was refused or failed, for this readable reason.
    #[error("{0}")]
    Failed(String),
}
