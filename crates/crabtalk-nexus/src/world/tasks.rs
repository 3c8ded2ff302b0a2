//! The queue of tasks.
//!
//! Invariants: open tasks and the last task are never dropped, so that numbers are not
//! reused; the number of done tasks is bounded.

use super::{Answer, World};
use crate::clock::Ms;
use crate::grammar::Priority;
use crate::mail::{Fate, Kind, Mail};
use crate::name::{Name, Topic};
use crate::texts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of done tasks in the state. The log has
/// all of them.
const MAX_DONE: usize = 1000;

/// Maximum bytes of their texts and answers.
const MAX_DONE_BYTES: usize = 4 * 1024 * 1024;

/// A task of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The agent for it; `None` for any agent.
    pub to: Option<Name>,
    pub topic: Topic,
    /// Its text.
    pub body: String,
    /// When it was added.
    pub at: Ms,
    pub state: TaskState,
}

/// The state of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum TaskState {
    Open,
    Assigned {
        agent: Name,
        at: Ms,
        /// Whether the agent was reminded.
        reminded: bool,
        /// Whether ADMIN was informed that the agent does not finish it.
        #[serde(default)]
        told: bool,
    },
    Done {
        agent: Name,
        at: Ms,
        /// The answer.
        answer: String,
    },
}

/// A change of a task by ADMIN.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskChange {
    /// The task is done, with this result.
    Done(String),
    /// The task goes to this agent, or to any.
    Reassign(Option<Name>),
    Remove,
}

impl World {
    pub(super) fn change_task(&mut self, id: u64, change: TaskChange) -> Result<Answer, String> {
        if let TaskChange::Reassign(Some(to)) = &change
            && !self.agents.contains_key(to)
        {
            return Err(texts::nobody(to, self.agents.keys()));
        }
        let now = self.now;
        let task = self.tasks.get_mut(&id);
        let task = task.ok_or_else(|| format!("no task t{id}"))?;
        if matches!(task.state, TaskState::Done { .. }) {
            return Err(format!("t{id} is done already"));
        }
        let done = |answer| TaskState::Done {
            agent: Name::admin(),
            at: now,
            answer,
        };
        let (state, said) = match change {
            TaskChange::Done(answer) => (done(answer), format!("t{id} is done")),
            TaskChange::Remove => (done("removed".into()), format!("t{id} is removed")),
            TaskChange::Reassign(to) => {
                task.to = to;
                let to = task.to.as_ref().map_or("ANY", Name::as_str);
                (TaskState::Open, format!("t{id} is open again, for @{to}"))
            }
        };
        let before = std::mem::replace(&mut task.state, state);
        let topic = task.topic.clone();
        self.changed_tasks.insert(id);
        let delivered = self.drop_task_letters(id, "ADMIN changed its task");
        if let TaskState::Assigned { agent, .. } = before
            && delivered
        {
            let mail = Mail::own(&agent, topic, Kind::Status, texts::task_taken(), now);
            self.mail.post(mail);
        }
        self.note(None, format!("ADMIN: {said}"), None);
        Ok(Answer::Done { said })
    }

    /// Gives up the letters of a task, except one in delivery; returns whether
    /// an agent has received one.
    pub(super) fn drop_task_letters(&mut self, id: u64, why: &str) -> bool {
        let flights = self.agents.values().filter_map(|agent| agent.flight);
        let flights: Vec<u64> = flights.map(|flight| flight.letter).collect();
        let letters = self.mail.letters().iter();
        let of_task = letters.filter(|(_, letter)| letter.mail.kind == Kind::Task(id));
        let of_task: Vec<(u64, bool)> = of_task
            .map(|(letter, of)| (*letter, of.course.fate != Fate::Queued))
            .collect();
        for (letter, _) in &of_task {
            if !flights.contains(letter) {
                self.mail
                    .change(*letter, |course| course.fate = Fate::Dead(why.to_owned()));
            }
        }
        of_task.is_empty() || of_task.iter().any(|(_, delivered)| *delivered)
    }

    /// Informs ADMIN once that an agent is idle although it was reminded of its task.
    pub(super) fn tell_of_stuck_task(&mut self, name: &Name) {
        let stuck = self
            .tasks
            .iter_mut()
            .find_map(|(id, task)| match &mut task.state {
                TaskState::Assigned {
                    agent,
                    reminded: true,
                    told: told @ false,
                    ..
                } if agent == name => {
                    *told = true;
                    Some(*id)
                }
                TaskState::Assigned { .. } | TaskState::Open | TaskState::Done { .. } => None,
            });
        let Some(id) = stuck else { return };
        self.changed_tasks.insert(id);
        let text = format!(
            "task t{id} is still open after a reminder and blocks its next tasks; end it with \
             `crabtalk nexus task done t{id}`, `task reassign` or `task rm`"
        );
        self.warn(name, "TASK", Priority::Normal, text);
    }
}

/// Drops the oldest done tasks beyond the limits; returns their numbers.
pub(super) fn forget(tasks: &mut BTreeMap<u64, Task>) -> Vec<u64> {
    let mut done: Vec<(Ms, u64, usize)> = tasks
        .iter()
        .filter_map(|(id, task)| match &task.state {
            TaskState::Open | TaskState::Assigned { .. } => None,
            TaskState::Done { at, answer, .. } => Some((*at, *id, task.body.len() + answer.len())),
        })
        .collect();
    done.sort_unstable_by(|a, b| b.cmp(a));
    let last = tasks.keys().next_back().copied();
    let (mut bytes, mut forgotten) = (0, Vec::new());
    for (place, (_, id, length)) in done.into_iter().enumerate() {
        bytes += length;
        let is_kept = place < MAX_DONE && bytes <= MAX_DONE_BYTES;
        if !is_kept && last != Some(id) {
            tasks.remove(&id);
            forgotten.push(id);
        }
    }
    forgotten
}
