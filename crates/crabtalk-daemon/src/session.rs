//! One connection: translates wire messages into calls and back.
//!
//! Invariants: names and paths of a client are checked before any use.

/// Matches requests of several kinds.
macro_rules! any {
    ($($kind:ident)*) => { $(crabtalk_proto::client_message::Msg::$kind(_))|* };
}

mod asks;
mod broken;
mod bus;
mod changes;
mod conversation;
mod crons;
mod events;
mod everywhere;
mod folders;
mod history;
mod knowledge;
mod lists;
mod logins;
mod mcps;
mod memories;
mod models;
mod operations;
mod probe;
mod reach;
mod recorded;
mod remote;
mod requests;
mod rights;
mod runs;
mod shown;
mod stats;
mod tokens;
mod trash;
mod wire;

use crate::error::Error;
use crate::mcp::Present;
use crate::node::Node;
use crabtalk_config::Config;
use crabtalk_domain::{ConversationKey, Origin, Sender};
use remote::Who;
pub(crate) use remote::remote_clients;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// The default sender of local messages (CONV-8).
const LOCAL_SENDER: &str = "user";

pub(crate) struct Session {
    node: Arc<Node>,
    shutdown: CancellationToken,
    who: Who,
    /// Set for a component without tools.
    present: OnceLock<Present>,
}

/// The limit of a list: the client's, else `usual`, but at most `most`.
fn as_many(wanted: u32, usual: usize, most: usize) -> usize {
    match wanted as usize {
        0 => usual,
        wanted => wanted.min(most),
    }
}

/// The filter of a list; an absent or empty name matches any (wire.md).
fn narrowed(name: &Option<String>) -> Option<&str> {
    wanted(name.as_deref()?)
}

/// The filter of a list; an empty name matches any.
fn wanted(name: &str) -> Option<&str> {
    (!name.is_empty()).then_some(name)
}

/// Refuses reserved senders (CONV-8).
fn refuse_reserved(sender: &Sender) -> Result<(), Error> {
    match sender.is_reserved() {
        true => Err(crabtalk_runtime::Error::ReservedSender(sender.to_string()).into()),
        false => Ok(()),
    }
}

impl Session {
    fn new(node: Arc<Node>, who: Who, shutdown: CancellationToken) -> Self {
        Self {
            node,
            shutdown,
            who,
            present: OnceLock::new(),
        }
    }

    /// The origin of runs that the client starts as a sender.
    fn origin(&self, sender: &str) -> Origin {
        Origin::Client {
            principal: self.principal(sender),
        }
    }

    fn config(&self) -> Arc<Config> {
        self.node.config()
    }

    /// The conversation of a message (CONV-8).
    fn key(&self, agent: &str, sender: &str) -> Result<ConversationKey, Error> {
        let catalog = self.node.runtime.catalog();
        let agent = if agent.is_empty() {
            catalog.default_agent.as_str()
        } else {
            agent
        };
        let sender = if sender.is_empty() {
            self.default_sender()
        } else {
            sender
        };
        ConversationKey::new(agent, sender).map_err(|e| Error::Invalid(e.to_string()))
    }
}
