//! Converts the actions of an agent's machine to letters and orders.

use super::{Deed, Order, World};
use crate::agent::{Flight, State};
use crate::backend::{Evidence, Launch, Prompt, Reply, Submission};
use crate::config::Compress;
use crate::grammar::Priority;
use crate::machine::{Act, Trigger};
use crate::mail::{Fate, Kind, Mail};
use crate::name::{Name, Topic};
use crate::texts;

impl World {
    /// Applies a trigger to an agent, begins its actions, and logs both.
    pub(super) fn trigger(
        &mut self,
        name: &Name,
        trigger: Trigger,
        why: &str,
        evidence: Option<Evidence>,
        cause: Option<u64>,
    ) {
        let (now, times) = (self.now, self.team.times.clone());
        let Some(agent) = self.agents.get_mut(name) else {
            return;
        };
        let before = agent.clone();
        let acts = agent.on(now, trigger, &times);
        let (from, to) = (before.state, agent.state);
        if *agent != before {
            self.changed_agents.insert(name.clone());
        }
        // Activity is frequent and not logged.
        let is_told = !why.is_empty() || from != to || !acts.is_empty();
        if !is_told {
            return;
        }
        let mut entry = self.entry(Some(name), why.to_owned(), evidence);
        entry.cause = cause;
        if from != to {
            (entry.from, entry.to) = (Some(from), Some(to));
        }
        let cause = entry.n;
        for act in acts {
            let did = self.act(name, act, cause);
            entry.did.push(did);
        }
        self.out.entries.push(entry);
        if to == State::Failed && from != State::Failed {
            self.free_tasks(name);
        }
    }

    fn order(&mut self, name: &Name, cause: u64, deed: Deed) {
        self.out.orders.push(Order {
            agent: name.clone(),
            cause,
            deed,
        });
    }

    /// Begins one action; returns its description.
    fn act(&mut self, name: &Name, act: Act, cause: u64) -> String {
        match act {
            Act::Launch => {
                let launch = self.launch_of(name);
                let said = format!("launch: {launch:?}");
                self.plain(name, cause, Deed::Launch(launch), said)
            }
            Act::Bootstrap => {
                let body = texts::bootstrap(name);
                self.direct(name, texts::bootstrap_topic(), Kind::Bootstrap, body, cause)
            }
            Act::Reflect => {
                let topic = texts::reflection_topic();
                self.direct(name, topic, Kind::Reflection, texts::reflection(), cause)
            }
            Act::Notice => {
                if self.team.compress == Compress::Auto
                    && let Some(agent) = self.agent_mut(name)
                    && let Some(plan) = &mut agent.plan
                {
                    plan.approved = true;
                }
                self.compression(name, texts::compression(), cause)
            }
            Act::Remind => self.compression(name, texts::reminder(), cause),
            Act::NotReady(why) => self.compression(name, texts::not_ready(&why), cause),
            Act::CalledOff => {
                let topic = texts::compression_topic();
                let mail = Mail::own(name, topic, Kind::Status, texts::called_off(), self.now);
                format!("post m{}", self.mail.post(mail))
            }
            Act::Send(letter) => self.send(name, letter, cause),
            Act::SendAgain(letter) => {
                self.deliver(name, letter, cause);
                format!("submit m{letter} unless it is in the transcript")
            }
            Act::Requeue(letter) => {
                self.mail.requeue(letter);
                format!("requeue m{letter}")
            }
            Act::Reply(prompt, reply) => {
                let said = match &reply {
                    Reply::Allow => format!("allow {}", short(&prompt)),
                    Reply::Always => format!("allow always {}", short(&prompt)),
                    Reply::Deny(_) => format!("deny {}", short(&prompt)),
                    Reply::Text(text) => format!("answer {}: {text}", short(&prompt)),
                };
                self.plain(name, cause, Deed::Reply(prompt, reply), said)
            }
            Act::AskAdmin(prompt) => self.ask_admin(name, &prompt),
            Act::Probe => self.plain(name, cause, Deed::Probe, "probe"),
            Act::Verify => self.verify(name, cause),
            Act::Compress => self.plain(name, cause, Deed::Compress, "compress"),
            Act::CancelTurn => self.plain(name, cause, Deed::Cancel, "cancel its turn"),
            Act::StopAgent => self.plain(name, cause, Deed::Stop, "stop it"),
            Act::Checkpoint(why) => {
                let said = format!("commit its files: {why}");
                let deed = Deed::Checkpoint(format!("{name}: {why}"));
                self.plain(name, cause, deed, said)
            }
            Act::Tell(text) => self.tell_admin(name, Topic::own("NEXUS"), Priority::Normal, text),
        }
    }

    fn ask_admin(&mut self, name: &Name, prompt: &Prompt) -> String {
        let text = format!(
            "it asks {}:\n{}\n{}",
            short(prompt),
            prompt.text,
            texts::how_to_answer(&name.folder(), prompt)
        );
        self.tell_admin(name, Topic::own("APPROVAL"), Priority::Urgent, text)
    }

