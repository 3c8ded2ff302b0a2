//! What is known of an agent.

use crate::backend::{Mark, Prompt};
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
    /// It is being started, or has to prove its identity.
    Initialization,
    /// It has nothing to do.
    Idle,
    /// A turn is in flight.
    Active,
    /// It waits for an answer to a prompt.
    Approval,
    /// It rang, then nothing moved, and nobody knows why.
    Stuck,
    /// It consolidates, so that its context can be compressed.
    PreCompression,
    /// It is ready for compression.
    AwaitAdmin,
    /// NEXUS gave up on it; `restart` begins anew.
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

/// Where it is within its state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Nothing special.
    #[default]
    Plain,
    /// It is being ended, to be started again.
    Stopping,
    /// A pause before it is started again.
    Backoff,
    /// It was started and takes no messages yet.
    Launching,
    /// BOOTSTRAP is with it.
    Bootstrapping,
    /// The notice of compression is with it.
    Noticed,
    /// What it says of its readiness is being checked.
    Verifying,
    /// ADMIN has to approve.
    Awaiting,
    Compressing,
}

/// The one message that is with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flight {
    pub letter: u64,
    /// Whether it stands in the transcript.
    pub seen: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Asked,
    /// To be answered as soon as nobody holds the window.
    Allow,
    /// To be allowed for good then.
    Always,
    /// To be answered with a text then, which is [`Waiting::reason`].
    Answer,
    /// To be refused then.
    Deny,
    /// The answer is on its way: nothing more is pressed for it.
    Pressed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub prompt: Prompt,
    pub standing: Standing,
    /// What a refusal says, or the answer to a question.
    #[serde(default)]
    pub reason: String,
}

/// What became of an investigation so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    /// What the last probe saw.
    pub digest: Option<String>,
    /// Probes in a row that saw the same.
    pub same: u32,
    /// Whether it rang since anything moved.
    pub rang: bool,
    /// Whether a probe is on its way.
    pub probing: bool,
    /// Whether an Enter was pressed for a forgotten draft since anything moved.
    pub nudged: bool,
    /// Whether a look found the turn over whose end was not told.
    #[serde(default)]
    pub over: bool,
}

/// A compression on its way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What made it necessary.
    pub why: String,
    /// When the notice was given.
    pub noticed_at: Ms,
    pub reminded: bool,
    /// How often its readiness was refused.
    #[serde(default)]
    pub refused: u32,
    /// Whether ADMIN, or policy, approved.
    pub approved: bool,
    /// Where the transcript ended before it was compressed.
    pub mark: Option<Mark>,
}

/// All that is known of an agent. The log keeps it as it is after each change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Agent {
    pub state: State,
    pub since: Ms,
    pub step: Step,
    /// Whether silence is looked into.
    pub monitor: bool,
    /// Whether a person is at its window.
    pub held: bool,
    /// Whether ADMIN wants it to get nothing new.
    pub paused: bool,
    /// Whether it shall run.
    pub wanted: bool,
    /// Whether a turn is in flight.
    pub busy: bool,
    /// Whether it is looked for after a restart of NEXUS.
    pub adopting: bool,
    pub session: Option<String>,
    /// The message that is with it.
    pub flight: Option<Flight>,
    /// Prompts that wait, oldest first.
    pub waiting: Vec<Waiting>,
    /// Prompts that a rule denied in this turn.
    pub denied: u32,
    /// The ids of the last prompts that wait no more: word of one of them that
    /// comes late is none of a new one.
    pub over: VecDeque<String>,
    /// What is known of its silence.
    pub quiet: Quiet,
    /// When the state's time is up.
    pub deadline: Option<Ms>,
    /// How often BOOTSTRAP was repeated.
    pub bootstraps: u32,
    /// When it was started again, as far back as it counts.
    pub restarts: Vec<Ms>,
    /// Whether it did something since the last reflection.
    pub worked: bool,
    /// Corrections in a row.
    pub corrections: u32,
    /// A compression on its way.
    pub plan: Option<Plan>,
    /// Whether it has to prove its identity at the end of its turn.
    pub unproved: bool,
    /// Whether ADMIN was told that its daemon does not answer.
    pub away: bool,
    /// What ADMIN asked for, to be done at the end of the turn.
    pub compress_wanted: bool,
    /// No compression is begun before.
    pub no_compression_before: Ms,
    /// What is measured of it.
    pub meters: Meters,
    /// What its last checkpoint lacks, or why there is none; empty where all is there.
    pub unsaved: String,
    /// Why it is where it is, for a person.
    pub note: String,
    /// The last message to it or from it, in a line.
    pub last: String,
}

/// Prompts that are over and still known: word of one is late by a few at most.
const OVER: usize = 16;

impl Agent {
    /// A prompt waits no more, and will not again.
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

    /// Everything was so much earlier, and is due so much earlier.
    pub(crate) fn go_back(&mut self, by: Ms) {
        let plan = self.plan.iter_mut().map(|plan| &mut plan.noticed_at);
        let times = [
            &mut self.since,
            &mut self.no_compression_before,
            &mut self.meters.since,
        ];
        let all = times.into_iter().chain(&mut self.deadline);
        for at in all.chain(&mut self.restarts).chain(plan) {
            *at = at.saturating_sub(by);
        }
    }

    /// The state of work that a prompt or a silence interrupts.
    pub fn working(&self) -> State {
        match self.step {
            Step::Launching | Step::Backoff | Step::Bootstrapping => State::Initialization,
            Step::Noticed | Step::Verifying => State::PreCompression,
            Step::Awaiting | Step::Compressing => State::AwaitAdmin,
            Step::Plain | Step::Stopping => State::Active,
        }
    }

    /// Whether a letter may go to it now.
    pub fn is_free(&self) -> bool {
        self.state == State::Idle && !self.busy && !self.held && !self.paused && !self.adopting
    }
}
