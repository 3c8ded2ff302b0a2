//! The whole team as a state machine: inputs in, orders and log entries out.
//!
//! Invariants: it does no I/O, so the same inputs in the same order give the same
//! outputs; every order is in an entry of the log; state changes only in
//! [`World::handle`], and [`Output::patch`] has each changed row, so that a restart continues
//! where the log ends.
//!
//! ```text
//! act      converts the machine's actions to letters and orders
//! done     results of orders
//! event    events of agents
//! look     the state of the team, for people
//! route    parses outputs and delivers their messages
//! say      commands of ADMIN
//! tasks    the queue of tasks
//! work     gives work to free agents
//! ```

mod act;
mod command;
mod done;
mod event;
mod look;
mod route;
mod say;
mod tasks;
mod work;

pub use command::{AgentLine, Answer, Command};
pub use tasks::{Task, TaskChange, TaskState};

use crate::agent::{Agent, State};
use crate::backend::{
    Answered, Compressed, Event, Evidence, Failure, Launch, Mark, Probe, Prompt, Reply, Submission,
    Submitted,
};
use crate::clock::Ms;
use crate::config::Team;
use crate::machine::Trigger;
use crate::mail::Mailbox;
use crate::name::Name;
use crate::rates::Rates;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// An entry of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    pub n: u64,
    pub at: Ms,
    /// The agent that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
    pub why: String,
    /// The evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The number of the entry that caused this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<u64>,
    /// The state before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<State>,
    /// The state after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<State>,
    /// The resulting actions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub did: Vec<String>,
}

/// Changed rows of the state: the value as JSON by key, `None` for removed rows.
pub type Patch = BTreeMap<String, Option<String>>;

/// Key prefixes of rows; the last letter's number is stored so that it is not reused.
const AGENT: &str = "agent/";
const LETTER: &str = "letter/";
const TASK: &str = "task/";
const LAST_LETTER: &str = "last letter";

/// An order about an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub agent: Name,
    /// The entry with the reason.
    pub cause: u64,
    pub deed: Deed,
}

/// An action on an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// Start the agent, continue its session, or reconnect to it.
    Launch(Launch),
    /// Find the end of its transcript, before this letter is typed.
    Mark(u64),
    Submit(u64, Submission),
    /// Answer a prompt.
    Reply(Prompt, Reply),
    /// Probe the agent.
    Probe,
    /// Check its readiness, claimed after a notice at this time.
    Verify(Ms),
    Compress,
    Cancel,
    Stop,
    /// Commit its files with this message.
    Checkpoint(String),
}

/// The result of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// The commit, or that nothing changed.
    pub what: String,
    /// Files that are not in the commit, each with the reason.
    pub left_out: Vec<String>,
}

/// The result of an order.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// The result of a launch.
    Launched(Result<(), Failure>),
    Marked(u64, Result<Mark, Failure>),
    /// The result of submitting a letter.
    Submitted(u64, Result<Submitted, Failure>),
    /// The result of answering a prompt.
    Pressed(String, Result<Answered, Failure>),
    /// The result of a probe.
    Probed(Result<Box<Probe>, Failure>),
    /// Whether the agent is ready for compression.
    Verified(Result<(), String>),
    Compressed(Result<Compressed, Failure>),
    /// Whether there was a turn, which is then being cancelled.
    Cancelled(Result<bool, Failure>),
    /// The result of stopping the agent.
    Stopped(Result<(), Failure>),
    /// The result of committing its files.
    Committed(Result<Commit, String>),
}

/// An input of the world.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// NEXUS started.
    Began,
    Event(Name, Event),
    /// The result of an order, which this entry logged.
    Done(Name, u64, Done),
    Said(Command),
    /// Another configuration was loaded.
    Reloaded(Box<Team>),
    Tick,
}

/// The result of an input.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// Entries to log before the orders are executed.
    pub entries: Vec<Entry>,
    /// The changed rows of the state.
    pub patch: Patch,
    /// The orders that follow.
    pub orders: Vec<Order>,
    /// The answer to ADMIN's command.
    pub answer: Option<Answer>,
}

#[derive(Debug, Clone, Default)]
pub struct World {
    team: Team,
    agents: BTreeMap<Name, Agent>,
    mail: Mailbox,
    tasks: BTreeMap<u64, Task>,
    rates: Rates,
    last_entry: u64,
    now: Ms,
    out: Output,
    changed_agents: BTreeSet<Name>,
    changed_tasks: BTreeSet<u64>,
}

impl World {
    /// Creates a team without any known state.
    pub fn new(team: Team) -> Self {
        Self {
            team,
            ..Self::default()
        }
    }

    /// Numbers further entries after this one.
    pub fn go_on_behind(&mut self, entry: u64) {
        self.last_entry = entry;
    }

