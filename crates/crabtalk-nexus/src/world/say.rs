//! Commands of ADMIN.

use super::command::{Answer, Command};
use super::{Task, TaskState, World};
use crate::agent::{Standing, State, Step};
use crate::backend::{Prompt, Reply};
use crate::grammar::{self, MAX_BODY, Priority};
use crate::machine::Trigger;
use crate::mail::{Fate, Kind, Mail};
use crate::name::Name;
use crate::texts;

/// Maximum number of open tasks; a longer plan belongs into a file.
const MAX_TASKS: usize = 10_000;

/// Maximum bytes of open tasks; long tasks should name a file.
const MAX_TASK_BYTES: usize = 12 * 1024 * 1024;

impl World {
    pub(super) fn said(&mut self, command: Command) {
        let answer = self.obey(command);
        self.out.answer = Some(answer.unwrap_or_else(|why| Answer::Refused { why }));
    }

    /// Adopts another configuration of the team.
    pub(super) fn reloaded(&mut self, team: crate::config::Team) {
        let kept = self.team.reload(team);
        let mut said = "configuration reloaded".to_owned();
        if !kept.is_empty() {
            let kept = kept.join(", ");
            said.push_str(&format!(
                "; {kept} needs a restart of NEXUS (`q`, then `crabtalk nexus run`: the agents \
                 keep running)"
            ));
        }
        self.note(None, said.clone(), None);
        self.out.answer = Some(Answer::Done { said });
    }

    fn obey(&mut self, command: Command) -> Result<Answer, String> {
        let (agent, trigger, said) = match command {
            Command::Status => {
                let (agents, inbox, tasks) = self.summary();
                return Ok(Answer::Status {
                    agents,
                    inbox,
                    tasks,
                });
            }
            Command::Tasks => {
                let tasks = self.tasks.iter().map(|(id, task)| (*id, task.clone()));
                let tasks = tasks.collect();
                return Ok(Answer::Tasks { tasks });
            }
            Command::Inbox { keep } => return Ok(self.inbox(keep)),
            Command::Read { upto } => {
                let count = self.read(|id| id <= upto);
                let said = format!("{count} messages marked as read");
                return Ok(Answer::Done { said });
            }
            Command::Send { text } => return self.send_as_admin(&text),
            Command::AddTask { text } => return self.add_task(&text),
            Command::ChangeTask { id, change } => return self.change_task(id, change),
            Command::Pause { agent } => return self.each(agent, &Trigger::Pause, "paused"),
            Command::Resume { agent } => return self.each(agent, &Trigger::Resume, "resumed"),
            Command::Reply {
                agent,
                prompt,
                reply,
            } => {
                let said = self.may_reply(&agent, prompt.as_deref(), &reply)?;
                (agent, Trigger::Reply(prompt, reply), said)
            }
            Command::Start { agent } => {
                if self.known(&agent)?.state == State::Failed {
                    return Err(format!("{agent} is FAILED; `restart` starts it again"));
                }
                (agent, Trigger::Start, "is being started")
            }
            Command::Stop { agent } => (agent, Trigger::Stop, "is being stopped"),
            Command::Restart { agent } => (agent, Trigger::Restart, "is being restarted"),
            Command::Cancel { agent } => (agent, Trigger::Cancel, "is cancelled"),
            Command::Compress { agent } => {
                let state = self.known(&agent)?.state;
                if matches!(state, State::Offline | State::Failed) {
                    return Err(format!("{agent} does not run ({state})"));
                }
                (agent, Trigger::Compress, "will be compressed")
            }
            Command::Look { agent } => {
                self.known(&agent)?;
                return Err("this command is not for the world".into());
            }
            Command::Board { .. } | Command::Watch | Command::Reload => {
                return Err("this command is not for the world".into());
            }
        };
        self.known(&agent)?;
        let why = format!("ADMIN: {said}");
        self.trigger(&agent, trigger, &why, None, None);
        if self.is_gone(&agent) {
            self.free_tasks(&agent);
        }
        let said = format!("{agent}: {said}");
        Ok(Answer::Done { said })
    }

