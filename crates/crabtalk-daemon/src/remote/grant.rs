//! The reach of a token.
//!
//! Invariants: without the role `admin` a token reaches no owner's conversation, even if a
//! pattern matches; reserved senders need a pattern that names them; the answer depends
//! on the token and the configured owners, never on the existence of objects.

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

/// Prefixes of reserved senders (CONV-10).
const RESERVED: [&str; 3] = ["cron", "delegate:", "event:"];

/// Connections from one address within this time count as one login.
const LOGIN_LASTS: Duration = Duration::from_secs(300);

/// Maximum number of remembered addresses of one token.
const MAX_LATELY: usize = 64;

/// A token in force.
#[derive(Debug)]
pub(crate) struct Grant {
    token: Token,
    name: TokenName,
    gone: CancellationToken,
    /// Authenticated connections.
    connections: AtomicU32,
    /// Recent addresses and the times of their logins.
    lately: Mutex<Vec<(IpAddr, Instant)>>,
}

/// Counts an authenticated connection of a token until it is dropped.
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
        // The configuration has already checked the name by this rule.
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

    /// The token's name, which is its default sender.
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

    /// Counts a connection until the result is dropped.
    pub(crate) fn show(self: &Arc<Self>) -> Shown {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Shown(Arc::clone(self))
    }

    /// Whether a connection from this address counts as a new login; clients open a
    /// connection for each command.
    pub(crate) fn comes_anew(&self, from: IpAddr) -> bool {
        let now = Instant::now();
        let lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lately.iter().find(|(address, _)| *address == from);
        known.is_none_or(|(_, at)| now - *at >= LOGIN_LASTS)
    }

    /// Remembers a recorded login.
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

    /// Ends the token's connections.
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

    /// Resolves when the token is removed, changed or expired.
    pub(crate) fn ended(&self) -> impl Future<Output = Error> + Send + 'static {
        let (gone, until) = (self.gone.clone(), self.token.until);
        async move {
            tokio::select! {
                () = gone.cancelled() => Error::Unauthorized("this token was removed or changed".into()),
                () = past(until) => Error::Unauthorized("this token has expired".into()),
            }
        }
    }

    /// Whether the token reaches an agent.
    pub(crate) fn agent(&self, agent: &str) -> bool {
        fits(&self.token.agents, agent)
    }

    /// Whether the token reaches a sender, and may use it.
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

    /// Whether the token reaches a conversation.
    pub(crate) fn pair(&self, config: &Config, key: &ConversationKey) -> bool {
        self.agent(key.agent.as_str()) && self.sender(config, key.sender.as_str())
    }

    /// Whether the token reaches all agents.
    pub(crate) fn all_agents(&self) -> bool {
        self.token.agents.is_none()
    }

    /// Whether the token is limited only by its role.
    pub(crate) fn unrestricted(&self) -> bool {
        self.token.role != TokenRole::Talk && self.all_agents() && self.token.senders.is_none()
    }

    /// Whether the token reaches all objects.
    pub(crate) fn everything(&self) -> bool {
        self.is_admin() && self.unrestricted()
    }

    /// Whether the token has an owner's authority and may answer asks to owners.
    pub(crate) fn acts_for_owner(&self, config: &Config) -> bool {
        self.is_admin() && config.owners.iter().any(|owner| self.sender(config, owner))
    }

    /// The principal of the token's answers to asks.
    pub(crate) fn answers_as(&self, config: &Config) -> Principal {
        match self.acts_for_owner(config) {
            true => Principal::Admin(self.name.clone()),
            false => Principal::Token(self.name.clone()),
        }
    }

    /// Whether the token permits a folder, given with links resolved. Resolves the links of
    /// the token's configured folders. Blocks.
    pub(crate) fn folder(&self, folder: &Path) -> bool {
        match &self.token.cwd {
            Some(roots) => roots.iter().any(|root| {
                // An absent folder contains nothing.
                root.canonicalize()
                    .is_ok_and(|root| folder.starts_with(root))
            }),
            None => self.is_admin(),
        }
    }

    /// The token's principal when it uses a sender. It is an owner's only if the request
    /// `named` that owner and the token may act for it.
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

/// Waits until an instant has passed; forever without one.
async fn past(until: Option<Timestamp>) {
    /// A change of the clock is noticed within this time.
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