    /// Restores a row of the state.
    pub fn restore(&mut self, key: &str, value: &str) -> Result<(), serde_json::Error> {
        let id = |key: &str| key.parse().map_err(serde_json::Error::custom);
        if let Some(name) = key.strip_prefix(AGENT) {
            let name = name.parse().map_err(serde_json::Error::custom)?;
            self.agents.insert(name, serde_json::from_str(value)?);
        } else if let Some(key) = key.strip_prefix(LETTER) {
            self.mail.restore(id(key)?, serde_json::from_str(value)?);
        } else if let Some(key) = key.strip_prefix(TASK) {
            self.tasks.insert(id(key)?, serde_json::from_str(value)?);
        } else if key == LAST_LETTER {
            self.mail.go_on_behind(serde_json::from_str(value)?);
        }
        Ok(())
    }

    /// The agents of the team.
    pub fn agents(&self) -> &BTreeMap<Name, Agent> {
        &self.agents
    }

    /// The agents, the number of letters for ADMIN, and the number of open tasks.
    pub fn board(&mut self, now: Ms) -> (Vec<AgentLine>, usize, usize) {
        self.now = self.now.max(now);
        self.summary()
    }

    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Applies an input and returns the result.
    pub fn handle(&mut self, now: Ms, input: Input) -> Output {
        self.now = self.now.max(now);
        match input {
            Input::Began => self.began(),
            Input::Event(name, event) => self.event(&name, event),
            Input::Done(name, cause, done) => self.done(&name, cause, done),
            Input::Said(command) => self.said(command),
            Input::Reloaded(team) => self.reloaded(*team),
            Input::Tick => self.tick(),
        }
        self.give_work();
        let mut out = std::mem::take(&mut self.out);
        out.patch = self.take_patch();
        out
    }

    fn take_patch(&mut self) -> Patch {
        let agents = std::mem::take(&mut self.changed_agents);
        let mut tasks = std::mem::take(&mut self.changed_tasks);
        if !tasks.is_empty() {
            tasks.extend(tasks::forget(&mut self.tasks));
        }
        let letters = self.mail.take_changes();
        let last = (!letters.is_empty()).then(|| (LAST_LETTER.into(), json(&self.mail.last())));
        let agent = |name: Name| (format!("{AGENT}{name}"), json(&self.agents.get(&name)));
        let letter = |id| (format!("{LETTER}{id}"), json(&self.mail.get(id)));
        let task = |id| (format!("{TASK}{id}"), json(&self.tasks.get(&id)));
        let agents = agents.into_iter().map(agent);
        let letters = letters.into_iter().map(letter);
        let tasks = tasks.into_iter().map(task);
        agents.chain(letters).chain(tasks).chain(last).collect()
    }

    /// Handles the start of NEXUS: adds new agents, and reconnects to those that were running.
    fn began(&mut self) {
        let names: Vec<Name> = self.team.agents.keys().cloned().collect();
        let known: Vec<Name> = self.agents.keys().cloned().collect();
        for name in known.iter().filter(|name| !names.contains(name)) {
            self.part_with(name);
        }
        for name in names {
            let is_new = !self.agents.contains_key(&name);
            if is_new {
                self.agents.insert(name.clone(), Agent::new(self.now));
            }
            let trigger = if is_new {
                Trigger::Start
            } else {
                Trigger::Recover
            };
            self.trigger(&name, trigger, "NEXUS started", None, None);
        }
    }

    fn tick(&mut self) {
        let now = self.now;
        let is_due = |agent: &Agent| agent.deadline.is_some_and(|at| at <= now);
        let due: Vec<Name> = self
            .agents
            .iter()
            .filter(|(_, agent)| is_due(agent))
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            self.trigger(&name, Trigger::Due, "deadline passed", None, None);
        }
        self.retry();
    }

    /// The next deadline.
    pub fn next_due(&self) -> Option<Ms> {
        let agents = self.agents.values().filter_map(|agent| agent.deadline);
        let letters = self.mail.letters().values().filter_map(|letter| {
            let at = letter.course.not_before;
            (at > self.now).then_some(at)
        });
        let compression = self.agents.values().filter_map(|agent| {
            let at = agent.no_compression_before;
            (at > self.now).then_some(at)
        });
        agents.chain(letters).chain(compression).min()
    }

    fn agent_mut(&mut self, name: &Name) -> Option<&mut Agent> {
        self.changed_agents.insert(name.clone());
        self.agents.get_mut(name)
    }

    /// Creates an entry with the next number.
    fn entry(&mut self, agent: Option<&Name>, why: String, evidence: Option<Evidence>) -> Entry {
        self.last_entry += 1;
        Entry {
            n: self.last_entry,
            at: self.now,
            agent: agent.cloned(),
            why,
            evidence,
            ..Entry::default()
        }
    }

    /// Logs an entry without actions.
    fn note(&mut self, agent: Option<&Name>, why: impl Into<String>, evidence: Option<Evidence>) {
        let entry = self.entry(agent, why.into(), evidence);
        self.out.entries.push(entry);
    }
}

/// A value as JSON; `None` if it cannot be serialized.
fn json(value: &impl Serialize) -> Option<String> {
    let text = serde_json::to_string(value).expect("plain data is JSON");
    (text != "null").then_some(text)
}

#[cfg(test)]
mod tests;
