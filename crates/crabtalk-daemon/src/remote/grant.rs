//! What a token reaches.
//!
//! Invariants: a token without the role `admin` reaches no owner's conversation,
//! whatever its patterns say; what the daemon does by itself is reached only by
//! patterns that say so; the answer depends on the token and on who is an owner,
//! never on what exists.

use crate::error::Error;
use crabtalk_config::{Config, Token, TokenRole};
use crabtalk_domain::{ConversationKey, Principal, Sender, TokenName, glob_matches};
use crabtalk_proto::Role;
use jiff::Timestamp;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How the senders begin that only the daemon makes (CONV-10).
const RESERVED: [&str; 3] = ["cron", "delegate:", "event:"];

/// How long connections from one address count as one login.
const LOGIN_LASTS: Duration = Duration::from_secs(300);

/// Addresses that are remembered of one token.
const MAX_LATELY: usize = 64;

/// A token in force, and when it no longer is.
#[derive(Debug)]
pub(crate) struct Grant {
    token: Token,
    name: TokenName,
    gone: CancellationToken,
    /// Connections that have shown it.
    connections: AtomicU32,
    /// From where it was shown lately, and when.
    lately: Mutex<Vec<(IpAddr, Instant)>>,
}

/// A token as a connection has shown it.
#[derive(Debug)]
pub(crate) struct Shown(Arc<Grant>);

