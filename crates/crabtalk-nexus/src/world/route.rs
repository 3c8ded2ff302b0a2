//! Parses outputs, and delivers their messages.
//!
//! Invariants: an agent can write only under its own name; every message reaches a mailbox,
//! or its writer or ADMIN gets the reason; there are at most two consecutive corrections.

use super::{TaskState, World};
use crate::agent::Step;
use crate::backend::Turn;
use crate::grammar::{self, MAX_BODY, Message, Priority};
use crate::machine::Trigger;
use crate::mail::{Kind, Mail};
use crate::name::{Name, Topic};
use crate::rates::{MAX_DEPTH, PER_MINUTE};
use crate::texts;

/// Consecutive corrections after which ADMIN is informed.
const CORRECTIONS: u32 = 2;

/// The contents of an output.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Whether it confirms the requested identity.
    pub(super) identity: bool,
    /// Whether it claims readiness for compression.
    pub(super) ready: bool,
    /// Whether part of it is invalid.
    pub(super) bad_form: bool,
    /// Whether it contains a message.
    pub(super) any: bool,
    /// The problem and the line of a correction.
    pub(super) correction: Option<(String, String)>,
    /// The first header under another name, and the number of such headers.
    forged: Option<(String, usize)>,
}

impl Heard {
    fn wrong(&mut self, what: impl Into<String>, line: &str) {
        self.bad_form = true;
        let first = || (what.into(), line.lines().next().unwrap_or_default().into());
        self.correction.get_or_insert_with(first);
    }
}

impl World {
    /// Parses the output of a turn and delivers its messages. Without a letter, a
    /// person typed at the agent, and invalid output is not corrected.
    pub(super) fn read_output(&mut self, name: &Name, letter: Option<u64>, turn: &Turn) -> Heard {
        let output = grammar::read(&turn.output);
        let mut heard = Heard {
            any: !output.messages.is_empty(),
            ..Heard::default()
        };
        let asked_who = self
            .agents
            .get(name)
            .is_some_and(|agent| agent.step == Step::Bootstrapping);
        if output.prose && heard.any {
            self.note(Some(name), "warning: prose before the first header", None);
        }
        heard.identity = output.messages.first().is_some_and(|message| {
            message.header.from == *name
                && message.header.to.contains(&Name::nexus())
                && texts::confirms_identity(&message.body)
        });
        for line in &output.malformed {
            heard.wrong("this line is not a valid header", line);
        }
        let said = turn.output.trim();
        if !heard.any && output.malformed.is_empty() && !said.is_empty() {
            heard.wrong("it has no header", said);
        }
        if said.is_empty() && turn.error.is_none() {
            heard.wrong("it is empty", "");
        }
        let depth = letter
            .and_then(|id| self.mail.get(id))
            .map_or(0, |letter| letter.mail.depth);
        for message in output.messages {
            self.route(name, message, depth + 1, &mut heard);
        }
        if let Some((line, count)) = heard.forged.take() {
            self.refuse_forged(name, &line, count, asked_who);
        }
        if letter.is_none() || asked_who {
            heard.correction = None;
        }
        heard
    }

    fn route(&mut self, name: &Name, mut message: Message, depth: u32, heard: &mut Heard) {
        let line = message.header.to_string();
        if message.header.from != *name {
            heard.forged.get_or_insert((line, 0)).1 += 1;
            return;
        }
        if message.header.topic.is_none() {
            if !self.team.lenient {
                heard.wrong("this header has no [TOPIC]", &line);
                return;
            }
            message.header.topic = Topic::new("GENERAL");
        }
        if message.body.len() > MAX_BODY {
            let what = format!("it is longer than {MAX_BODY} bytes; write a file and name it");
            heard.wrong(what, &line);
            return;
        }
        for to in message.header.to.clone() {
            if to == *name {
                heard.wrong("it is addressed to yourself", &line);
            } else if to == Name::nexus() {
                self.for_nexus(name, &message, heard);
            } else {
                self.pass_on(name, &to, &message, depth);
            }
        }
    }

    /// Warns once per turn, so that many forged headers do not fill ADMIN's mailbox.
    fn refuse_forged(&mut self, name: &Name, line: &str, count: usize, asked_who: bool) {
        let more = match count {
            1 => String::new(),
            _ => format!(" and {} more", count - 1),
        };
        let forged = format!("it wrote under another name; refused: {line}{more}");
        if asked_who {
            self.note(Some(name), forged, None);
        } else {
            self.warn(name, "SECURITY", Priority::Urgent, forged);
        }
    }

    fn for_nexus(&mut self, name: &Name, message: &Message, heard: &mut Heard) {
        let topic = message.header.topic.clone();
        let mail = Mail {
            from: name.clone(),
            ..Mail::own(
                &Name::nexus(),
                topic.clone().unwrap_or_else(texts::format_topic),
                Kind::Plain,
                message.body.clone(),
                self.now,
            )
        };
        self.remember(name, &mail);
        let is = |known: Topic| topic.as_ref() == Some(&known);
        if is(texts::compression_topic()) {
            heard.ready |= texts::is_ready(&message.body);
        }
        let own = [
            texts::bootstrap_topic(),
            texts::reflection_topic(),
            texts::compression_topic(),
            texts::format_topic(),
        ];
        if own.into_iter().any(is) {
            self.note(Some(name), format!("heard: {message}"), None);
            return;
        }
        if self.answers_task(name, message, true) {
            return;
        }
        // Other messages go to ADMIN.
        self.post(name, &Name::admin(), message, 0, "to NEXUS: ");
    }

