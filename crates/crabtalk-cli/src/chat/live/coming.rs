//! A message that is coming: the daemon is told while a person types, so that it
//! has connected to the provider by the time the message is there (MODEL-8).
//!
//! Invariants: a key waits for none of this, and nothing that becomes of it is
//! shown; one announcement is on its way at most; a message is announced once, and
//! again only while it is still typed when the connection may have gone.

use super::slash::{Known, Meaning};
use super::{Live, calls};
use crabtalk_proto::ExpectMessageMsg;
use std::time::{Duration, Instant};

/// How long an announcement counts: a little less than the 30 seconds for which
/// the daemon keeps the connection.
const COUNTS_FOR: Duration = Duration::from_secs(25);

/// What was announced.
#[derive(Default)]
pub(super) struct Coming {
    last: Option<(ExpectMessageMsg, Instant)>,
    on_its_way: bool,
}

impl Coming {
    /// Whether a message that is typed has to be announced now, which is then done.
    fn announces(&mut self, message: &ExpectMessageMsg, now: Instant) -> bool {
        let counts = |(last, at): &(ExpectMessageMsg, Instant)| {
            last == message && now.duration_since(*at) < COUNTS_FOR
        };
        if self.on_its_way || self.last.as_ref().is_some_and(counts) {
            return false;
        }
        self.last = Some((message.clone(), now));
        self.on_its_way = true;
        true
    }

    /// The announcement arrived, or did not.
    pub(super) fn arrived(&mut self) {
        self.on_its_way = false;
    }

    /// The message was sent: the next one is another.
    pub(super) fn sent(&mut self) {
        self.last = None;
    }
}

/// Whether what is typed becomes a message, and the agent that it calls by name, if
/// it does: a command of the chat or of the person's own is none. Of a first word that
/// begins as a name does nobody knows before it ends, except that a skill's whole name
/// is as good as its end: few go on.
fn addressee<'a>(typed: &'a str, known: &Known) -> Option<Option<&'a str>> {
    let text = typed.trim_start();
    if text.is_empty() || text.starts_with('!') {
        return None;
    }
    if let Some(rest) = text.strip_prefix('/') {
        let word = rest.split(char::is_whitespace).next().unwrap_or_default();
        return (known.meaning(word) == Meaning::Message).then_some(None);
    }
    let Some(rest) = text.strip_prefix('@') else {
        return Some(None);
    };
    let (name, _) = rest.split_once(char::is_whitespace)?;
    let agents = &known.agents;
    Some(agents.iter().any(|agent| agent == name).then_some(name))
}

impl Live<'_> {
    /// Something was typed into the composer.
    pub(super) fn announce(&mut self) {
        // The connection of a run that goes on is there already.
        if self.runs.is_running() || self.is_gone() {
            return;
        }
        let Some(guest) = addressee(self.composer.text(), &self.learned.known) else {
            return;
        };
        let message = ExpectMessageMsg {
            agent: guest.unwrap_or(&self.pair.agent).to_owned(),
            sender: self.pair.sender.clone(),
            model: self.context.global.model.clone().unwrap_or_default(),
        };
        if self.coming.announces(&message, Instant::now()) {
            self.call(calls::expect(self.client.clone(), message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(agent: &str, model: &str) -> ExpectMessageMsg {
        ExpectMessageMsg {
            agent: agent.into(),
            model: model.into(),
            ..ExpectMessageMsg::default()
        }
    }

    /// Whether it is announced; if it is, it arrives.
    fn typed(coming: &mut Coming, message: &ExpectMessageMsg, now: Instant) -> bool {
        let announced = coming.announces(message, now);
        coming.arrived();
        announced
    }

    #[test]
    fn a_message_is_announced_at_its_first_key_and_when_typing_goes_on_for_long() {
        let (mut coming, crab) = (Coming::default(), to("crab", ""));
        let mut now = Instant::now();
        assert!(typed(&mut coming, &crab, now));
        for _ in 0..24 {
            now += Duration::from_secs(1);
            assert!(!typed(&mut coming, &crab, now));
        }
        now += Duration::from_secs(1);
        assert!(typed(&mut coming, &crab, now), "25 seconds later");
        assert!(!typed(&mut coming, &crab, now));
        coming.sent();
        assert!(typed(&mut coming, &crab, now), "the next message");
        assert!(typed(&mut coming, &to("ada", ""), now), "another agent");
        assert!(typed(&mut coming, &to("ada", "big"), now), "another model");
        assert!(!typed(&mut coming, &to("ada", "big"), now));
    }

    #[test]
    fn an_announcement_that_hangs_is_not_followed_by_another() {
        let (mut coming, crab) = (Coming::default(), to("crab", ""));
        let now = Instant::now();
        assert!(coming.announces(&crab, now));
        coming.sent();
        assert!(!coming.announces(&crab, now + 10 * COUNTS_FOR));
        coming.arrived();
        assert!(coming.announces(&crab, now + 10 * COUNTS_FOR));
    }

    #[test]
    fn messages_are_announced_to_whom_they_go_and_commands_to_nobody() {
        let known = Known {
            agents: vec!["ada".to_owned()],
            skills: vec!["review".to_owned()],
            ..Known::default()
        };
        for (text, to) in [
            ("", None),
            ("  \n", None),
            ("/", None),
            ("/model x", None),
            ("/revie", None),
            ("/review", Some(None)),
            ("/review the branch", Some(None)),
            ("/nothing of that name", None),
            ("!ls", None),
            (" !ls", None),
            ("h", Some(None)),
            (" hello", Some(None)),
            ("a/b", Some(None)),
            ("@", None),
            ("@ada", None),
            ("@ada ", Some(Some("ada"))),
            ("@ada why", Some(Some("ada"))),
            ("@notes.md what", Some(None)),
        ] {
            assert_eq!(addressee(text, &known), to, "{text:?}");
        }
    }
}
