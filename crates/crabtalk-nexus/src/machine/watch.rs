//! Prompts, silence, and deadlines.

use super::{Act, DENIALS, SAME_PROBES, Turning};
use crate::agent::{Agent, Quiet, Standing, State, Step, Waiting};
use crate::backend::{Prompt, Reply};

/// A probe of a working agent may come early by this fraction of its interval.
const EARLY: u64 = 8;

impl Turning<'_> {
    /// Handles activity, which ends the investigation of a silence.
    pub(super) fn moved(&self, agent: &mut Agent) {
        agent.quiet = Quiet {
            probing: agent.quiet.probing,
            ..Quiet::default()
        };
        if agent.state == State::Stuck {
            self.works_again(agent);
        } else if agent.state == State::Active {
            self.look_later(agent);
        }
    }

    /// Postpones the probe of a working agent. A nearly equal deadline stays, since each
    /// change is logged and activity may come many times a second.
    fn look_later(&self, agent: &mut Agent) {
        let near = self.times.silent_secs.saturating_mul(1000) / EARLY;
        let last = agent.deadline.zip(self.look_at());
        if last.is_none_or(|(known, new)| known > new || new - known >= near) {
            agent.deadline = self.look_at();
        }
    }

    /// Returns to the interrupted work.
    fn works_again(&self, agent: &mut Agent) {
        let working = agent.working();
        let until = if working == State::Active {
            self.look_at()
        } else {
            agent.deadline
        };
        agent.go(working, agent.step, until);
    }

    pub(super) fn prompted(
        &self,
        agent: &mut Agent,
        prompt: Prompt,
        verdict: Option<Reply>,
    ) -> Vec<Act> {
        if matches!(agent.state, State::Offline | State::Failed)
            || agent.step == Step::Backoff
            || agent.over.contains(&prompt.id)
            || agent
                .waiting
                .iter()
                .any(|known| known.prompt.id == prompt.id)
        {
            return Vec::new();
        }
        agent.quiet = Quiet::default();
        if agent.state == State::Idle {
            agent.busy = true;
            agent.step = Step::Plain;
        }
        agent.go(State::Approval, agent.step, agent.deadline);
        agent.note = format!("asks for: {} {}", prompt.tool, first_line(&prompt.subject));
        let decided = match verdict {
            Some(Reply::Deny(_)) if agent.denied >= DENIALS => None,
            verdict => verdict,
        };
        agent.denied += u32::from(matches!(decided, Some(Reply::Deny(_))));
        let is_asked = decided.is_none();
        agent.waiting.push(Waiting {
            prompt: prompt.clone(),
            standing: decided.map_or(Standing::Asked, Standing::Decided),
        });
        if is_asked {
            return vec![Act::AskAdmin(prompt)];
        }
        self.press(agent)
    }

    /// Answers decided prompts, each once, unless a person has the window open.
    pub(super) fn press(&self, agent: &mut Agent) -> Vec<Act> {
        if agent.held || agent.adopting {
            return Vec::new();
        }
        let mut acts = Vec::new();
        for waiting in &mut agent.waiting {
            if let Standing::Decided(reply) = &waiting.standing {
                acts.push(Act::Reply(waiting.prompt.clone(), reply.clone()));
                waiting.standing = Standing::Pressed;
            }
        }
        acts
    }

    /// Closes a prompt; later events about it are ignored.
    pub(super) fn prompt_over(&self, agent: &mut Agent, id: &str) -> Vec<Act> {
        agent.is_over(id);
        self.prompt_gone(agent, id)
    }

    fn prompt_gone(&self, agent: &mut Agent, id: &str) -> Vec<Act> {
        agent.waiting.retain(|waiting| waiting.prompt.id != id);
        agent.quiet = Quiet::default();
        if agent.state == State::Approval && agent.waiting.is_empty() {
            self.works_again(agent);
            agent.note.clear();
        }
        Vec::new()
    }

    pub(super) fn pressed(&self, agent: &mut Agent, id: &str, live: bool) -> Vec<Act> {
        let was_there = agent.waiting.iter().any(|w| w.prompt.id == id);
        if live {
            return self.prompt_over(agent, id);
        }
        // It may still be open if the screen changed in between.
        self.prompt_gone(agent, id);
        if !was_there {
            return Vec::new();
        }
        self.probe(agent)
    }

    /// Handles an answer that may not have arrived: probes, and asks ADMIN.
    pub(super) fn press_failed(&self, agent: &mut Agent, id: &str) -> Vec<Act> {
        let Some(waiting) = agent.waiting.iter_mut().find(|w| w.prompt.id == id) else {
            return Vec::new();
        };
        waiting.standing = Standing::Asked;
        let mut acts = vec![Act::AskAdmin(waiting.prompt.clone())];
        acts.extend(self.probe(agent));
        acts
    }

    pub(super) fn probe(&self, agent: &mut Agent) -> Vec<Act> {
        if agent.quiet.probing || matches!(agent.state, State::Offline | State::Failed) {
            return Vec::new();
        }
        agent.quiet.probing = true;
        vec![Act::Probe]
    }

    pub(super) fn held(&self, agent: &mut Agent, held: bool) -> Vec<Act> {
        agent.held = held;
        if held {
            return Vec::new();
        }
        // The person may have answered; the screen is compared before a key is sent.
        self.press(agent)
    }

    pub(super) fn probed(&self, agent: &mut Agent, alive: bool, digest: String) -> Vec<Act> {
        agent.quiet.probing = false;
        if matches!(agent.state, State::Offline | State::Failed) {
            return Vec::new();
        }
        if !alive {
            return self.died(agent, "a probe finds it ended");
        }
        if !matches!(agent.state, State::Active | State::Stuck) {
            return Vec::new();
        }
        agent.deadline = self.look_at();
        let same = agent.quiet.digest.as_ref() == Some(&digest);
        agent.quiet.digest = Some(digest);
        if !same {
            agent.quiet.same = 0;
            return Vec::new();
        }
        agent.quiet.same += 1;
        // The program may have ignored Enter.
        if let Some(flight) = agent.flight.filter(|flight| !flight.seen)
            && !std::mem::replace(&mut agent.quiet.sent_again, true)
        {
            return vec![Act::SendAgain(flight.letter)];
        }
        if agent.quiet.same < SAME_PROBES {
            return Vec::new();
        }
        self.stuck(agent)
    }

    fn stuck(&self, agent: &mut Agent) -> Vec<Act> {
        let known = agent.state == State::Stuck;
        let note = "no activity for a long time: no prompt, no end of turn";
        agent.go(State::Stuck, agent.step, None);
        agent.monitor = false;
        agent.note = note.into();
        if known {
            return Vec::new();
        }
        vec![Act::Tell(format!(
            "it seems stuck: {note}. It is not monitored until its next message; `attach`, \
             `cancel` or `restart` it"
        ))]
    }

    /// Handles a new message: monitors the agent again.
    pub(super) fn routed(&self, agent: &mut Agent) -> Vec<Act> {
        let was_off = !std::mem::replace(&mut agent.monitor, true);
        if was_off && agent.state == State::Stuck {
            agent.quiet.digest = None;
            agent.quiet.same = 0;
            return self.probe(agent);
        }
        Vec::new()
    }

    pub(super) fn due(&self, agent: &mut Agent) -> Vec<Act> {
        if agent.deadline.is_none_or(|at| at > self.now) {
            return Vec::new();
        }
        agent.deadline = None;
        match (agent.state, agent.step) {
            (State::Initialization, Step::Backoff) => self.launch(agent),
            // An agent that waits for ADMIN has not missed its deadline.
            (_, Step::Launching | Step::Bootstrapping) if !agent.waiting.is_empty() => {
                agent.deadline = self.in_secs(self.times.bootstrap_secs);
                Vec::new()
            }
            (_, Step::Launching) => {
                let mut acts = vec![Act::StopAgent];
                acts.extend(self.died(agent, "it was not ready in time"));
                acts
            }
            (_, Step::Bootstrapping) => {
                agent.flight = None;
                self.not_proved(agent, "no answer to BOOTSTRAP in time")
            }
            (_, Step::Noticed) => self.remind(agent),
            (State::AwaitAdmin, Step::Awaiting) => {
                let mut acts = vec![Act::CalledOff];
                let why = "it was not approved in time".to_owned();
                acts.extend(self.give_compression_up(agent, why));
                acts
            }
            (State::Active | State::Stuck, _) => {
                if agent.monitor {
                    self.probe(agent)
                } else {
                    Vec::new()
                }
            }
            (
                State::Offline
                | State::Idle
                | State::Initialization
                | State::Approval
                | State::PreCompression
                | State::AwaitAdmin
                | State::Failed,
                _,
            ) => Vec::new(),
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
