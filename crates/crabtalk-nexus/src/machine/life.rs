//! The life of an agent: launch, proof of identity, work, and end.

use super::{
    AWAY_MS, Act, BACKOFF_MS, BOOTSTRAPS, COMPRESSION_DONE_MS, Ending, Offer, RESTART_WINDOW_MS,
    Turning,
};
use crate::agent::{Agent, Flight, Plan, Quiet, State, Step};

impl Turning<'_> {
    pub(super) fn start(&self, agent: &mut Agent) -> Vec<Act> {
        if agent.state != State::Offline || agent.step == Step::Stopping {
            // An agent that is stopping is started when it has stopped.
            agent.wanted |= agent.state == State::Offline;
            return Vec::new();
        }
        agent.wanted = true;
        agent.bootstraps = 0;
        self.launch(agent)
    }

    pub(super) fn launch(&self, agent: &mut Agent) -> Vec<Act> {
        let until = self.in_secs(self.times.bootstrap_secs);
        agent.go(State::Initialization, Step::Launching, until);
        agent.note = "starting".into();
        vec![Act::Launch]
    }

    /// Resets the state of a process that ended, and requeues its letter.
    pub(super) fn put_down(&self, agent: &mut Agent) -> Vec<Act> {
        agent.busy = false;
        agent.adopting = false;
        agent.held = false;
        agent.waiting.clear();
        agent.denied = 0;
        agent.quiet = Quiet::default();
        agent.plan = None;
        let flight = agent.flight.take();
        flight
            .map(|flight| Act::Requeue(flight.letter))
            .into_iter()
            .collect()
    }

    pub(super) fn launch_failed(&self, agent: &mut Agent, why: &str) -> Vec<Act> {
        if agent.step == Step::Launching || agent.adopting {
            return self.died(agent, why);
        }
        Vec::new()
    }

    /// Fails an agent with a missing requirement; a retry helps after a person installs it.
    pub(super) fn impossible(&self, agent: &mut Agent, why: &str) -> Vec<Act> {
        if matches!(agent.state, State::Offline | State::Failed) {
            return Vec::new();
        }
        let mut acts = self.put_down(agent);
        agent.go(State::Failed, Step::Plain, None);
        agent.note = why.to_owned();
        acts.push(Act::Tell(format!(
            "it cannot be started: {why}; fix that, then `restart` it"
        )));
        acts
    }

    /// Launches the agent again until its daemon answers; these launches do not count as
    /// restarts.
    pub(super) fn unreachable(&self, agent: &mut Agent, why: &str) -> Vec<Act> {
        if matches!(agent.state, State::Offline | State::Failed) || agent.step == Step::Backoff {
            return Vec::new();
        }
        let mut acts = self.put_down(agent);
        let again = Some(self.now.saturating_add(AWAY_MS));
        agent.go(State::Initialization, Step::Backoff, again);
        agent.bootstraps = 0;
        agent.note = format!("the daemon does not answer: {why}");
        if !std::mem::replace(&mut agent.away, true) {
            acts.push(Act::Tell(format!(
                "{}; the agent continues when the daemon is back",
                agent.note
            )));
        }
        acts
    }

    pub(super) fn died(&self, agent: &mut Agent, why: &str) -> Vec<Act> {
        if matches!(agent.state, State::Offline | State::Failed) {
            return Vec::new();
        }
        let found_gone = agent.adopting;
        let mut acts = self.put_down(agent);
        agent.note = why.to_owned();
        let since = self.now.saturating_sub(RESTART_WINDOW_MS);
        agent.restarts.retain(|at| *at > since);
        if agent.restarts.len() >= self.times.restarts {
            agent.go(State::Failed, Step::Plain, None);
            acts.push(Act::Tell(format!(
                "it ended {} times within five minutes; `restart` starts it again: {why}",
                agent.restarts.len() + 1
            )));
            return acts;
        }
        // An end while NEXUS was not running does not count as a crash.
        let exponent = u32::try_from(agent.restarts.len()).unwrap_or(u32::MAX);
        let pause = if found_gone {
            0
        } else {
            BACKOFF_MS.saturating_mul(5_u64.saturating_pow(exponent))
        };
        if !found_gone {
            agent.restarts.push(self.now);
        }
        let at = Some(self.now.saturating_add(pause));
        agent.go(State::Initialization, Step::Backoff, at);
        agent.bootstraps = 0;
        acts
    }

    pub(super) fn stopped(&self, agent: &mut Agent) -> Vec<Act> {
        if agent.step != Step::Stopping {
            return Vec::new();
        }
        agent.go(State::Offline, Step::Plain, None);
        if agent.wanted {
            return self.launch(agent);
        }
        Vec::new()
    }

    /// Handles a restart of NEXUS. The agent may have continued in between.
    pub(super) fn recover(&self, agent: &mut Agent) -> Vec<Act> {
        agent.quiet = Quiet::default();
        agent.waiting.clear();
        agent.held = false;
        match (agent.state, agent.step) {
            (State::Failed, _) => Vec::new(),
            (State::Offline, Step::Stopping) => vec![Act::StopAgent],
            (State::Offline, _) if agent.wanted => self.launch(agent),
            (State::Offline, _) => Vec::new(),
            // The pause before a restart continues.
            (_, Step::Backoff) => Vec::new(),
            _ => {
                if matches!(agent.state, State::Approval | State::Stuck) {
                    let working = agent.working();
                    agent.go(working, agent.step, agent.deadline);
                }
                // A deadline that passed while NEXUS was not running is not the agent's fault.
                let again = self.in_secs(self.times.bootstrap_secs);
                agent.deadline = agent
                    .deadline
                    .max(again.filter(|_| agent.deadline.is_some()));
                agent.adopting = true;
                vec![Act::Launch]
            }
        }
    }

    pub(super) fn ready(&self, agent: &mut Agent, session: String, busy: bool) -> Vec<Act> {
        let adopted = std::mem::take(&mut agent.adopting);
        agent.session = Some(session);
        agent.busy = busy;
        agent.away = false;
        match (agent.state, agent.step) {
            (State::Offline | State::Failed, _) => Vec::new(),
            (_, Step::Launching | Step::Backoff) => {
                agent.meters.form.clear();
                agent.corrections = 0;
                self.bootstrap(agent)
            }
            _ if !adopted => Vec::new(),
            (_, Step::Verifying) => vec![Act::Verify],
            (_, Step::Compressing) => vec![Act::Compress],
            // The turn may have ended in between.
            (_, Step::Awaiting) if agent.flight.is_none() => self.compress_if_approved(agent),
            _ => {
                if let Some(flight) = agent.flight {
                    return vec![Act::SendAgain(flight.letter)];
                }
                match (agent.state, busy) {
                    (State::Idle, true) => agent.go(State::Active, Step::Plain, self.look_at()),
                    (State::Active, false) => {
                        agent.go(State::Idle, Step::Plain, self.idle_until());
                    }
                    _ => {}
                }
                Vec::new()
            }
        }
    }

    /// Handles a compaction that NEXUS did not request: commits the agent's files, and checks its
    /// identity at the end of its turn.
    pub(super) fn compacted(&self, agent: &mut Agent) -> Vec<Act> {
        if !matches!(
            agent.step,
            Step::Plain | Step::Noticed | Step::Verifying | Step::Awaiting
        ) || matches!(agent.state, State::Offline | State::Failed)
        {
            return Vec::new();
        }
        agent.unproved = true;
        agent.meters.begin(self.now);
        let mut acts = vec![Act::Checkpoint("after a compaction".into())];
        if agent.is_free() {
            acts.extend(self.bootstrap(agent));
        }
        acts
    }

    pub(super) fn bootstrap(&self, agent: &mut Agent) -> Vec<Act> {
        agent.unproved = false;
        let until = self.in_secs(self.times.bootstrap_secs);
        agent.go(State::Initialization, Step::Bootstrapping, until);
        agent.note = "BOOTSTRAP sent".into();
        vec![Act::Bootstrap]
    }

    /// Asks for the identity again, or fails the agent.
    pub(super) fn not_proved(&self, agent: &mut Agent, why: &str) -> Vec<Act> {
        if agent.bootstraps < BOOTSTRAPS {
            agent.bootstraps += 1;
            let mut acts = Vec::new();
            if agent.busy {
                acts.push(Act::CancelTurn);
            }
            acts.extend(self.bootstrap(agent));
            return acts;
        }
        let mut acts = self.put_down(agent);
        agent.go(State::Failed, Step::Plain, None);
        agent.note = why.to_owned();
        acts.push(Act::Tell(format!(
            "no startup confirmation after three requests: {why}; `restart` tries again"
        )));
        acts
    }

    pub(super) fn idle_until(&self) -> Option<u64> {
        self.in_secs(self.times.reflection_secs)
    }

    pub(super) fn look_at(&self) -> Option<u64> {
        self.in_secs(self.times.silent_secs)
    }

    pub(super) fn idle(&self, agent: &mut Agent) {
        agent.go(State::Idle, Step::Plain, self.idle_until());
        agent.note.clear();
    }

    pub(super) fn ended(&self, agent: &mut Agent, ending: Ending) -> Vec<Act> {
        agent.busy = false;
        for waiting in std::mem::take(&mut agent.waiting) {
            agent.is_over(&waiting.prompt.id);
        }
        agent.denied = 0;
        agent.quiet = Quiet::default();
        agent.flight = None;
        match (agent.state, agent.step) {
            (State::Offline | State::Failed, _) => Vec::new(),
            (_, Step::Bootstrapping) if ending.identity => self.proved(agent),
            (_, Step::Bootstrapping) => {
                self.not_proved(agent, "its answer does not confirm its identity")
            }
            (_, Step::Noticed) if ending.ready => {
                agent.go(State::PreCompression, Step::Verifying, agent.deadline);
                vec![Act::Verify]
            }
            (_, Step::Awaiting) => {
                agent.go(State::AwaitAdmin, Step::Awaiting, agent.deadline);
                self.compress_if_approved(agent)
            }
            (
                _,
                Step::Launching
                | Step::Backoff
                | Step::Noticed
                | Step::Verifying
                | Step::Compressing,
            ) => {
                agent.go(agent.working(), agent.step, agent.deadline);
                Vec::new()
            }
            (_, Step::Plain | Step::Stopping) => {
                agent.worked = true;
                if agent.unproved {
                    return self.bootstrap(agent);
                }
                self.idle(agent);
                Vec::new()
            }
        }
    }

    fn proved(&self, agent: &mut Agent) -> Vec<Act> {
        agent.bootstraps = 0;
        let recovered = agent.plan.take().is_some();
        if recovered {
            agent.meters.begin(self.now);
            agent.no_compression_before = self.now.saturating_add(COMPRESSION_DONE_MS);
        }
        self.idle(agent);
        let why = if recovered {
            "identity confirmed after compression"
        } else {
            "identity confirmed"
        };
        vec![Act::Checkpoint(why.into())]
    }

    pub(super) fn began(&self, agent: &mut Agent) -> Vec<Act> {
        agent.busy = true;
        self.moved(agent);
        if agent.state == State::Idle {
            agent.go(State::Active, Step::Plain, self.look_at());
        }
        Vec::new()
    }

    pub(super) fn seen(&self, agent: &mut Agent, letter: u64) -> Vec<Act> {
        if let Some(flight) = &mut agent.flight
            && flight.letter == letter
        {
            flight.seen = true;
            agent.busy = true;
        }
        self.moved(agent);
        Vec::new()
    }

    /// Gives up a letter.
    pub(super) fn undeliverable(&self, agent: &mut Agent, letter: u64) -> Vec<Act> {
        if agent.flight.is_none_or(|flight| flight.letter != letter) {
            return Vec::new();
        }
        agent.flight = None;
        agent.busy = false;
        match (agent.state, agent.step) {
            (State::Offline | State::Failed, _) => Vec::new(),
            (_, Step::Bootstrapping) => self.not_proved(agent, "BOOTSTRAP cannot be delivered"),
            (_, Step::Noticed | Step::Verifying) => self.give_compression_up(
                agent,
                "the notice of compression cannot be delivered".into(),
            ),
            (_, Step::Awaiting | Step::Compressing | Step::Launching | Step::Backoff) => Vec::new(),
            (_, Step::Plain | Step::Stopping) => {
                self.idle(agent);
                Vec::new()
            }
        }
    }

    pub(super) fn offered(&self, agent: &mut Agent, offer: Offer) -> Vec<Act> {
        if !agent.is_free() {
            return Vec::new();
        }
        match offer {
            Offer::Letter(letter) => {
                agent.go(State::Active, Step::Plain, self.look_at());
                agent.monitor = true;
                agent.note = format!("working on message m{letter}");
                self.take(agent, letter);
                vec![Act::Send(letter)]
            }
            Offer::Reflection => {
                agent.go(State::Active, Step::Plain, self.look_at());
                agent.worked = false;
                agent.note = "REFLECTION sent".into();
                vec![Act::Reflect]
            }
            Offer::Compression(why) => self.notice(agent, why),
        }
    }

    pub(super) fn notice(&self, agent: &mut Agent, why: String) -> Vec<Act> {
        let until = self.in_secs(self.times.readiness_secs);
        agent.go(State::PreCompression, Step::Noticed, until);
        agent.compress_wanted = false;
        agent.note = format!("compression: {why}");
        agent.plan = Some(Plan {
            why,
            noticed_at: self.now,
            ..Plan::default()
        });
        vec![Act::Notice]
    }

    fn take(&self, agent: &mut Agent, letter: u64) {
        agent.flight = Some(Flight {
            letter,
            seen: false,
        });
    }
}
