//! The state of the team, for people.

use super::command::AgentLine;
use super::{Task, TaskState, World};
use crate::agent::{Agent, Standing, State, Step};
use crate::backend::Prompt;
use crate::mail::Mail;
use crate::name::Name;

/// Maximum characters stored of the last message: a row of a wide terminal.
const LAST_CHARS: usize = 160;

/// Maximum bytes of a prompt that watchers get: pages of text.
const MAX_SHOWN: usize = 64 * 1024;

fn shown(prompt: &Prompt) -> Prompt {
    let mut prompt = prompt.clone();
    for text in [&mut prompt.text, &mut prompt.subject] {
        text.truncate(text.floor_char_boundary(MAX_SHOWN));
    }
    prompt
}

impl World {
    /// The state of each agent in one line, the number of letters for ADMIN, and the number of open
    /// tasks.
    pub(super) fn summary(&self) -> (Vec<AgentLine>, usize, usize) {
        let line = |(name, agent)| self.line(name, agent);
        let is_open = |task: &&Task| !matches!(task.state, TaskState::Done { .. });
        let inbox = self.mail.waiting_for(&Name::admin());
        let tasks = self.tasks.values().filter(is_open).count();
        (self.agents.iter().map(line).collect(), inbox, tasks)
    }

    fn line(&self, name: &Name, agent: &Agent) -> AgentLine {
        let flags = [
            ("monitor off", !agent.monitor),
            ("held", agent.held),
            ("paused", agent.paused),
            ("not committed", !agent.unsaved.is_empty()),
        ];
        let set = flags.iter().filter(|(_, set)| *set);
        let mut asked = agent.waiting.iter();
        let asked = asked.find(|w| w.standing == Standing::Asked);
        let member = self.team.agents.get(name);
        AgentLine {
            name: name.clone(),
            state: agent.state,
            for_ms: self.now.saturating_sub(agent.since),
            queue: self.mail.waiting_for(name),
            kind: member.and_then(|m| m.kind.clone()).unwrap_or_default(),
            tokens: agent.meters.tokens,
            window: agent.meters.window,
            percent: agent.meters.percent(),
            turns: agent.meters.turns,
            flags: set.map(|(flag, _)| (*flag).to_owned()).collect(),
            note: agent.note.clone(),
            last: agent.last.clone(),
            waits_for: waits_for(agent),
            for_admin: asked.is_some() || agent.step == Step::Awaiting,
            is_cut: asked.is_some_and(|waiting| waiting.prompt.text.len() > MAX_SHOWN),
            waits: asked.map(|waiting| shown(&waiting.prompt)),
        }
    }

    /// Stores the last message to or from an agent.
    pub(super) fn remember(&mut self, name: &Name, mail: &Mail) {
        let topic = mail.topic.as_ref().map_or("", |topic| topic.as_str());
        let (arrow, other) = match mail.from == *name {
            true => ("→", &mail.to),
            false => ("←", &mail.from),
        };
        let body = mail.body.trim().lines().next().unwrap_or_default();
        let line = format!("{arrow} {other} [{topic}] {body}");
        let last: String = line.chars().take(LAST_CHARS).collect();
        if self
            .agents
            .get(name)
            .is_some_and(|agent| agent.last != last)
            && let Some(agent) = self.agent_mut(name)
        {
            agent.last = last;
        }
    }
}

/// The reason why an agent waits, in words; empty if it does not wait.
fn waits_for(agent: &Agent) -> String {
    if let Some(waiting) = agent.waiting.first() {
        let what = super::act::short(&waiting.prompt);
        let (_, what) = what.split_once("] ").unwrap_or(("", &what));
        return match &waiting.standing {
            Standing::Asked if waiting.prompt.is_question => "your answer".into(),
            Standing::Asked => format!("your approval: {what}"),
            _ if agent.held => format!("the person at its window: {what}"),
            Standing::Pressed => format!("its prompt to close: {what}"),
            Standing::Decided(_) => format!("its answer to be delivered: {what}"),
        };
    }
    match agent.step {
        Step::Stopping => return "its stop".into(),
        Step::Backoff => return "the pause before its restart".into(),
        Step::Launching => return "its start".into(),
        Step::Bootstrapping => return "its startup confirmation".into(),
        Step::Noticed => return "its readiness for compression".into(),
        Step::Verifying => return "the check of its readiness".into(),
        Step::Awaiting => return "your approval of its compression".into(),
        Step::Compressing => return "its compression".into(),
        Step::Plain => {}
    }
    match (agent.state, agent.held) {
        (State::Failed, _) => "`restart`".into(),
        (State::Stuck, _) => "`attach`, `cancel` or `restart`".into(),
        (_, true) => "the person at its window".into(),
        (State::Active, _) => "the end of its turn".into(),
        (State::Idle, _) if agent.paused => "`resume`".into(),
        _ => String::new(),
    }
}