    /// Handles a message about its writer's task; returns whether it is one. The form of
    /// [`texts::ends_task`] ends the task, even under another topic if sent to NEXUS; other
    /// texts are reports.
    fn answers_task(&mut self, name: &Name, message: &Message, to_nexus: bool) -> bool {
        let has = |task: &super::Task| matches!(&task.state, TaskState::Assigned { agent, .. } if agent == name);
        let found = self.tasks.iter_mut().find(|(_, task)| has(task));
        let Some((id, task)) = found else {
            return false;
        };
        let (id, ends) = (*id, texts::ends_task(&message.body));
        let is_topic = Some(&task.topic) == message.header.topic.as_ref();
        let is_about_it = is_topic || ends && to_nexus;
        if !is_about_it {
            return false;
        }
        if !ends {
            let why = format!("task t{id} goes on: {message}");
            self.note(Some(name), why, None);
            return true;
        }
        task.state = TaskState::Done {
            agent: name.clone(),
            at: self.now,
            answer: message.body.clone(),
        };
        self.changed_tasks.insert(id);
        self.note(Some(name), format!("task t{id} is done: {message}"), None);
        true
    }

    fn pass_on(&mut self, name: &Name, to: &Name, message: &Message, depth: u32) {
        if *to == Name::admin() {
            self.answers_task(name, message, false);
            self.post(name, to, message, 0, "");
            return;
        }
        if !self.agents.contains_key(to) {
            self.post(
                name,
                &Name::admin(),
                message,
                0,
                &format!("no agent {to}: "),
            );
            return;
        }
        let cut = if depth > MAX_DEPTH {
            Some(format!("the chain of messages is longer than {MAX_DEPTH}"))
        } else if !self.mail.has_room(to, message.body.len(), false) {
            Some("whose mailbox is full".into())
        } else if !self.rates.allows(name, to, self.now) {
            Some(format!(
                "the pair wrote more than {PER_MINUTE} messages in a minute"
            ))
        } else {
            None
        };
        if let Some(why) = cut {
            self.cut(name, to, message, &why);
            return;
        }
        self.post(name, to, message, depth, "");
    }

    /// Stops a message that circulates, and puts it into ADMIN's mailbox, within the limit for agents'
    /// messages, so that NEXUS's own reports still fit.
    fn cut(&mut self, name: &Name, to: &Name, message: &Message, why: &str) {
        let text = format!("a message to {to} is not delivered, {why}: {message}");
        if !self.mail.has_room(&Name::admin(), text.len(), false) {
            let did = self.leave_to_the_log();
            self.note(Some(name), format!("{text}; {did}"), None);
            return;
        }
        self.warn(name, "LOOP", Priority::Normal, text);
    }

    fn post(&mut self, name: &Name, to: &Name, message: &Message, depth: u32, remark: &str) {
        if !self.mail.has_room(to, message.body.len(), false) {
            let did = self.leave_to_the_log();
            self.note(Some(name), format!("{remark}{did}: {message}"), None);
            return;
        }
        let header = message.header.clone();
        let mail = Mail {
            from: name.clone(),
            to: to.clone(),
            all: header.to,
            topic: header.topic,
            priority: header.priority,
            body: message.body.clone(),
            kind: Kind::Plain,
            depth,
            at: self.now,
        };
        self.remember(name, &mail);
        let id = self.mail.post(mail);
        self.note(
            Some(name),
            format!("{remark}m{id} for {to}: {message}"),
            None,
        );
        if self.agents.contains_key(to) {
            self.trigger(to, Trigger::Routed, "", None, None);
        }
    }

    /// Requests valid output, or informs ADMIN after repeated corrections.
    pub(super) fn correct(&mut self, name: &Name, wrong: Option<(String, String)>) {
        let Some((what, line)) = wrong else {
            if let Some(agent) = self.agents.get(name)
                && agent.corrections > 0
                && !agent.busy
                && let Some(agent) = self.agent_mut(name)
            {
                agent.corrections = 0;
            }
            return;
        };
        let Some(agent) = self.agent_mut(name) else {
            return;
        };
        agent.corrections = agent.corrections.saturating_add(1);
        let (count, noticed) = (agent.corrections, agent.step == Step::Noticed);
        if count > CORRECTIONS {
            if count == CORRECTIONS + 1 {
                let text = format!("{CORRECTIONS} corrections of its form did not help: {line}");
                let topic = texts::format_topic();
                let did = self.tell_admin(name, topic, Priority::Normal, text);
                self.note(Some(name), format!("{what}; {did}"), None);
            }
            return;
        }
        let body = texts::correction(name, &what, &line);
        let topic = texts::format_topic();
        let did = if noticed {
            let n = self.last_entry + 1;
            self.direct(name, topic, Kind::Format, body, n)
        } else {
            // Precedes other mail, since it is about the last output.
            let mail = Mail {
                priority: Priority::Urgent,
                ..Mail::own(name, topic, Kind::Format, body, self.now)
            };
            format!("post m{}", self.mail.post(mail))
        };
        let mut entry = self.entry(Some(name), format!("its form is wrong: {what}"), None);
        entry.did.push(did);
        self.out.entries.push(entry);
    }
}
