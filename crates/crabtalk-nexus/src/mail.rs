//! Letters and mailboxes, and the order of delivery.
//!
//! Invariants: a letter ends as answered, or as dead with a reason;
//! letters of one priority between two names keep their order; a letter's
//! text never changes; mailboxes are bounded.
//!
//! ```text
//! room   limits of a mailbox
//! ```

mod room;

use crate::backend::Mark;
use crate::clock::Ms;
use crate::grammar::{Header, Message, Priority};
use crate::name::{Name, Topic};
use crate::texts;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The purpose of a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A message from one team member to another.
    Plain,
    /// A task of the queue, with its number.
    Task(u64),
    Bootstrap,
    Reflection,
    /// The notice of COMPRESSION, its reminder, or a refusal of readiness.
    Compression,
    /// A correction of an invalid output.
    Format,
    /// A report that needs no answer.
    Status,
}

impl Kind {
    /// Whether the letter belongs to a flow of NEXUS that restarts after a crash of the
    /// agent, which makes the letter obsolete.
    fn ends_with_its_session(self) -> bool {
        match self {
            Self::Bootstrap | Self::Reflection | Self::Compression | Self::Format => true,
            Self::Plain | Self::Task(_) | Self::Status => false,
        }
    }
}

/// A letter's text and addresses, which never change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    pub from: Name,
    /// The recipient of this copy.
    pub to: Name,
    /// All recipients.
    pub all: Vec<Name>,
    pub topic: Option<Topic>,
    /// The priority.
    pub priority: Priority,
    pub body: String,
    pub kind: Kind,
    /// The length of the chain of letters that led to this one.
    pub depth: u32,
    /// The time of writing.
    pub at: Ms,
}

impl Mail {
    /// Creates a letter of NEXUS.
    pub fn own(to: &Name, topic: Topic, kind: Kind, body: String, at: Ms) -> Self {
        Self {
            from: Name::nexus(),
            to: to.clone(),
            all: vec![to.clone()],
            topic: Some(topic),
            priority: Priority::Normal,
            body,
            kind,
            depth: 0,
            at,
        }
    }

    /// The text of its delivery.
    pub fn text(&self) -> String {
        self.message(&self.body).to_string()
    }

    /// The text for a session that already has the letter.
    pub fn carry_on(&self) -> String {
        let mut mail = self.message(&texts::carry_on(&self.from));
        mail.header.from = Name::nexus();
        mail.header.to = vec![self.to.clone()];
        mail.to_string()
    }

    fn message(&self, body: &str) -> Message {
        let header = Header {
            from: self.from.clone(),
            to: self.all.clone(),
            topic: self.topic.clone(),
            priority: self.priority,
        };
        Message::new(header, body)
    }

    /// Its sender, recipients and topic in one line.
    pub fn line(&self) -> String {
        let topic = self.topic.as_ref().map_or("", Topic::as_str);
        format!("@{} → @{} [{topic}]", self.from, self.to)
    }
}

/// The state of a letter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    #[default]
    Queued,
    /// It was typed or sent; its arrival is unknown.
    Injected,
    /// The transcript contains it.
    Acked,
    /// The turn that it began ended.
    Answered,
    /// It will not be delivered, for this reason.
    Dead(String),
}

/// The delivery state of a letter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Course {
    pub fate: Fate,
    /// The end of the transcript before the first attempt.
    pub mark: Option<Mark>,
    /// The number of deliveries that an end of the agent interrupted.
    pub resumed: u32,
    /// The session whose transcript contains it.
    pub seen_in: Option<String>,
    /// Whether the transcript may contain it although this was not reported.
    pub unsure: bool,
    /// The number of failed attempts and failed turns.
    pub failed: u32,
    /// The earliest time of the next attempt.
    pub not_before: Ms,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// Its text and addresses.
    pub mail: Mail,
    pub course: Course,
}

impl Letter {
    /// Whether the letter is finished.
    pub fn is_over(&self) -> bool {
        match self.course.fate {
            Fate::Queued | Fate::Injected | Fate::Acked => false,
            Fate::Answered | Fate::Dead(_) => true,
        }
    }

    /// The id of this delivery.
    pub fn submission(&self, id: u64) -> String {
        // Includes the time, since letter numbers restart after the log was removed.
        format!("m{id}-{}-{}", self.course.resumed, self.mail.at)
    }

    /// The text for an agent in this session.
    pub fn text_for(&self, session: Option<&str>) -> String {
        let has_it = self.course.seen_in.is_some() && self.course.seen_in.as_deref() == session;
        if has_it && self.course.resumed > 0 {
            self.mail.carry_on()
        } else {
            self.mail.text()
        }
    }
}

/// The letter number in a submission id.
pub fn letter_of(submission: &str) -> Option<u64> {
    let text = submission.strip_prefix('m')?;
    let (id, _) = text.split_once('-').unwrap_or((text, ""));
    id.parse().ok()
}

#[derive(Debug, Clone, Default)]
pub struct Mailbox {
    letters: BTreeMap<u64, Letter>,
    last: u64,
    changed: BTreeSet<u64>,
}

impl Mailbox {
    /// Letters that are queued or in delivery.
    pub fn letters(&self) -> &BTreeMap<u64, Letter> {
        &self.letters
    }

