//! Checks whether a client's token reaches the objects that a request names (REMOTE-1).
//!
//! Invariants: a refusal depends on the token and the configured owners, never on the
//! existence of an object, so that it reveals nothing; lists are filtered where they are
//! made.

use super::Session;
use super::requests::{Names, row};
use crate::error::Error;
use crabtalk_domain::ConversationKey;
use crabtalk_proto::client_message::Msg;
use crabtalk_runtime::{Error as RunError, PendingAsk as Waiting};

impl Session {
    /// Refuses a request that names an object beyond the client's token.
    pub(super) fn check_reach(&self, request: &Msg) -> Result<(), Error> {
        let Some(grant) = self.grant() else {
            return Ok(());
        };
        let config = self.config();
        let or = |sender: &str| match sender {
            "" => grant.name().to_owned(),
            sender => sender.to_owned(),
        };
        match row(request).0 {
            Names::Nothing | Names::Answer => Ok(()),
            Names::Pair(agent, sender) => {
                let (agent, sender) = (self.or_default_agent(agent), or(sender));
                match grant.agent(&agent) && grant.sender(&config, &sender) {
                    true => Ok(()),
                    false => Err(absent(&agent, &sender)),
                }
            }
            Names::Speaks(agent, sender, guest) => {
                self.check_agent(agent)?;
                if !guest.is_empty() {
                    self.check_agent(guest)?;
                }
                let sender = or(sender);
                match grant.sender(&config, &sender) {
                    true => Ok(()),
                    false => Err(Error::Forbidden(format!(
                        "this token does not speak as {sender:?}"
                    ))),
                }
            }
            Names::Agent(agent) => self.check_agent(agent),
            Names::Event(source) => {
                let may = grant.all_agents() && grant.sender(&config, &format!("event:{source}"));
                may.then_some(()).ok_or_else(|| {
                    Error::Forbidden(format!(
                        "this token does not publish {source:?}: it has to reach all agents, and \
                         the sender \"event:{source}\""
                    ))
                })
            }
            Names::Node => grant.unrestricted().then_some(()).ok_or_else(|| {
                Error::Forbidden("this request needs a token that reaches the whole node".into())
            }),
        }
    }

    fn or_default_agent(&self, agent: &str) -> String {
        match agent {
            "" => self.config().default_agent.clone(),
            agent => agent.to_owned(),
        }
    }

    /// Treats an agent beyond reach as absent; the error names only reachable ones.
    fn check_agent(&self, agent: &str) -> Result<(), Error> {
        let Some(grant) = self.grant() else {
            return Ok(());
        };
        let agent = self.or_default_agent(agent);
        let catalog = self.node.runtime.catalog();
        let is_there = catalog.agents.keys().any(|name| name.as_str() == agent);
        if is_there && grant.agent(&agent) {
            return Ok(());
        }
        let known = catalog.agents.keys().map(|name| name.as_str());
        let known: Vec<&str> = known.filter(|name| grant.agent(name)).collect();
        let error = RunError::UnknownAgent {
            name: agent,
            known: match known.as_slice() {
                [] => "none".to_owned(),
                known => known.join(", "),
            },
        };
        Err(error.into())
    }

    /// Whether the client reaches an agent.
    pub(super) fn reaches_agent(&self, agent: &str) -> bool {
        self.grant().is_none_or(|grant| grant.agent(agent))
    }

    /// Whether the client reaches a conversation.
    pub(super) fn reaches(&self, agent: &str, sender: &str) -> bool {
        self.grant()
            .is_none_or(|grant| grant.agent(agent) && grant.sender(&self.config(), sender))
    }

    /// Whether the client reaches a conversation.
    pub(super) fn reaches_key(&self, key: &ConversationKey) -> bool {
        self.reaches(key.agent.as_str(), key.sender.as_str())
    }

    /// Whether the client reaches all objects.
    pub(super) fn reaches_everything(&self) -> bool {
        self.grant().is_none_or(|grant| grant.everything())
    }

    /// Whether the client acts for an owner.
    pub(super) fn acts_for_owner(&self) -> bool {
        self.grant()
            .is_none_or(|grant| grant.acts_for_owner(&self.config()))
    }

    /// Whether the client may see an ask. An ask to owners requires a client that acts for
    /// them.
    pub(super) fn sees_ask(&self, pending: &Waiting) -> bool {
        self.grant().is_none_or(|grant| {
            let config = self.config();
            grant.pair(&config, &pending.key) && (!pending.inbox || grant.acts_for_owner(&config))
        })
    }

    /// Treats an ask that the client may not see as absent.
    pub(super) fn check_ask(&self, id: Option<&str>) -> Result<(), Error> {
        let (Some(id), Some(_)) = (id, self.grant()) else {
            return Ok(());
        };
        let asks = self.node.runtime.asks(None, None);
        let asked = asks.iter().find(|pending| pending.ask.id == id);
        match asked.is_some_and(|pending| self.sees_ask(pending)) {
            true => Ok(()),
            false => Err(RunError::NoAsk(format!(
                " under the id {id:?}; it was answered or withdrawn"
            ))
            .into()),
        }
    }
}

/// The error for a conversation beyond reach, whether or not it exists.
pub(super) fn absent(agent: &str, sender: &str) -> Error {
    Error::NotFound(format!(
        "conversation {agent} / {sender} is not within this token's reach"
    ))
}

#[cfg(test)]
mod tests;
