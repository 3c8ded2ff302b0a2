//! Results of orders.

use super::{Commit, Done, World};
use crate::backend::{Answered, Compressed, Evidence, Failure, Mark, Probe, Submitted};
use crate::machine::{Ending, Trigger};
use crate::mail::Fate;
use crate::name::Name;

/// Failed deliveries after which a letter is given up.
const TRIES: u32 = 3;

/// Pause before a failed delivery is retried.
const AGAIN_MS: u64 = 5000;

/// Pause before a delivery that came at a bad time is retried.
const NOT_NOW_MS: u64 = 2000;

impl World {
    pub(super) fn done(&mut self, name: &Name, cause: u64, done: Done) {
        let cause = Some(cause);
        match done {
            Done::Launched(result) => self.launched(name, result, cause),
            Done::Marked(letter, Ok(mark)) => self.marked(name, letter, mark),
            Done::Marked(letter, Err(failure)) | Done::Submitted(letter, Err(failure)) => {
                self.not_delivered(name, letter, &failure, cause);
            }
            Done::Submitted(letter, Ok(submitted)) => {
                self.submitted(name, letter, submitted, cause);
            }
            Done::Pressed(id, result) => self.pressed(name, id, result, cause),
            Done::Probed(Ok(probe)) => self.probed(name, *probe, cause),
            Done::Probed(Err(failure)) => self.not_probed(name, &failure, cause),
            Done::Verified(result) => {
                let why = match &result {
                    Ok(()) => "its folder is committed and context.md is new".to_owned(),
                    Err(why) => format!("it is not ready: {why}"),
                };
                self.trigger(name, Trigger::Verified(result), &why, None, cause);
            }
            Done::Compressed(result) => self.compressed(name, result, cause),
            Done::Cancelled(result) => self.cancelled(name, result, cause),
            Done::Stopped(result) => {
                let why = match result {
                    Ok(()) => "it stopped".to_owned(),
                    Err(failure) => format!("it could not be stopped: {failure}"),
                };
                self.trigger(name, Trigger::Stopped, &why, None, cause);
            }
            Done::Committed(result) => self.committed(name, result, cause),
        }
    }

    /// Reports to ADMIN the files that a checkpoint lacks, once for each reason.
    fn committed(&mut self, name: &Name, result: Result<Commit, String>, cause: Option<u64>) {
        let (why, unsaved) = match result {
            Ok(Commit { what, left_out }) => {
                let unsaved = match left_out.as_slice() {
                    [] => String::new(),
                    [one] => format!("its checkpoint leaves out {one}"),
                    [one, rest @ ..] => {
                        format!("its checkpoint leaves out {one} and {} more", rest.len())
                    }
                };
                (format!("checkpoint: {what}"), unsaved)
            }
            Err(why) => {
                let unsaved = format!("its files are not committed: {why}");
                (format!("no checkpoint: {why}"), unsaved)
            }
        };
        self.note_caused(name, why, None, cause);
        let known = self.agents.get(name).map(|agent| agent.unsaved.as_str());
        if known == Some(&unsaved) {
            return;
        }
        if let Some(agent) = self.agent_mut(name) {
            agent.unsaved.clone_from(&unsaved);
        }
        if !unsaved.is_empty() {
            self.tell_of(name, unsaved);
        }
    }

    fn launched(&mut self, name: &Name, result: Result<(), Failure>, cause: Option<u64>) {
        let Err(failure) = result else { return };
        let why = format!("it cannot be started: {failure}");
        self.trigger(name, Trigger::Failed(failure), &why, None, cause);
    }

    /// Submits a letter after the end of the transcript was recorded.
    fn marked(&mut self, name: &Name, letter: u64, mark: Mark) {
        if !self.is_with(name, letter) {
            return;
        }
        self.mail.change(letter, |course| course.mark = Some(mark));
        let n = self.last_entry + 1;
        self.deliver(name, letter, n);
        let why = format!("transcript position before m{letter} recorded; submitting it");
        self.note(Some(name), why, None);
    }

    fn not_probed(&mut self, name: &Name, failure: &Failure, cause: Option<u64>) {
        let trigger = Trigger::Probed {
            alive: !matches!(failure, Failure::NotRunning(_)),
            digest: failure.to_string(),
        };
        let why = format!("the probe failed: {failure}");
        self.trigger(name, trigger, &why, None, cause);
    }

    fn compressed(&mut self, name: &Name, result: Result<Compressed, Failure>, cause: Option<u64>) {
        let (result, why, evidence) = match result {
            Ok(done) => (
                Ok(done.session),
                "its context is compressed".to_owned(),
                Some(done.evidence),
            ),
            Err(failure) => {
                let why = format!("compression failed: {failure}");
                (Err(failure.to_string()), why, None)
            }
        };
        self.trigger(name, Trigger::Compressed(result), &why, evidence, cause);
    }

