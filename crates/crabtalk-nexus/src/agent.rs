//! The state of an agent.

use crate::backend::{Prompt, Reply};
use crate::clock::Ms;
use crate::meters::Meters;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;

/// Where an agent is in its session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum State {
    #[default]
    Offline,
    /// It is starting, or has to confirm its identity.
    Initialization,
    /// It has nothing to do.
    Idle,
    /// A turn is in flight.
    Active,
    /// It waits for an answer to a prompt.
    Approval,
    /// It shows no activity, and the reason is unknown.
    Stuck,
    /// It saves its context to files before a compression.
    PreCompression,
    /// It is ready for compression.
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
    /// Nothing special.
    #[default]
    Plain,
    /// It is stopping before a restart.
    Stopping,
    /// The pause before a restart.
    Backoff,
    /// It was started and is not ready for messages yet.
    Launching,
    /// BOOTSTRAP was sent.
    Bootstrapping,
    /// The notice of compression was sent.
    Noticed,
    /// Its claim of readiness is being checked.
    Verifying,
    /// ADMIN has to approve.
    Awaiting,
    Compressing,
}

/// The message in delivery to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flight {
    pub letter: u64,
    /// Whether the transcript has it.
    pub seen: bool,
}

/// How far a prompt is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Asked,
    /// To be answered like this as soon as the window is free.
    Decided(Reply),
    /// Its answer was sent.
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
    /// Whether a probe is on its way.
    pub probing: bool,
    /// Whether the message in delivery was sent again since its last activity.
    #[serde(default)]
    pub sent_again: bool,
}

/// A compression in progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The reason for it.
    pub why: String,
    /// When the notice was given.
    pub noticed_at: Ms,
    pub reminded: bool,
    /// How often its readiness was refused.
    #[serde(default)]
    pub refused: u32,
    /// Whether ADMIN, or policy, approved.
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
    /// Whether a person is at its window.
    pub held: bool,
    /// Whether ADMIN paused it: it gets no new messages.
    pub paused: bool,
    /// Whether it should run.
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
    /// Whether it has to confirm its identity at the end of its turn.
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
    /// The last message to it or from it, in a line.
    pub last: String,
}

/// Closed prompts that are remembered: late events lag by a few prompts.
const OVER: usize = 16;

impl Agent {
    /// Remembers that a prompt is closed.
    pub(crate) fn is_over(&mut self, id: &str) {
        if self.over.iter().any(|known| known == id) {
            return;
        }
        self.over.push_back(id.to_owned());
        if self.over.len() > OVER {
            self.over.pop_front();
        }
    }

    /// An agent that was not started yet.
    pub fn new(now: Ms) -> Self {
        Self {
            since: now,
            monitor: true,
            ..Self::default()
        }
    }

    /// The state to which it returns after a prompt or a silence.
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
