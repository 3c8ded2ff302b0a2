//! The state of an agent.

use crate::backend::{Prompt, Reply};
use crate::clock::Ms;
use crate::meters::Meters;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;

/// The state of an agent in its session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum State {
    #[default]
    Offline,
    /// The agent is starting, or has to confirm its identity.
    Initialization,
    /// The agent has no work.
    Idle,
    /// A turn is in flight.
    Active,
    /// The agent waits for an answer to a prompt.
    Approval,
    /// The agent shows no activity, for an unknown reason.
    Stuck,
    /// The agent saves its context to files before a compression.
    PreCompression,
    /// The agent is ready for compression.
    AwaitAdmin,
    /// NEXUS stopped restarting it; `restart` tries again.
    Failed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Offline => "OFFLINE",
            Self::Initialization => "INITIALIZATION",
            Self::Idle => "IDLE",
            Self::Active => "ACTIVE",
            Self::Approval => "APPROVAL",
            Self::Stuck => "STUCK",
            Self::PreCompression => "PRE-COMPRESSION",
            Self::AwaitAdmin => "AWAIT-ADMIN",
            Self::Failed => "FAILED",
        })
    }
}

/// The step within a state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// No particular step.
    #[default]
    Plain,
    /// The agent is stopping before a restart.
    Stopping,
    /// The pause before a restart.
    Backoff,
    /// The agent was started and cannot take messages yet.
    Launching,
    /// BOOTSTRAP was sent.
    Bootstrapping,
    /// The notice of compression was sent.
    Noticed,
    /// The agent's claim of readiness is being checked.
    Verifying,
    /// The compression waits for ADMIN's approval.
    Awaiting,
    Compressing,
}

/// The message in delivery to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flight {
    pub letter: u64,
    /// Whether the message is in the transcript.
    pub seen: bool,
}

/// The progress of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Asked,
    /// The answer is decided and will be sent when the window is free.
    Decided(Reply),
    /// The answer was sent.
    Pressed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub prompt: Prompt,
    pub standing: Standing,
}

/// The investigation of an agent's silence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    /// The digest of the last probe.
    pub digest: Option<String>,
    /// Consecutive probes with that digest.
    pub same: u32,
    /// Whether a probe is in flight.
    pub probing: bool,
    /// Whether the message in delivery was sent again since its last activity.
    #[serde(default)]
    pub sent_again: bool,
}

/// A compression in progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The reason for the compression.
    pub why: String,
    /// When the notice was given.
    pub noticed_at: Ms,
    pub reminded: bool,
    /// The number of refused claims of readiness.
    #[serde(default)]
    pub refused: u32,
    /// Whether ADMIN or the policy approved it.
    pub approved: bool,
}

/// The whole state of an agent, which the log stores after each change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Agent {
    pub state: State,
    pub since: Ms,
    pub step: Step,
    /// Whether silence is investigated.
    pub monitor: bool,
    /// Whether a person has its window open.
    pub held: bool,
    /// Whether ADMIN paused it: it gets no new messages.
    pub paused: bool,
    /// Whether the agent should run.
    pub wanted: bool,
    /// Whether a turn is in flight.
    pub busy: bool,
    /// Whether NEXUS restarted and is reconnecting to it.
    pub adopting: bool,
    pub session: Option<String>,
    /// The message in delivery.
    pub flight: Option<Flight>,
    /// Open prompts, oldest first. Not stored: an agent that is found again reports them.
    #[serde(skip)]
    pub waiting: Vec<Waiting>,
    /// Prompts that a rule denied in this turn.
    pub denied: u32,
    /// The ids of recently closed prompts, so that late events do not reopen them.
    pub over: VecDeque<String>,
    /// The investigation of its silence.
    pub quiet: Quiet,
    /// The deadline of the state.
    pub deadline: Option<Ms>,
    /// How often BOOTSTRAP was repeated.
    pub bootstraps: u32,
    /// The times of recent restarts.
    pub restarts: Vec<Ms>,
    /// Whether it worked since the last reflection.
    pub worked: bool,
    /// Corrections in a row.
    pub corrections: u32,
    /// A compression in progress.
    pub plan: Option<Plan>,
    /// Whether the agent has to confirm its identity at the end of its turn.
    pub unproved: bool,
    /// Whether ADMIN was told that its daemon does not answer.
    pub away: bool,
    /// Whether ADMIN requested a compression at the end of the turn.
    pub compress_wanted: bool,
    /// The earliest time of the next compression.
    pub no_compression_before: Ms,
    /// Its measurements.
    pub meters: Meters,
    /// The files that its last checkpoint lacks, or why it failed; else empty.
    pub unsaved: String,
    /// The reason for its state, for people.
    pub note: String,
    /// The last message to or from the agent, in one line.
    pub last: String,
}

/// Number of closed prompts to remember; late events lag by a few prompts.
const OVER: usize = 16;

impl Agent {
    /// Records that a prompt is closed.
    pub(crate) fn is_over(&mut self, id: &str) {
        if self.over.iter().any(|known| known == id) {
            return;
        }
        self.over.push_back(id.to_owned());
        if self.over.len() > OVER {
            self.over.pop_front();
        }
    }

    /// Creates the state of an agent that was not started.
    pub fn new(now: Ms) -> Self {
        Self {
            since: now,
            monitor: true,
            ..Self::default()
        }
    }

    /// The state to return to after a prompt or a silence.
    pub fn working(&self) -> State {
        match self.step {
            Step::Launching | Step::Backoff | Step::Bootstrapping => State::Initialization,
            Step::Noticed | Step::Verifying => State::PreCompression,
            Step::Awaiting | Step::Compressing => State::AwaitAdmin,
            Step::Plain | Step::Stopping => State::Active,
        }
    }

    /// Whether a letter may be delivered now.
    pub fn is_free(&self) -> bool {
        self.state == State::Idle && !self.busy && !self.held && !self.paused && !self.adopting
    }
}
