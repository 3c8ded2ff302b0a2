//! The state machine of an agent: triggers in, actions out.
//!
//! Invariants: it is total, so every trigger is handled in every state; it is pure, so the
//! same agent and trigger give the same result; only open prompts are answered, each
//! once; nothing is sent to a working agent; every state can be left. It has no mail,
//! no files, and no clock except the parameter `now`.

mod admin;
mod life;
mod watch;

use crate::agent::{Agent, State, Step};
use crate::backend::{Failure, Prompt, Reply};
use crate::clock::Ms;
use serde::{Deserialize, Serialize};

/// Configurable timeouts and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Times {
    /// Silence after which a working agent is probed.
    pub silent_secs: u64,
    /// Timeout of BOOTSTRAP and of a launch.
    pub bootstrap_secs: u64,
    /// Time after which an agent without work is asked to reflect.
    pub reflection_secs: u64,
    /// Time for readiness after a notice of compression.
    pub readiness_secs: u64,
    /// Time for readiness after the reminder.
    pub reminder_secs: u64,
    /// Time for ADMIN to approve a compression; then the agent continues to work.
    pub approval_secs: u64,
    /// Maximum restarts within [`RESTART_WINDOW_MS`].
    pub restarts: usize,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            silent_secs: 120,
            bootstrap_secs: 180,
            reflection_secs: 30 * 60,
            readiness_secs: 10 * 60,
            reminder_secs: 5 * 60,
            approval_secs: 60 * 60,
            restarts: 3,
        }
    }
}

/// The period in which restarts are counted.
pub const RESTART_WINDOW_MS: Ms = 5 * 60 * 1000;

/// Pause before the first restart; each further pause is five times longer.
const BACKOFF_MS: Ms = 1000;

/// Maximum repetitions of BOOTSTRAP.
const BOOTSTRAPS: u32 = 2;

/// Consecutive probes without a change after which an agent counts as stuck; a long build
/// is also silent for some minutes.
const SAME_PROBES: u32 = 5;

/// Pause before a failed compression is tried again.
const COMPRESSION_AGAIN_MS: Ms = 60 * 60 * 1000;

/// Minimum pause after a successful compression, whose cause may persist.
const COMPRESSION_DONE_MS: Ms = 10 * 60 * 1000;

/// Claims of readiness that are refused with a reason; the next one ends the
/// compression.
const REFUSALS: u32 = 3;

/// Maximum prompts of one turn that rules deny; further ones go to ADMIN, since an agent
/// that repeats a denied command would loop at the speed of its model.
const DENIALS: u32 = 10;

/// Pause between two launches while the daemon does not answer.
const AWAY_MS: Ms = 10 * 1000;

/// The relevant facts about the end of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ending {
    /// Whether the output confirmed the requested identity.
    pub identity: bool,
    /// Whether the output claimed readiness for compression.
    pub ready: bool,
}

/// Work for an idle agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    Letter(u64),
    Compression(String),
    Reflection,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// ADMIN starts the agent.
    Start,
    /// ADMIN stops the agent.
    Stop,
    /// ADMIN restarts the agent.
    Restart,
    /// ADMIN pauses the agent: it gets no new messages.
    Pause,
    /// ADMIN ends the pause.
    Resume,
    /// ADMIN requests a compression at the end of the turn.
    Compress,
    /// ADMIN answers the prompt of this id or the oldest one, or decides about the compression.
    Reply(Option<String>, Reply),
    /// ADMIN cancels the compression, or the turn in flight.
    Cancel,
    /// NEXUS restarted, and the state may be out of date.
    Recover,
    /// A launch or call failed.
    Failed(Failure),
    /// The agent accepts messages.
    Ready {
        session: String,
        /// Whether a turn is in flight.
        busy: bool,
    },
    /// The session has another name.
    Session(String),
    TurnBegan,
    /// A letter is in the transcript.
    Seen(u64),
    Progress,
    /// A prompt opened, with the answer of the rules, if any.
    Prompted(Prompt, Option<Reply>),
    /// A prompt closed.
    PromptGone(String),
    /// A turn ended, and its output was parsed.
    Ended(Ending),
    /// A person opened (true) or closed the window.
    Held(bool),
    Died(String),
    Stopped,
    /// The answer to a prompt was sent (true), or the prompt had closed before.
    Pressed(String, bool),
    /// An answer to a prompt failed.
    PressFailed(String),
    /// The result of a probe, except for prompts, which are separate triggers.
    Probed {
        alive: bool,
        /// A digest of the screen or the events.
        digest: String,
    },
    Verified(Result<(), String>),
    /// The compression ended with a new session, or failed.
    Compressed(Result<String, String>),
    /// The context was compacted without a request.
    Compacted,
    /// A letter can never be delivered.
    Undeliverable(u64),
    /// A message for the agent was put into its mailbox.
    Routed,
    /// Work is available for the idle agent.
    Offered(Offer),
    /// The deadline of the state has passed.
    Due,
}

