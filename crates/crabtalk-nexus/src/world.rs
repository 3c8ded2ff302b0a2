//! The whole team: what happened in, what is to be done and to be written out.
//!
//! Invariants: pure but for what it keeps, so that the same things in the same
//! order give the same; nothing is to be done that is not in an entry of the
//! log; what is kept changes only in [`World::handle`], and [`Output::patch`] has
//! all of it, so that a restart begins where the log ends.
//!
//! ```text
//! act      what the machine of an agent wants, made into letters and orders
//! done     what orders came to
//! event    what agents tell
//! look     how everybody is, for people
//! route    outputs, read and passed on
//! say      what ADMIN says
//! tasks    the queue, and how long what is done stays known
//! work     what goes to whom that is free
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
    Answered, Compressed, Compression, Event, Evidence, Failure, Launch, Mark, Probe, Prompt,
    Submission, Submitted,
};
use crate::clock::Ms;
use crate::config::Team;
use crate::machine::Trigger;
use crate::mail::{Course, Letter, Mailbox};
use crate::name::Name;
use crate::waits::{Rates, Waits};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A line of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    pub n: u64,
    pub at: Ms,
    /// Whom it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
    pub why: String,
    /// How that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The entry that ordered what came to this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<u64>,
    /// Where the agent was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<State>,
    /// Where it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<State>,
    /// What is done about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub did: Vec<String>,
}

/// Why an entry is there that only holds what changed.
const KEPT: &str = "kept";

impl Entry {
    /// Whether it tells a person nothing.
    pub(crate) fn is_silent(&self) -> bool {
        self.agent.is_none() && self.did.is_empty() && self.why == KEPT
    }
}

/// What changed, to be taken in again after a restart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Patch {
    /// Agents as they are now.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<Name, Agent>,
    /// New letters.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub letters: BTreeMap<u64, Letter>,
    /// Courses of letters.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub courses: BTreeMap<u64, Course>,
    /// Tasks as they are now.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<u64, Task>,
    /// Who waits for whom now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// The last letter's number, in whole states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_letter: Option<u64>,
}

/// Something to do with an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub agent: Name,
    /// The entry that says why.
    pub cause: u64,
    pub deed: Deed,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// Bring it up.
    Launch(Launch),
    /// Find where its transcript ends, before this letter is typed.
    Mark(u64),
    Submit(u64, Submission),
    Allow(Prompt),
    /// Allow a prompt for good.
    AllowAlways(Prompt),
    Answer(Prompt, String),
    Deny(Prompt, String),
    /// Look.
    Probe,
    /// One Enter for this draft.
    Nudge(String),
    /// Check its readiness, claimed after a notice of this time.
    Verify(Ms),
    /// Find where its transcript ends, before it is compressed.
    MarkCompression,
    /// Compress it; with a mark it may have been done since.
    Compress(Compression, Option<Mark>),
    Cancel,
    Stop,
    /// Commit its files, with this message.
    Checkpoint(String),
}

/// What came of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// Which it is, or that nothing changed.
    pub what: String,
    /// Files that are not in it, each with the reason.
    pub left_out: Vec<String>,
}

/// What an order came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// It is started or found, or not.
    Launched(Result<(), Failure>),
    Marked(u64, Result<Mark, Failure>),
    /// A letter is on its way, or not.
    Submitted(u64, Result<Submitted, Failure>),
    /// A prompt was answered, or not.
    Pressed(String, Result<Answered, Failure>),
    /// What was seen.
    Probed(Result<Box<Probe>, Failure>),
    /// A draft was entered, or not.
    Nudged(Result<Answered, Failure>),
    /// Whether it is ready.
    Verified(Result<(), String>),
    /// Where the transcript ends before the compression.
    CompressionMarked(Result<Mark, Failure>),
    Compressed(Result<Compressed, Failure>),
    /// Its turn was cancelled, or not.
    Cancelled(Result<(), Failure>),
    /// It is ended, or not.
    Stopped(Result<(), Failure>),
    /// Its files are committed: which commit, or that nothing changed.
    Committed(Result<Commit, String>),
    /// Bytes of its files.
    Measured(u64),
}

/// What happens to the team.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// NEXUS begins.
    Began,
    Event(Name, Event),
    /// An order of this entry came to something.
    Done(Name, u64, Done),
    Said(Command),
    /// Another configuration was read.
    Reloaded(Box<Team>),
    Tick,
    /// The log could not be written for a while, and why.
    Wrote(String),
}

/// What came of an input.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// What is to be written, before anything is done.
    pub entries: Vec<Entry>,
    /// What changed with it.
    pub patch: Patch,
    /// What is to be done then.
    pub orders: Vec<Order>,
    /// What ADMIN is answered then.
    pub answer: Option<Answer>,
}

#[derive(Debug, Clone, Default)]
pub struct World {
    team: Team,
    agents: BTreeMap<Name, Agent>,
    mail: Mailbox,
    tasks: BTreeMap<u64, Task>,
    waits: Waits,
    rates: Rates,
    last_entry: u64,
    /// When an earlier life wrote its last entry.
    last_at: Ms,
    now: Ms,
    out: Output,
    changed_agents: BTreeSet<Name>,
    changed_tasks: BTreeSet<u64>,
    waits_changed: bool,
}

