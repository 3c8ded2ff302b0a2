//! Gives work to free agents.
//!
//! Invariant: the order is urgent mail, urgent compression, mail, compression, tasks,
//! reflection; an agent gets one of them at a time.

use super::{TaskState, World};
use crate::agent::{Agent, State, Step};
use crate::grammar::Priority;
use crate::machine::{Offer, Trigger};
use crate::mail::{Fate, Kind, Mail};
use crate::name::Name;
use crate::texts;

impl World {
    /// Gives each free agent its next work.
    pub(super) fn give_work(&mut self) {
        let mut free: Vec<(u64, Name)> = self
            .agents
            .iter()
            .filter(|(_, agent)| agent.is_free())
            .map(|(name, agent)| (agent.since, name.clone()))
            .collect();
        // The longest-idle agent gets a task for any agent.
        free.sort();
        for (_, name) in free {
            if let Some((offer, why)) = self.next_offer(&name) {
                self.trigger(&name, Trigger::Offered(offer), &why, None, None);
            }
        }
    }

    fn next_offer(&mut self, name: &Name) -> Option<(Offer, String)> {
        let letter = self.mail.next_for(name, self.now);
        if let Some((id, Priority::Urgent)) = letter {
            return Some((Offer::Letter(id), "free; urgent mail is next".into()));
        }
        let due = self.compression_due(name);
        if let Some((why, true)) = &due {
            return Some((Offer::Compression(why.clone()), why.clone()));
        }
        if let Some((id, _)) = letter {
            return Some((Offer::Letter(id), "free; mail is next".into()));
        }
        if let Some((why, false)) = due {
            return Some((Offer::Compression(why.clone()), why));
        }
        if let Some((id, letter)) = self.assign(name) {
            return Some((Offer::Letter(letter), format!("free; task t{id} is next")));
        }
        let agent = self.agents.get(name)?;
        // The deadline of IDLE is removed when it has passed.
        if agent.deadline.is_some() {
            return None;
        }
        if let Some(letter) = self.remind_of_task(name) {
            return Some((Offer::Letter(letter), "idle with an open task".into()));
        }
        self.tell_of_stuck_task(name);
        let worked = self.agents.get(name).is_some_and(|agent| agent.worked);
        worked.then(|| (Offer::Reflection, "idle for long after work".into()))
    }

    /// The reason why a context must be compressed now, and whether before mail.
    fn compression_due(&self, name: &Name) -> Option<(String, bool)> {
        let agent = self.agents.get(name)?;
        let compresses = |other: &Agent| {
            matches!(
                other.step,
                Step::Noticed | Step::Verifying | Step::Awaiting | Step::Compressing
            )
        };
        if self.agents.values().any(compresses) {
            return None;
        }
        if agent.compress_wanted {
            return Some(("ADMIN requested compression".into(), true));
        }
        if self.now < agent.no_compression_before {
            return None;
        }
        let due = agent.meters.due(self.now)?;
        Some((due.why, due.urgent))
    }

    /// Assigns the next open task to an agent without one.
    fn assign(&mut self, name: &Name) -> Option<(u64, u64)> {
        let has = |task: &super::Task| matches!(&task.state, TaskState::Assigned { agent, .. } if agent == name);
        if self.tasks.values().any(has) {
            return None;
        }
        let fits = |task: &super::Task| {
            task.state == TaskState::Open && task.to.as_ref().is_none_or(|to| to == name)
        };
        let (id, task) = self.tasks.iter_mut().find(|(_, task)| fits(task))?;
        let id = *id;
        task.state = TaskState::Assigned {
            agent: name.clone(),
            at: self.now,
            reminded: false,
            told: false,
        };
        let (topic, body) = (task.topic.clone(), task.body.clone());
        self.changed_tasks.insert(id);
        let mail = Mail::own(name, topic, Kind::Task(id), body, self.now);
        Some((id, self.mail.post(mail)))
    }

    /// Reminds an idle agent once of its task.
    fn remind_of_task(&mut self, name: &Name) -> Option<u64> {
        let now = self.now;
        let (id, task) = self.tasks.iter_mut().find(|(_, task)| {
            matches!(
                &task.state,
                TaskState::Assigned { agent, reminded: false, .. } if agent == name
            )
        })?;
        let id = *id;
        if let TaskState::Assigned { reminded, .. } = &mut task.state {
            *reminded = true;
        }
        let topic = task.topic.clone();
        self.changed_tasks.insert(id);
        let mail = Mail::own(name, topic, Kind::Task(id), texts::task_reminder(), now);
        Some(self.mail.post(mail))
    }

    /// Removes an agent that left the team: ADMIN decides about its queued letters, and its
    /// tasks are open again.
    pub(super) fn part_with(&mut self, name: &Name) {
        self.free_tasks(name);
        let letters = self.mail.letters().iter();
        let its = letters.filter(|(_, letter)| letter.mail.to == *name);
        let its: Vec<(u64, Mail)> = its.map(|(id, of)| (*id, of.mail.clone())).collect();
        for (id, mail) in its {
            let reason = "its agent left the team".to_owned();
            self.mail
                .change(id, |course| course.fate = Fate::Dead(reason));
            if mail.kind == Kind::Plain {
                self.tell_of(
                    name,
                    format!("it left the team; not delivered: {}", mail.text()),
                );
            }
        }
        for (id, task) in &mut self.tasks {
            let is_its = matches!(&task.state, TaskState::Assigned { agent, .. } if agent == name);
            if is_its {
                task.state = TaskState::Open;
                self.changed_tasks.insert(*id);
            }
        }
        let open = self
            .tasks
            .iter()
            .filter(|(_, task)| task.state == TaskState::Open && task.to.as_ref() == Some(name));
        let open: Vec<String> = open.map(|(id, _)| format!("t{id}")).collect();
        if !open.is_empty() {
            let open = open.join(", ");
            self.tell_of(
                name,
                format!("it left the team, and tasks wait for it: {open}"),
            );
        }
        self.agents.remove(name);
        self.changed_agents.insert(name.clone());
    }

    /// Requeues the tasks for any agent that a failed agent had.
    pub(super) fn free_tasks(&mut self, name: &Name) {
        let mut freed = Vec::new();
        for (id, task) in &mut self.tasks {
            let has = matches!(&task.state, TaskState::Assigned { agent, .. } if agent == name);
            if has && task.to.is_none() {
                task.state = TaskState::Open;
                freed.push(*id);
            }
        }
        for id in freed {
            self.changed_tasks.insert(id);
            self.drop_task_letters(id, "its task was requeued");
            self.note(Some(name), format!("task t{id} is open again"), None);
        }
    }

    /// Whether an agent can no longer work on its tasks.
    pub(super) fn is_gone(&self, name: &Name) -> bool {
        self.agents
            .get(name)
            .is_none_or(|agent| matches!(agent.state, State::Failed | State::Offline))
    }
}