    fn verify(&mut self, name: &Name, cause: u64) -> String {
        let noticed = self.agents.get(name).and_then(|a| a.plan.as_ref());
        let noticed = noticed.map_or(self.now, |plan| plan.noticed_at);
        self.plain(name, cause, Deed::Verify(noticed), "check its readiness")
    }

    /// Orders a deed with this description.
    fn plain(&mut self, name: &Name, cause: u64, deed: Deed, said: impl Into<String>) -> String {
        self.order(name, cause, deed);
        said.into()
    }

    fn launch_of(&self, name: &Name) -> Launch {
        let agent = self.agents.get(name);
        let adopting = agent.is_some_and(|agent| agent.adopting);
        match agent.and_then(|agent| agent.session.clone()) {
            Some(session) if adopting => Launch::Adopt { session },
            Some(session) => Launch::Resume { session },
            // Without a session name no life of the agent has begun.
            None => Launch::Fresh,
        }
    }

    fn compression(&mut self, name: &Name, body: String, cause: u64) -> String {
        let topic = texts::compression_topic();
        self.direct(name, topic, Kind::Compression, body, cause)
    }

    /// A letter of NEXUS that is delivered at once, before queued letters.
    pub(super) fn direct(
        &mut self,
        name: &Name,
        topic: Topic,
        kind: Kind,
        body: String,
        cause: u64,
    ) -> String {
        let old = self.agents.get(name).and_then(|agent| agent.flight);
        if let Some(old) = old {
            let reason = "another message of NEXUS took its place".to_owned();
            self.mail
                .change(old.letter, |course| course.fate = Fate::Dead(reason));
        }
        let letter = self.mail.post(Mail::own(name, topic, kind, body, self.now));
        if let Some(agent) = self.agent_mut(name) {
            agent.flight = Some(Flight {
                letter,
                seen: false,
            });
        }
        self.send(name, letter, cause)
    }

    fn send(&mut self, name: &Name, letter: u64, cause: u64) -> String {
        self.deliver(name, letter, cause);
        if let Some(mail) = self.mail.get(letter).map(|letter| letter.mail.clone()) {
            self.remember(name, &mail);
        }
        let line = self.mail.get(letter).map(|letter| letter.mail.line());
        format!("submit m{letter} ({})", line.unwrap_or_default())
    }

    /// Orders the next step of a letter in delivery: the mark, then the text.
    pub(super) fn deliver(&mut self, name: &Name, id: u64, cause: u64) {
        let Some(letter) = self.mail.get(id) else {
            return;
        };
        let Some(mark) = letter.course.mark.clone() else {
            self.order(name, cause, Deed::Mark(id));
            return;
        };
        let session = self.agents.get(name).and_then(|a| a.session.as_deref());
        let submission = Submission {
            id: letter.submission(id),
            text: letter.text_for(session),
            mark,
            again: letter.course.fate != Fate::Queued || letter.course.unsure,
        };
        // After this order it may have been typed.
        if letter.course.fate == Fate::Queued {
            self.mail.change(id, |course| course.fate = Fate::Injected);
        }
        self.order(name, cause, Deed::Submit(id, submission));
    }

    /// Writes a letter of NEXUS to ADMIN about an agent.
    pub(super) fn tell_admin(
        &mut self,
        about: &Name,
        topic: Topic,
        priority: Priority,
        text: String,
    ) -> String {
        let body = format!("{about}: {text}");
        let mail = Mail {
            priority,
            ..Mail::own(&Name::admin(), topic, Kind::Status, body, self.now)
        };
        if !self.mail.has_room(&mail.to, mail.body.len(), true) {
            return self.leave_to_the_log();
        }
        let id = self.mail.post(mail);
        format!("tell ADMIN (m{id})")
    }

    /// Reports to ADMIN, and logs, that NEXUS gives something up.
    pub(super) fn tell_of(&mut self, about: &Name, text: String) {
        self.warn(about, "NEXUS", Priority::Normal, text);
    }

    /// Writes a letter to ADMIN and logs it.
    pub(super) fn warn(&mut self, about: &Name, topic: &'static str, how: Priority, text: String) {
        let did = self.tell_admin(about, Topic::own(topic), how, text.clone());
        self.note(Some(about), format!("{text}; {did}"), None);
    }

    /// Handles a full mailbox of ADMIN, which one letter in it reports. Returns a description for the
    /// log.
    pub(super) fn leave_to_the_log(&mut self) -> String {
        let (topic, body) = texts::inbox_is_full();
        let is_told = self.mail.letters().values().any(|letter| {
            letter.mail.to == Name::admin() && letter.mail.topic.as_ref() == Some(&topic)
        });
        if !is_told {
            self.mail.post(Mail {
                priority: Priority::Urgent,
                ..Mail::own(&Name::admin(), topic, Kind::Status, body, self.now)
            });
        }
        "ADMIN's mailbox is full; this is only in the log".into()
    }
}

/// A prompt in one line.
pub(super) fn short(prompt: &Prompt) -> String {
    let subject = prompt.subject.lines().next().unwrap_or_default();
    let subject: String = subject.chars().take(120).collect();
    let id = &prompt.id;
    format!("[{id}] {} {subject}", prompt.tool)
}