impl World {
    /// A team of which nothing is known yet.
    pub fn new(team: Team) -> Self {
        Self {
            team,
            ..Self::default()
        }
    }

    /// Takes in what a log has, of an entry of this number and time.
    pub fn restore(&mut self, n: u64, at: Ms, patch: Patch) {
        self.last_entry = self.last_entry.max(n);
        self.last_at = at;
        self.agents.extend(patch.agents);
        let has_tasks = !patch.tasks.is_empty();
        self.tasks.extend(patch.tasks);
        if has_tasks {
            tasks::forget(&mut self.tasks);
        }
        self.mail.restore(patch.letters, patch.courses);
        self.mail
            .go_on_behind(patch.last_letter.unwrap_or_default());
        if let Some(waits) = patch.waits {
            self.waits = waits;
        }
    }

    /// All that [`Self::restore`] needs, as one patch, and up to which entry.
    pub fn whole(&self) -> (u64, Patch) {
        let patch = Patch {
            agents: self.agents.clone(),
            letters: self.mail.letters().clone(),
            courses: BTreeMap::new(),
            tasks: self.tasks.clone(),
            waits: Some(self.waits.clone()),
            last_letter: Some(self.mail.last()),
        };
        (self.last_entry, patch)
    }

    /// The agents of the team.
    pub fn agents(&self) -> &BTreeMap<Name, Agent> {
        &self.agents
    }

    /// How everybody is, as [`Answer::Board`] tells it less what happened.
    pub fn board(&mut self, now: Ms) -> (Vec<AgentLine>, usize, usize) {
        self.now = self.now.max(now);
        self.summary()
    }

    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Takes in what happened, and says what comes of it.
    pub fn handle(&mut self, now: Ms, input: Input) -> Output {
        self.now = self.now.max(now);
        match input {
            Input::Began => self.began(),
            Input::Event(name, event) => self.event(&name, event),
            Input::Done(name, cause, done) => self.done(&name, cause, done),
            Input::Said(command) => self.said(command),
            Input::Reloaded(team) => self.reloaded(*team),
            Input::Tick => self.tick(),
            Input::Wrote(why) => {
                let why =
                    format!("the log can be written again, {why}; nothing was done meanwhile");
                self.note(None, why, None);
            }
        }
        self.give_work();
        let mut out = std::mem::take(&mut self.out);
        out.patch = self.take_patch();
        // Courses may change with nothing to say about it.
        if out.entries.is_empty() && out.patch != Patch::default() {
            out.entries.push(self.entry(None, KEPT.into(), None));
        }
        out
    }

    fn take_patch(&mut self) -> Patch {
        let agents = std::mem::take(&mut self.changed_agents);
        let tasks = std::mem::take(&mut self.changed_tasks);
        if !tasks.is_empty() {
            tasks::forget(&mut self.tasks);
        }
        let (letters, courses) = self.mail.take_changes();
        let agent = |name: Name| Some((name.clone(), self.agents.get(&name)?.clone()));
        let task = |id: u64| Some((id, self.tasks.get(&id)?.clone()));
        Patch {
            agents: agents.into_iter().filter_map(agent).collect(),
            tasks: tasks.into_iter().filter_map(task).collect(),
            letters,
            courses,
            waits: std::mem::take(&mut self.waits_changed).then(|| self.waits.clone()),
            last_letter: None,
        }
    }

    /// NEXUS begins: agents that are new are made, those that ran are looked
    /// for.
    fn began(&mut self) {
        self.go_back();
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
            let manual = self.team.agents.get(&name).is_some_and(|m| m.manual);
            let trigger = if is_new && !manual {
                Trigger::Start
            } else {
                Trigger::Recover
            };
            self.trigger(&name, trigger, "NEXUS begins", None, None);
        }
    }

    /// The system's clock was ahead in the last life: what waits for a time, or counts
    /// from one, is as far from now as it was from then.
    fn go_back(&mut self) {
        let ahead = self.last_at.saturating_sub(self.now);
        if ahead == 0 {
            return;
        }
        for (name, agent) in &mut self.agents {
            agent.go_back(ahead);
            self.changed_agents.insert(name.clone());
        }
        self.mail.go_back(ahead);
        let secs = ahead / 1000;
        let why = format!("the clock was {secs} s ahead when NEXUS ended; its times are set back");
        self.note(None, why, None);
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
            self.trigger(&name, Trigger::Due, "the time is up", None, None);
        }
        self.retry();
    }

    /// When something is due next though nothing happens.
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

    /// The number of the entry that is being written, or will be next.
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

    /// Writes down something that needs nothing done.
    fn note(&mut self, agent: Option<&Name>, why: impl Into<String>, evidence: Option<Evidence>) {
        let entry = self.entry(agent, why.into(), evidence);
        self.out.entries.push(entry);
    }
}

#[cfg(test)]
mod tests;