    /// Checks that a reply fits the agent's question; returns a description.
    fn may_reply(
        &self,
        agent: &Name,
        id: Option<&str>,
        reply: &Reply,
    ) -> Result<&'static str, String> {
        let compresses = id.is_none() && self.known(agent)?.step == Step::Awaiting;
        let asked = match (self.is_asked(agent, id), reply) {
            (Err(_), Reply::Allow) if compresses => return Ok("approved"),
            (Err(_), Reply::Deny(_)) if compresses => return Ok("denied"),
            (asked, _) => asked?,
        };
        match reply {
            Reply::Allow if asked.is_question => {
                let how = texts::how_to_answer(&agent.folder(), asked);
                Err(format!("{agent} asks a question: {how}"))
            }
            Reply::Allow => Ok("approved"),
            Reply::Always if asked.always.is_empty() => {
                Err(format!("{agent} does not offer to allow this always"))
            }
            Reply::Always => Ok("allowed always"),
            Reply::Text(_) if !asked.is_question => Err(format!(
                "{agent} asks for an approval, which takes no text; to deny it with a reason, use \
                 `crabtalk nexus deny {} \"..\"`",
                agent.folder()
            )),
            Reply::Text(text) if text.trim().is_empty() => Err("the answer is empty".into()),
            Reply::Text(_) => Ok("answered"),
            Reply::Deny(_) => Ok("denied"),
        }
    }

    fn known(&self, name: &Name) -> Result<&crate::agent::Agent, String> {
        let found = self.agents.get(name);
        found.ok_or_else(|| texts::nobody(name, self.agents.keys()))
    }

    /// The prompt of an agent that waits for ADMIN.
    fn is_asked(&self, name: &Name, id: Option<&str>) -> Result<&Prompt, String> {
        let agent = self.known(name)?;
        let asked = agent.waiting.iter().find(|waiting| {
            waiting.standing == Standing::Asked && id.is_none_or(|id| waiting.prompt.id == id)
        });
        let none = || format!("{name} has no request for ADMIN ({})", agent.state);
        asked.map(|waiting| &waiting.prompt).ok_or_else(none)
    }

    fn each(
        &mut self,
        agent: Option<Name>,
        trigger: &Trigger,
        said: &str,
    ) -> Result<Answer, String> {
        let names = match agent {
            Some(name) => {
                self.known(&name)?;
                vec![name]
            }
            None => self.agents.keys().cloned().collect(),
        };
        for name in &names {
            let why = format!("ADMIN: {said}");
            self.trigger(name, trigger.clone(), &why, None, None);
        }
        let names: Vec<&str> = names.iter().map(Name::as_str).collect();
        let said = format!("{}: {said}", names.join(", "));
        Ok(Answer::Done { said })
    }

    /// Parses a message of a person, who may omit the sender.
    fn admins(&self, text: &str) -> Result<grammar::Message, String> {
        let text = text.trim();
        let whole = match grammar::read_one(text) {
            Some(message) => Some(message),
            None => grammar::read_one(&format!("@ADMIN → {text}")),
        };
        let message = whole.ok_or("write it as `@AGENT [TOPIC]: text`")?;
        if message.header.from != Name::admin() {
            return Err(format!(
                "you speak as ADMIN, not as {}",
                message.header.from
            ));
        }
        if message.body.len() > MAX_BODY {
            return Err(format!("it is longer than {MAX_BODY} bytes; name a file"));
        }
        if message.body.trim().is_empty() {
            return Err("the message is empty".into());
        }
        Ok(message)
    }

    fn send_as_admin(&mut self, text: &str) -> Result<Answer, String> {
        let message = self.admins(text)?;
        for to in &message.header.to {
            self.known(to)?;
            if !self.mail.has_room(to, message.body.len(), false) {
                return Err(format!("the mailbox of {to} is full"));
            }
        }
        let mut ids = Vec::new();
        for to in &message.header.to {
            let id = self.mail.post(Mail {
                from: Name::admin(),
                to: to.clone(),
                all: message.header.to.clone(),
                topic: message.header.topic.clone(),
                priority: message.header.priority,
                body: message.body.clone(),
                kind: Kind::Plain,
                depth: 0,
                at: self.now,
            });
            ids.push(format!("m{id}"));
            self.note(Some(to), format!("m{id}: {message}"), None);
            self.trigger(to, Trigger::Routed, "", None, None);
        }
        let said = format!("{} in the mailbox", ids.join(", "));
        Ok(Answer::Done { said })
    }

    fn add_task(&mut self, text: &str) -> Result<Answer, String> {
        let message = self.admins(text)?;
        let [to] = message.header.to.as_slice() else {
            return Err("a task is for one agent, or for @ANY".into());
        };
        let topic = message.header.topic.clone();
        let topic = topic.ok_or("a task needs a [TOPIC], which identifies its answer")?;
        let to = (*to != Name::any()).then(|| to.clone());
        if let Some(to) = &to {
            self.known(to)?;
        }
        let is_open = |task: &&Task| !matches!(task.state, TaskState::Done { .. });
        let open = self.tasks.values().filter(is_open);
        let sum = |(count, bytes), task: &Task| (count + 1, bytes + task.body.len());
        let (count, bytes) = open.fold((0, message.body.len()), sum);
        if count >= MAX_TASKS {
            return Err(format!("{MAX_TASKS} tasks are open"));
        }
        if bytes > MAX_TASK_BYTES {
            return Err(format!(
                "{MAX_TASK_BYTES} bytes of tasks are open at most; name a file"
            ));
        }
        let id = self.tasks.keys().next_back().map_or(1, |last| last + 1);
        self.tasks.insert(
            id,
            Task {
                to,
                topic,
                body: message.body.clone(),
                at: self.now,
                state: TaskState::Open,
            },
        );
        self.changed_tasks.insert(id);
        self.note(None, format!("task t{id}: {message}"), None);
        let said = format!("t{id} is in the queue");
        Ok(Answer::Done { said })
    }

    fn inbox(&mut self, keep: bool) -> Answer {
        let mut letters: Vec<(u64, Mail)> = self
            .mail
            .letters()
            .iter()
            .filter(|(_, letter)| letter.mail.to == Name::admin())
            .map(|(id, letter)| (*id, letter.mail.clone()))
            .collect();
        letters.sort_by_key(|(id, mail)| (mail.priority != Priority::Urgent, *id));
        if !keep {
            self.read(|_| true);
        }
        Answer::Inbox { letters }
    }

    /// Removes letters that ADMIN has read; returns their number.
    fn read(&mut self, which: impl Fn(u64) -> bool) -> usize {
        let letters = self.mail.letters().iter();
        let read = letters.filter(|(id, letter)| letter.mail.to == Name::admin() && which(**id));
        let ids: Vec<u64> = read.map(|(id, _)| *id).collect();
        for id in &ids {
            self.mail.change(*id, |course| course.fate = Fate::Answered);
        }
        if !ids.is_empty() {
            let count = ids.len();
            self.note(None, format!("ADMIN read {count} messages"), None);
        }
        ids.len()
    }
}