    /// Without a turn in flight, no end will be reported.
    fn cancelled(&mut self, name: &Name, result: Result<bool, Failure>, cause: Option<u64>) {
        let flight = self.agents.get(name).and_then(|agent| agent.flight);
        match result {
            Ok(false) if flight.is_none_or(|flight| flight.seen) => {
                if let Some(flight) = flight {
                    self.mail
                        .change(flight.letter, |course| course.fate = Fate::Answered);
                }
                let ending = Trigger::Ended(Ending::default());
                self.trigger(name, ending, "no turn is in flight", None, cause);
            }
            Ok(_) => self.note_caused(name, "its turn is being cancelled".into(), None, cause),
            Err(failure) => {
                let why = format!("its turn cannot be cancelled: {failure}");
                self.note_caused(name, why, None, cause);
            }
        }
    }

    fn is_with(&self, name: &Name, letter: u64) -> bool {
        let flight = self.agents.get(name).and_then(|agent| agent.flight);
        flight.is_some_and(|flight| flight.letter == letter)
    }

    fn note_caused(
        &mut self,
        name: &Name,
        why: String,
        evidence: Option<Evidence>,
        cause: Option<u64>,
    ) {
        let mut entry = self.entry(Some(name), why, evidence);
        entry.cause = cause;
        self.out.entries.push(entry);
    }

    fn submitted(&mut self, name: &Name, letter: u64, done: Submitted, cause: Option<u64>) {
        let (why, evidence) = match done {
            Submitted::Sent(evidence) => (format!("m{letter} is submitted"), evidence),
            Submitted::AlreadyThere(evidence) => {
                let why = format!("m{letter} is in the transcript already; nothing was typed");
                (why, evidence)
            }
            Submitted::NotNow(evidence) => {
                let again = self.now.saturating_add(NOT_NOW_MS);
                self.mail.change(letter, |course| course.not_before = again);
                (format!("m{letter} is postponed"), evidence)
            }
        };
        self.note_caused(name, why, Some(evidence), cause);
    }

    fn not_delivered(&mut self, name: &Name, letter: u64, failure: &Failure, cause: Option<u64>) {
        if !self.is_with(name, letter) {
            return;
        }
        if let Failure::Unreachable(why) = failure {
            let trigger = Trigger::Failed(failure.clone());
            self.trigger(name, trigger, why, None, cause);
            return;
        }
        if matches!(failure, Failure::NotRunning(_)) {
            let why = failure.to_string();
            self.trigger(name, Trigger::Died(why.clone()), &why, None, cause);
            return;
        }
        let again = self.now.saturating_add(AGAIN_MS);
        let mut given_up = false;
        self.mail.change(letter, |course| {
            course.failed += 1;
            course.not_before = again;
            given_up = course.failed >= TRIES;
            if given_up {
                course.fate = Fate::Dead(failure.to_string());
            }
        });
        let why = format!("m{letter} cannot be delivered: {failure}");
        if !given_up {
            self.note_caused(name, why, None, cause);
            return;
        }
        self.trigger(name, Trigger::Undeliverable(letter), &why, None, cause);
        self.tell_of(name, why);
    }

    /// Retries deliveries whose pause is over.
    pub(super) fn retry(&mut self) {
        let now = self.now;
        let is_due = |letter: u64| {
            self.mail.get(letter).is_some_and(|letter| {
                let at = letter.course.not_before;
                at > 0 && at <= now && letter.course.fate != Fate::Acked
            })
        };
        let due: Vec<(Name, u64)> = self
            .agents
            .iter()
            .filter_map(|(name, agent)| Some((name.clone(), agent.flight?.letter)))
            .filter(|(_, letter)| is_due(*letter))
            .collect();
        for (name, letter) in due {
            self.mail.change(letter, |course| course.not_before = 0);
            let n = self.last_entry + 1;
            self.deliver(&name, letter, n);
            self.note(Some(&name), format!("m{letter} is tried again"), None);
        }
    }

    fn pressed(
        &mut self,
        name: &Name,
        id: String,
        result: Result<Answered, Failure>,
        cause: Option<u64>,
    ) {
        let (trigger, why, evidence) = match result {
            Ok(Answered::Taken(evidence)) => {
                let why = format!("the prompt [{id}] is answered");
                (Trigger::Pressed(id, true), why, Some(evidence))
            }
            Ok(Answered::Stale(evidence)) => {
                let why = format!("STALE: the prompt [{id}] had closed; no key was sent");
                (Trigger::Pressed(id, false), why, Some(evidence))
            }
            Err(failure) => {
                let why = format!("the prompt [{id}] could not be answered: {failure}");
                (Trigger::PressFailed(id), why, None)
            }
        };
        self.trigger(name, trigger, &why, evidence, cause);
    }

    fn probed(&mut self, name: &Name, probe: Probe, cause: Option<u64>) {
        let evidence = Some(probe.evidence);
        if let Some(prompt) = probe.prompt.filter(|_| probe.alive) {
            if let Some(agent) = self.agent_mut(name) {
                agent.quiet.probing = false;
            }
            self.prompted(name, prompt, evidence);
            return;
        }
        let trigger = Trigger::Probed {
            alive: probe.alive,
            digest: probe.digest,
        };
        self.trigger(name, trigger, "probe", evidence, cause);
    }
}
