//! The state machine of an agent: triggers in, acts out.
//!
//! Invariants: total, so every trigger in every state is answered; pure, so the
//! same agent and trigger give the same; only open prompts are answered, and each
//! once; nothing is sent to a working agent; every state has a way out.
//!
//! Absent: mail, files, time but for the `now` that is handed in.

mod admin;
mod life;
mod watch;

use crate::agent::{Agent, State, Step};
use crate::backend::{Failure, Prompt, Reply};
use crate::clock::Ms;
use serde::{Deserialize, Serialize};

/// How long things may take; all of it configurable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Times {
    /// Silence after which a working agent is probed.
    pub silent_secs: u64,
    /// For BOOTSTRAP to be answered, and for a launch.
    pub bootstrap_secs: u64,
    /// Until an agent without work is asked to reflect.
    pub reflection_secs: u64,
    /// For readiness after a notice of compression.
    pub readiness_secs: u64,
    /// For readiness after the one reminder.
    pub reminder_secs: u64,
    /// For ADMIN to approve a compression; the agent works on then.
    pub approval_secs: u64,
    /// Starts again within [`RESTART_WINDOW_MS`].
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

/// Within which starts are counted.
pub const RESTART_WINDOW_MS: Ms = 5 * 60 * 1000;

/// Pause before the first start again; each further one waits five times longer.
const BACKOFF_MS: Ms = 1000;

/// How often BOOTSTRAP is repeated.
const BOOTSTRAPS: u32 = 2;

/// Probes in a row that see nothing move, until an agent counts as stuck: a long build
/// is silent for some minutes, too.
const SAME_PROBES: u32 = 5;

/// Until compression is tried again after it came to nothing.
const COMPRESSION_AGAIN_MS: Ms = 60 * 60 * 1000;

/// Until compression may be due again after it was done: what made it due may hold on.
const COMPRESSION_DONE_MS: Ms = 10 * 60 * 1000;

/// Claims of readiness that are refused with the reason; the next one ends the
/// compression.
const REFUSALS: u32 = 3;

/// Prompts of one turn that rules deny; further ones go to ADMIN, since an agent
/// that repeats a denied command would loop at the speed of its model.
const DENIALS: u32 = 10;

/// Between two launches while the daemon does not answer.
const AWAY_MS: Ms = 10 * 1000;

/// How a turn ended, as far as states care.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ending {
    /// Whether it confirmed the identity that was asked for.
    pub identity: bool,
    /// Whether it said that it is ready for compression.
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
    /// ADMIN: run it.
    Start,
    /// ADMIN: end it.
    Stop,
    /// ADMIN: end it and run it again.
    Restart,
    /// ADMIN: nothing new for it.
    Pause,
    /// ADMIN: go on.
    Resume,
    /// ADMIN: compress it at the end of its turn.
    Compress,
    /// ADMIN: this, to the prompt of this id or the oldest, or about the compression.
    Reply(Option<String>, Reply),
    /// ADMIN: no compression; or the turn in flight ends.
    Cancel,
    /// NEXUS was started again: what was known is from before.
    Recover,
    /// It could not be started, or is not reached.
    Failed(Failure),
    /// It takes messages.
    Ready {
        session: String,
        /// Whether a turn is in flight.
        busy: bool,
    },
    /// Its session has another name.
    Session(String),
    TurnBegan,
    /// The transcript has a letter.
    Seen(u64),
    Progress,
    /// It waits for an answer, and this is what rules say, if they say anything.
    Prompted(Prompt, Option<Reply>),
    /// A prompt waits no more.
    PromptGone(String),
    /// A turn ended, and its output was read.
    Ended(Ending),
    /// A person is at its window, or not any more.
    Held(bool),
    Died(String),
    Stopped,
    /// A prompt was answered: it was live (true) or gone before.
    Pressed(String, bool),
    /// An answer to a prompt failed.
    PressFailed(String),
    /// A probe's findings but for prompts, which come as such.
    Probed {
        alive: bool,
        /// A digest of the screen or the events.
        digest: String,
    },
    Verified(Result<(), String>),
    /// Compression answered with the session from now on.
    Compressed(Result<String, String>),
    /// Its context was compacted without an order.
    Compacted,
    /// A letter cannot be delivered at all.
    Undeliverable(u64),
    /// A message for it was put into its mailbox.
    Routed,
    /// There is something to do for it.
    Offered(Offer),
    /// The state's time is up.
    Due,
}

/// An action of NEXUS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Start it, take its session up, or find it.
    Launch,
    Bootstrap,
    Reflect,
    /// Send the notice of COMPRESSION.
    Notice,
    /// Send the reminder of it.
    Remind,
    /// Say why its readiness was refused.
    NotReady(String),
    /// Say that the compression is called off.
    CalledOff,
    /// Submit a letter.
    Send(u64),
    /// Submit the letter in flight again, if the transcript lacks it.
    SendAgain(u64),
    /// The letter in flight goes back into the mailbox.
    Requeue(u64),
    /// Answer a prompt.
    Reply(Prompt, Reply),
    /// Ask ADMIN about a prompt.
    AskAdmin(Prompt),
    /// Look at everything, type nothing.
    Probe,
    /// Check the readiness that it claims.
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
