//! Events of agents.

use super::World;
use crate::agent::Step;
use crate::backend::{Event, Evidence, Prompt, Turn, What};
use crate::machine::{Ending, Trigger};
use crate::mail::{Fate, Kind, letter_of};
use crate::name::Name;

/// Failed turns of a letter after which it is given up.
const TRIES: u32 = 3;

/// Pause before a letter with a failed turn is sent again: an overloaded model
/// needs time.
const AGAIN_MS: u64 = 30_000;

impl World {
    pub(super) fn event(&mut self, name: &Name, event: Event) {
        let evidence = Some(event.evidence);
        let (trigger, why) = match event.what {
            What::Seen { id } => return self.seen(name, &id, evidence),
            What::Prompt(prompt) => return self.prompted(name, prompt, evidence),
            What::TurnEnded(turn) => return self.turn_ended(name, &turn, evidence),
            What::Ready { session, busy } => (
                Trigger::Ready { session, busy },
                "it is ready for messages".to_owned(),
            ),
            What::Session { session } => (
                Trigger::Session(session),
                "its session has a new name".to_owned(),
            ),
            What::TurnBegan => (Trigger::TurnBegan, "a turn began".to_owned()),
            What::Progress => (Trigger::Progress, String::new()),
            What::PromptGone { id, how } => {
                let why = format!("the prompt [{id}] closed: {how}");
                (Trigger::PromptGone(id), why)
            }
            What::Compacted => {
                let agent = self.agents.get(name);
                if agent.is_some_and(|agent| agent.step == Step::Compressing) {
                    return;
                }
                let why = "its context was compacted without an order of NEXUS";
                (Trigger::Compacted, why.to_owned())
            }
            What::Held { held } => {
                let why = match held {
                    true => "a person opened its window",
                    false => "its window is free again",
                };
                (Trigger::Held(held), why.to_owned())
            }
            What::Died(exit) => {
                let mut why = "it ended".to_owned();
                if let Some(status) = exit.status {
                    why.push_str(&format!(" with status {status}"));
                }
                if let Some(signal) = exit.signal {
                    why.push_str(&format!(" by signal {signal}"));
                }
                if !exit.said.is_empty() {
                    why.push_str(&format!(": {}", exit.said.trim()));
                }
                (Trigger::Died(why.clone()), why)
            }
        };
        self.trigger(name, trigger, &why, evidence, None);
    }

    fn seen(&mut self, name: &Name, id: &str, evidence: Option<Evidence>) {
        let Some(letter) = letter_of(id) else {
            return;
        };
        let session = self.agents.get(name).and_then(|a| a.session.clone());
        self.mail.change(letter, |course| {
            if matches!(course.fate, Fate::Queued | Fate::Injected) {
                course.fate = Fate::Acked;
            }
            course.seen_in = session;
            course.unsure = false;
        });
        let why = format!("m{letter} is in the transcript");
        self.trigger(name, Trigger::Seen(letter), &why, evidence, None);
    }

    pub(super) fn prompted(&mut self, name: &Name, prompt: Prompt, evidence: Option<Evidence>) {
        let (verdict, rule) = self.team.rules_of(name).judge(&prompt);
        let known = |agent: &crate::agent::Agent| {
            let mut waiting = agent.waiting.iter();
            agent.over.contains(&prompt.id) || waiting.any(|w| w.prompt.id == prompt.id)
        };
        if self.agents.get(name).is_some_and(known) {
            return;
        }
        let why = format!("it asks {} - {rule}", super::act::short(&prompt));
        self.trigger(
            name,
            Trigger::Prompted(prompt, verdict),
            &why,
            evidence,
            None,
        );
    }

    pub(super) fn turn_ended(&mut self, name: &Name, turn: &Turn, evidence: Option<Evidence>) {
        let Some(agent) = self.agents.get(name) else {
            return;
        };
        let flight = agent.flight;
        // An end before the message's arrival belongs to another turn.
        if flight.is_some_and(|flight| !flight.seen) {
            self.read_output(name, None, turn);
            if let Some(agent) = self.agent_mut(name) {
                agent.busy = false;
            }
            self.note(Some(name), "an earlier turn ended", evidence);
            return;
        }
        let letter = flight.map(|flight| flight.letter);
        let kind = letter
            .and_then(|id| self.mail.get(id))
            .map(|letter| letter.mail.kind);
        let failed = turn.error.as_deref();
        let heard = self.read_output(name, letter, turn);
        self.measure(name, turn, heard.bad_form);
        if let Some(id) = letter {
            self.close(name, id, failed, heard.any);
        }
        let why = match failed {
            None => "its turn ended".to_owned(),
            Some(error) => format!("its turn ended: {error}"),
        };
        let ending = Ending {
            identity: heard.identity,
            ready: heard.ready,
        };
        self.trigger(name, Trigger::Ended(ending), &why, evidence, None);
        if kind == Some(Kind::Reflection)
            && let Some(agent) = self.agent_mut(name)
        {
            agent.worked = false;
        }
        self.correct(name, heard.correction);
    }

    /// Handles the end of a letter's turn: the letter is answered, sent again, or given up.
    fn close(&mut self, name: &Name, id: u64, failed: Option<&str>, said: bool) {
        let Some(error) = failed.filter(|error| !said && *error != "cancelled") else {
            self.mail.change(id, |course| course.fate = Fate::Answered);
            return;
        };
        let again = self.now.saturating_add(AGAIN_MS);
        let mut given_up = false;
        self.mail.requeue(id);
        self.mail.change(id, |course| {
            course.failed += 1;
            course.not_before = again;
            if course.failed >= TRIES && course.fate == Fate::Queued {
                course.fate = Fate::Dead(format!("its turn failed: {error}"));
                given_up = true;
            }
        });
        if given_up {
            let text = format!("m{id} is given up, its turn failed {TRIES} times: {error}");
            self.tell_of(name, text);
        }
    }

    fn measure(&mut self, name: &Name, turn: &Turn, bad_form: bool) {
        let now = self.now;
        let Some(agent) = self.agent_mut(name) else {
            return;
        };
        let meters = &mut agent.meters;
        if meters.since == 0 {
            meters.since = now;
        }
        meters.turn(bad_form);
        meters.tokens = turn.tokens.or(meters.tokens);
        meters.window = turn.window.or(meters.window);
        meters.transcript_bytes = turn.transcript_bytes.or(meters.transcript_bytes);
    }
}
