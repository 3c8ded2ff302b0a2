//! Every row of the transition table, then random walks.

use super::*;
use crate::agent::Flight;

mod compression;
mod life;
mod prompts;
mod walks;
mod watch;

const NOW: Ms = 1_000_000;

/// An agent, driven by triggers in order.
struct Driven {
    agent: Agent,
    now: Ms,
    times: Times,
    letters: u64,
    acts: Vec<Act>,
}

impl Driven {
    fn new() -> Self {
        Self {
            agent: Agent::new(NOW),
            now: NOW,
            times: Times::default(),
            letters: 100,
            acts: Vec::new(),
        }
    }

    fn idle() -> Self {
        let mut driven = Self::new();
        driven.on(Trigger::Start);
        driven.on(ready());
        driven.on(ended(true, false));
        driven.is(State::Idle);
        driven
    }

    fn active() -> Self {
        let mut driven = Self::idle();
        driven.on(Trigger::Offered(Offer::Letter(1)));
        driven.on(Trigger::Seen(1));
        driven.is(State::Active);
        driven
    }

    fn approval(verdict: Option<Reply>) -> Self {
        let mut driven = Self::active();
        driven.on(Trigger::Prompted(prompt("p1"), verdict));
        driven.is(State::Approval);
        driven
    }

    fn noticed() -> Self {
        let mut driven = Self::idle();
        driven.on(Trigger::Offered(Offer::Compression("66 %".into())));
        driven.is(State::PreCompression);
        driven
    }

    fn awaiting() -> Self {
        let mut driven = Self::noticed();
        driven.on(ended(false, true));
        driven.on(Trigger::Verified(Ok(())));
        driven.is(State::AwaitAdmin);
        driven
    }

    fn on(&mut self, trigger: Trigger) -> &[Act] {
        self.acts = self.agent.on(self.now, trigger, &self.times);
        for act in &self.acts {
            // The world does the same with letters of NEXUS.
            if matches!(
                act,
                Act::Bootstrap | Act::Reflect | Act::Notice | Act::Remind | Act::NotReady(_)
            ) {
                self.letters += 1;
                self.agent.flight = Some(Flight {
                    letter: self.letters,
                    seen: false,
                });
            }
        }
        &self.acts
    }

    fn after(&mut self, secs: u64) -> &[Act] {
        self.now += secs * 1000;
        self.on(Trigger::Due)
    }

    #[track_caller]
    fn is(&self, state: State) {
        assert_eq!(self.agent.state, state, "{:?}", self.acts);
    }

    fn told(&self) -> bool {
        self.acts.iter().any(|act| matches!(act, Act::Tell(_)))
    }
}

fn ready() -> Trigger {
    Trigger::Ready {
        session: "s1".into(),
        busy: false,
    }
}

fn ended(identity: bool, ready: bool) -> Trigger {
    Trigger::Ended(Ending { identity, ready })
}

fn prompt(id: &str) -> Prompt {
    Prompt {
        id: id.into(),
        tool: "bash".into(),
        subject: "cargo test".into(),
        ..Prompt::default()
    }
}

fn found(digest: &str) -> Trigger {
    Trigger::Probed {
        alive: true,
        digest: digest.into(),
    }
}