impl Shown {
    pub(crate) fn grant(&self) -> &Arc<Grant> {
        &self.0
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the configuration names a sender as an owner.
fn is_owners(config: &Config, sender: &str) -> bool {
    crabtalk_domain::is_owner(&config.owners, sender)
}

impl Grant {
    pub(super) fn new(token: Token) -> Option<Self> {
        // The configuration has checked it by the same rule.
        let name = TokenName::new(&token.name).ok()?;
        Some(Self {
            token,
            name,
            gone: CancellationToken::new(),
            connections: AtomicU32::new(0),
            lately: Mutex::default(),
        })
    }

    pub(super) fn token(&self) -> &Token {
        &self.token
    }

    /// Its name, which is its sender where it names none.
    pub(crate) fn name(&self) -> &str {
        &self.token.name
    }

    pub(crate) fn role(&self) -> Role {
        match self.token.role {
            TokenRole::Talk => Role::Talk,
            TokenRole::Operate => Role::Operate,
            TokenRole::Admin => Role::Admin,
        }
    }

    fn is_admin(&self) -> bool {
        self.token.role == TokenRole::Admin
    }

    /// A connection has shown it, until what this gives is dropped.
    pub(crate) fn show(self: &Arc<Self>) -> Shown {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Shown(Arc::clone(self))
    }

    /// Whether it was not shown from this address for a while: then it is a login.
    /// A client opens a connection for each thing that it asks.
    pub(crate) fn comes_anew(&self, from: IpAddr) -> bool {
        let now = Instant::now();
        let lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lately.iter().find(|(address, _)| *address == from);
        known.is_none_or(|(_, at)| now - *at >= LOGIN_LASTS)
    }

    /// Remembers a login that was recorded.
    pub(crate) fn came(&self, from: IpAddr) {
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        lately.retain(|(address, at)| *address != from && at.elapsed() < LOGIN_LASTS);
        if lately.len() >= MAX_LATELY {
            lately.remove(0);
        }
        lately.push((from, Instant::now()));
    }

    pub(super) fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Ends whatever was begun with it.
    pub(super) fn end(&self) {
        self.gone.cancel();
    }

    pub(super) fn is_over(&self) -> bool {
        self.gone.is_cancelled()
            || self
                .token
                .until
                .is_some_and(|until| until <= Timestamp::now())
    }

    /// Resolves when it counts no more, with what its holder is told.
    pub(crate) fn ended(&self) -> impl Future<Output = Error> + Send + 'static {
        let (gone, until) = (self.gone.clone(), self.token.until);
        async move {
            tokio::select! {
                () = gone.cancelled() => Error::Unauthorized("this token was removed or changed".into()),
                () = past(until) => Error::Unauthorized("this token has expired".into()),
            }
        }
    }

    /// Whether it reaches an agent.
    pub(crate) fn agent(&self, agent: &str) -> bool {
        fits(&self.token.agents, agent)
    }

    /// Whether it reaches a sender, and may speak as it.
    pub(crate) fn sender(&self, config: &Config, sender: &str) -> bool {
        if !self.is_admin() && is_owners(config, sender) {
            return false;
        }
        let of_daemon = Sender::new(sender).is_ok_and(|sender| sender.is_reserved());
        match &self.token.senders {
            Some(patterns) => patterns.iter().any(|pattern| {
                let says_so = || RESERVED.iter().any(|begin| pattern.starts_with(begin));
                (!of_daemon || says_so()) && glob_matches(pattern, sender)
            }),
            None => match self.token.role {
                TokenRole::Admin => true,
                TokenRole::Operate => !of_daemon,
                TokenRole::Talk => sender == self.token.name,
            },
        }
    }

    /// Whether it reaches a conversation.
    pub(crate) fn pair(&self, config: &Config, key: &ConversationKey) -> bool {
        self.agent(key.agent.as_str()) && self.sender(config, key.sender.as_str())
    }

    /// Whether it reaches all agents.
    pub(crate) fn all_agents(&self) -> bool {
        self.token.agents.is_none()
    }

    /// Whether nothing but its role bounds it.
    pub(crate) fn unrestricted(&self) -> bool {
        self.token.role != TokenRole::Talk && self.all_agents() && self.token.senders.is_none()
    }

    /// Whether it reaches all that there is.
    pub(crate) fn everything(&self) -> bool {
        self.is_admin() && self.unrestricted()
    }

    /// Whether it may act for an owner, who decides on what is asked of owners.
    pub(crate) fn acts_for_owner(&self, config: &Config) -> bool {
        self.is_admin() && config.owners.iter().any(|owner| self.sender(config, owner))
    }

    /// Who it is when it answers what is asked.
    pub(crate) fn answers_as(&self, config: &Config) -> Principal {
        match self.acts_for_owner(config) {
            true => Principal::Admin(self.name.clone()),
            false => Principal::Token(self.name.clone()),
        }
    }

    /// Whether it may name a folder, which is given without links on its way.
    /// Asks the disk where its own folders lead.
    pub(crate) fn folder(&self, folder: &Path) -> bool {
        match &self.token.cwd {
            Some(roots) => roots.iter().any(|root| {
                // One that is not there holds nothing.
                root.canonicalize()
                    .is_ok_and(|root| folder.starts_with(root))
            }),
            None => self.is_admin(),
        }
    }

    /// Who it is when it speaks as a sender. It is an owner only where it may be,
    /// and `named` that sender itself.
    pub(crate) fn principal(&self, config: &Config, sender: &str, named: bool) -> Principal {
        let name = self.name.clone();
        let as_owner = named && self.is_admin() && is_owners(config, sender);
        match as_owner && self.sender(config, sender) {
            true => Principal::Admin(name),
            false => Principal::Token(name),
        }
    }
}

fn fits(patterns: &Option<Vec<String>>, name: &str) -> bool {
    let fits = |patterns: &Vec<String>| patterns.iter().any(|p| glob_matches(p, name));
    patterns.as_ref().is_none_or(fits)
}

/// Waits until an instant has passed; for ever without one.
async fn past(until: Option<Timestamp>) {
    /// A clock that is set is noticed after so long.
    const LOOK_AGAIN: Duration = Duration::from_secs(60);
    let Some(until) = until else {
        return std::future::pending().await;
    };
    loop {
        let left = until.duration_since(Timestamp::now());
        match Duration::try_from(left) {
            Ok(left) if !left.is_zero() => tokio::time::sleep(left.min(LOOK_AGAIN)).await,
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests;