/// An action of NEXUS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Start the agent, continue its session, or reconnect to it.
    Launch,
    Bootstrap,
    Reflect,
    /// Send the notice of COMPRESSION.
    Notice,
    /// Send the reminder of COMPRESSION.
    Remind,
    /// Report why its readiness was refused.
    NotReady(String),
    /// Report that the compression was cancelled.
    CalledOff,
    /// Submit a letter.
    Send(u64),
    /// Submit the letter in flight again, if the transcript lacks it.
    SendAgain(u64),
    /// Return the letter in flight to the mailbox.
    Requeue(u64),
    /// Answer a prompt.
    Reply(Prompt, Reply),
    /// Ask ADMIN about a prompt.
    AskAdmin(Prompt),
    /// Probe without typing.
    Probe,
    /// Check its claim of readiness.
    Verify,
    Compress,
    /// End the turn in flight.
    CancelTurn,
    StopAgent,
    Checkpoint(String),
    Tell(String),
}

impl Agent {
    /// Applies a trigger, and returns the actions.
    pub fn on(&mut self, now: Ms, trigger: Trigger, times: &Times) -> Vec<Act> {
        let before = self.state;
        let acts = Turning { now, times }.on(self, trigger);
        if self.state != before {
            self.since = now;
        }
        acts
    }

    fn go(&mut self, state: State, step: Step, deadline: Option<Ms>) {
        self.state = state;
        self.step = step;
        self.deadline = deadline;
    }
}

/// One step of the machine.
struct Turning<'a> {
    now: Ms,
    times: &'a Times,
}

impl Turning<'_> {
    fn in_secs(&self, secs: u64) -> Option<Ms> {
        Some(self.now.saturating_add(secs.saturating_mul(1000)))
    }

    fn on(&self, agent: &mut Agent, trigger: Trigger) -> Vec<Act> {
        match trigger {
            Trigger::Start => self.start(agent),
            Trigger::Stop => self.stop(agent),
            Trigger::Restart => self.restart(agent),
            Trigger::Pause => {
                agent.paused = true;
                Vec::new()
            }
            Trigger::Resume => {
                agent.paused = false;
                self.start(agent)
            }
            Trigger::Compress => self.compress(agent),
            Trigger::Reply(id, reply) => self.reply(agent, id.as_deref(), reply),
            Trigger::Cancel => self.cancel(agent),
            Trigger::Recover => self.recover(agent),
            Trigger::Failed(Failure::Missing(why)) => self.impossible(agent, &why),
            Trigger::Failed(Failure::Unreachable(why)) => self.unreachable(agent, &why),
            Trigger::Failed(failure) => self.launch_failed(agent, &failure.to_string()),
            Trigger::Ready { session, busy } => self.ready(agent, session, busy),
            Trigger::Session(session) => {
                agent.session = Some(session);
                Vec::new()
            }
            Trigger::TurnBegan => self.began(agent),
            Trigger::Seen(letter) => self.seen(agent, letter),
            Trigger::Progress => {
                self.moved(agent);
                Vec::new()
            }
            Trigger::Prompted(prompt, verdict) => self.prompted(agent, prompt, verdict),
            Trigger::PromptGone(id) => self.prompt_over(agent, &id),
            Trigger::Ended(ending) => self.ended(agent, ending),
            Trigger::Held(held) => self.held(agent, held),
            Trigger::Died(why) => self.died(agent, &why),
            Trigger::Stopped => self.stopped(agent),
            Trigger::Pressed(id, live) => self.pressed(agent, &id, live),
            Trigger::PressFailed(id) => self.press_failed(agent, &id),
            Trigger::Probed { alive, digest } => self.probed(agent, alive, digest),
            Trigger::Verified(result) => self.verified(agent, result),
            Trigger::Compressed(result) => self.compressed(agent, result),
            Trigger::Compacted => self.compacted(agent),
            Trigger::Undeliverable(letter) => self.undeliverable(agent, letter),
            Trigger::Routed => self.routed(agent),
            Trigger::Offered(offer) => self.offered(agent, offer),
            Trigger::Due => self.due(agent),
        }
    }
}

#[cfg(test)]
mod tests;
