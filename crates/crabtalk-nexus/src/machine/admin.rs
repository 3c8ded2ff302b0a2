//! Commands of ADMIN, and the two phases of compression.
//!
//! Invariant: until the compression itself has succeeded, a failure leaves the agent
//! working with its context.

use super::{Act, COMPRESSION_AGAIN_MS, REFUSALS, Turning};
use crate::agent::{Agent, Standing, State, Step};
use crate::backend::Reply;

impl Turning<'_> {
    pub(super) fn stop(&self, agent: &mut Agent) -> Vec<Act> {
        agent.wanted = false;
        self.end(agent)
    }

    pub(super) fn restart(&self, agent: &mut Agent) -> Vec<Act> {
        agent.wanted = true;
        agent.restarts.clear();
        agent.bootstraps = 0;
        if agent.state == State::Offline && agent.step == Step::Plain {
            return self.launch(agent);
        }
        self.end(agent)
    }

    fn end(&self, agent: &mut Agent) -> Vec<Act> {
        if agent.state == State::Offline {
            return Vec::new();
        }
        let mut acts = self.put_down(agent);
        agent.go(State::Offline, Step::Stopping, None);
        agent.note = "stopping".into();
        acts.push(Act::StopAgent);
        acts
    }

    pub(super) fn compress(&self, agent: &mut Agent) -> Vec<Act> {
        match agent.state {
            State::Idle if !agent.busy && !agent.adopting => {
                return self.notice(agent, "requested by ADMIN".into());
            }
            State::Idle
            | State::Active
            | State::Approval
            | State::Stuck
            | State::Initialization => agent.compress_wanted = true,
            State::Offline | State::PreCompression | State::AwaitAdmin | State::Failed => {}
        }
        Vec::new()
    }

    /// Decides about the prompt of this id or the oldest, or about the compression.
    pub(super) fn reply(&self, agent: &mut Agent, id: Option<&str>, reply: Reply) -> Vec<Act> {
        let mut open = agent.waiting.iter_mut();
        let found = open.find(|waiting| {
            waiting.standing == Standing::Asked && id.is_none_or(|id| waiting.prompt.id == id)
        });
        if let Some(waiting) = found {
            waiting.standing = Standing::Decided(reply);
            return self.press(agent);
        }
        if agent.step != Step::Awaiting || id.is_some() {
            return Vec::new();
        }
        match reply {
            Reply::Allow => {
                if let Some(plan) = &mut agent.plan {
                    plan.approved = true;
                }
                self.compress_if_approved(agent)
            }
            Reply::Deny(_) => self.call_off(agent),
            Reply::Always | Reply::Text(_) => Vec::new(),
        }
    }

    pub(super) fn cancel(&self, agent: &mut Agent) -> Vec<Act> {
        agent.compress_wanted = false;
        match agent.step {
            Step::Noticed | Step::Verifying | Step::Awaiting => self.call_off(agent),
            // Too late to cancel this turn, and too early for another.
            Step::Compressing => Vec::new(),
            Step::Plain | Step::Bootstrapping => match agent.state {
                State::Active | State::Approval | State::Stuck | State::Initialization => {
                    vec![Act::CancelTurn]
                }
                State::Offline
                | State::Idle
                | State::PreCompression
                | State::AwaitAdmin
                | State::Failed => Vec::new(),
            },
            Step::Stopping | Step::Backoff | Step::Launching => Vec::new(),
        }
    }

    fn call_off(&self, agent: &mut Agent) -> Vec<Act> {
        self.leave_compression(agent);
        agent.note = "ADMIN cancelled the compression".into();
        vec![Act::CalledOff]
    }

    fn leave_compression(&self, agent: &mut Agent) {
        agent.plan = None;
        agent.no_compression_before = self.now.saturating_add(COMPRESSION_AGAIN_MS);
        if agent.busy || agent.flight.is_some() {
            let state = if agent.waiting.is_empty() {
                State::Active
            } else {
                State::Approval
            };
            agent.go(state, Step::Plain, self.look_at());
        } else {
            self.idle(agent);
        }
    }

    pub(super) fn give_compression_up(&self, agent: &mut Agent, why: String) -> Vec<Act> {
        self.leave_compression(agent);
        vec![Act::Tell(format!(
            "its compression failed: {why}. It continues with its present context"
        ))]
    }

    /// Handles the deadline for readiness.
    pub(super) fn remind(&self, agent: &mut Agent) -> Vec<Act> {
        let reminded = agent
            .plan
            .as_mut()
            .is_none_or(|plan| std::mem::replace(&mut plan.reminded, true));
        if reminded {
            return self.give_compression_up(agent, "it was not ready in time".into());
        }
        agent.deadline = self.in_secs(self.times.reminder_secs);
        // Work is not interrupted: the agent has the notice and is preparing.
        if agent.busy || agent.flight.is_some() || !agent.waiting.is_empty() {
            return Vec::new();
        }
        vec![Act::Remind]
    }

    pub(super) fn verified(&self, agent: &mut Agent, result: Result<(), String>) -> Vec<Act> {
        if agent.step != Step::Verifying {
            return Vec::new();
        }
        match result {
            Ok(()) => {
                let until = self.in_secs(self.times.approval_secs);
                agent.go(State::AwaitAdmin, Step::Awaiting, until);
                agent.note = "ready for compression".into();
                if agent.plan.as_ref().is_some_and(|plan| plan.approved) {
                    return self.compress_if_approved(agent);
                }
                let why = agent.plan.as_ref().map_or("", |plan| plan.why.as_str());
                vec![Act::Tell(format!(
                    "it is ready for compression ({why}): its folder is committed, and context.md \
                     is newer than the notice; `approve` or `cancel` it"
                ))]
            }
            Err(why) => {
                let refused = agent.plan.as_mut().map_or(0, |plan| {
                    plan.refused += 1;
                    plan.refused
                });
                if refused > REFUSALS {
                    let why = format!("its readiness was refused {refused} times: {why}");
                    return self.give_compression_up(agent, why);
                }
                let until = agent.deadline.or(self.in_secs(self.times.reminder_secs));
                agent.go(State::PreCompression, Step::Noticed, until);
                vec![Act::NotReady(why)]
            }
        }
    }

    pub(super) fn compress_if_approved(&self, agent: &mut Agent) -> Vec<Act> {
        let approved = agent.plan.as_ref().is_some_and(|plan| plan.approved);
        if !approved || agent.busy || agent.flight.is_some() {
            return Vec::new();
        }
        let until = self.in_secs(self.times.bootstrap_secs);
        agent.go(State::AwaitAdmin, Step::Compressing, until);
        agent.note = "it is being compressed".into();
        vec![Act::Checkpoint("before compression".into()), Act::Compress]
    }

    pub(super) fn compressed(&self, agent: &mut Agent, result: Result<String, String>) -> Vec<Act> {
        if agent.step != Step::Compressing {
            return Vec::new();
        }
        match result {
            Ok(session) => {
                agent.session = Some(session);
                agent.bootstraps = 0;
                let mut acts = vec![Act::Checkpoint("after compression".into())];
                acts.extend(self.bootstrap(agent));
                acts
            }
            Err(why) => self.give_compression_up(agent, why),
        }
    }
}