    pub fn get(&self, id: u64) -> Option<&Letter> {
        self.letters.get(&id)
    }

    /// Puts a letter into its recipient's mailbox.
    pub fn post(&mut self, mail: Mail) -> u64 {
        self.last += 1;
        let course = Course::default();
        self.letters.insert(self.last, Letter { mail, course });
        self.changed.insert(self.last);
        self.last
    }

    pub fn change(&mut self, id: u64, change: impl FnOnce(&mut Course)) {
        if let Some(letter) = self.letters.get_mut(&id) {
            change(&mut letter.course);
            self.changed.insert(id);
        }
    }

    /// The next letter for a recipient: highest priority first, then oldest.
    pub fn next_for(&self, to: &Name, now: Ms) -> Option<(u64, Priority)> {
        let waits = |letter: &Letter| {
            letter.mail.to == *to
                && letter.course.fate == Fate::Queued
                && letter.course.not_before <= now
        };
        self.letters
            .iter()
            .filter(|(_, letter)| waits(letter))
            // Letters are ordered by number, and `min_by_key` returns the first of equals.
            .min_by_key(|(_, letter)| letter.mail.priority)
            .map(|(id, letter)| (*id, letter.mail.priority))
    }

    /// The number of queued letters of a recipient.
    pub fn waiting_for(&self, to: &Name) -> usize {
        let waits = |l: &&Letter| l.mail.to == *to && l.course.fate == Fate::Queued;
        self.letters.values().filter(waits).count()
    }

    /// Requeues a letter whose agent ended, or drops it if it is obsolete.
    pub fn requeue(&mut self, id: u64) {
        let Some(letter) = self.letters.get(&id) else {
            return;
        };
        let over = letter.mail.kind.ends_with_its_session();
        let (seen, typed) = (
            letter.course.fate == Fate::Acked,
            letter.course.fate == Fate::Injected,
        );
        self.change(id, |course| {
            if over {
                course.fate = Fate::Dead("the agent ended before it answered".into());
                return;
            }
            course.fate = Fate::Queued;
            if seen {
                course.resumed += 1;
                course.mark = None;
            }
            // The transcript after the mark is searched for it once more.
            course.unsure |= typed;
        });
    }

    /// The letters that changed since the last call. Drops finished ones, which are in the
    /// log.
    pub fn take_changes(&mut self) -> BTreeSet<u64> {
        self.letters.retain(|_, letter| !letter.is_over());
        std::mem::take(&mut self.changed)
    }

    /// Restores a letter of an earlier life.
    pub fn restore(&mut self, id: u64, letter: Letter) {
        self.letters.insert(id, letter);
    }

    /// The number of the last letter.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Continues to number letters after this one.
    pub fn go_on_behind(&mut self, last: u64) {
        self.last = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(from: &str, priority: Priority, body: &str) -> Mail {
        let to = Name::new("b").unwrap();
        Mail {
            from: Name::new(from).unwrap(),
            priority,
            body: body.into(),
            ..Mail::own(&to, Topic::own("T"), Kind::Plain, String::new(), 0)
        }
    }

    #[test]
    fn urgent_letters_go_first_and_the_order_is_kept() {
        let mut mailbox = Mailbox::default();
        let b = Name::new("b").unwrap();
        for (priority, body) in [
            (Priority::Low, "5"),
            (Priority::Normal, "3"),
            (Priority::Urgent, "1"),
            (Priority::Normal, "4"),
            (Priority::Urgent, "2"),
        ] {
            mailbox.post(mail("a", priority, body));
        }
        let mut order = Vec::new();
        while let Some((id, _)) = mailbox.next_for(&b, 0) {
            order.push(mailbox.get(id).unwrap().mail.body.clone());
            mailbox.change(id, |course| course.fate = Fate::Answered);
            mailbox.take_changes();
        }
        assert_eq!(order, ["1", "2", "3", "4", "5"]);
    }

    #[test]
    fn an_interrupted_letter_comes_back_and_is_not_told_twice() {
        let mut mailbox = Mailbox::default();
        let id = mailbox.post(mail("a", Priority::Normal, "work"));
        mailbox.change(id, |course| {
            course.fate = Fate::Acked;
            course.seen_in = Some("s1".into());
        });
        mailbox.requeue(id);
        let letter = mailbox.get(id).unwrap();
        assert_eq!(letter.course.fate, Fate::Queued);
        assert!(letter.text_for(Some("s1")).contains("interrupted"));
        assert!(letter.text_for(Some("s2")).ends_with("work"));
        assert_eq!(letter.submission(id), "m1-1-0");
        assert_eq!(letter_of("m1-1-0"), Some(1));
        // A typed letter with an unknown result keeps its delivery id.
        mailbox.change(id, |course| {
            course.fate = Fate::Injected;
            course.mark = Some(Mark("7".into()));
        });
        mailbox.requeue(id);
        let letter = mailbox.get(id).unwrap();
        assert!(letter.course.unsure && letter.course.mark.is_some());
        assert_eq!(letter.submission(id), "m1-1-0");
        let own = mailbox.post(Mail {
            kind: Kind::Bootstrap,
            ..mail("a", Priority::Normal, "x")
        });
        mailbox.requeue(own);
        assert!(mailbox.get(own).unwrap().is_over());
    }
}
