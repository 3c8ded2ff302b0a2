//! Remote access: tokens, their reach, and the TCP listeners (REMOTE-1).
//!
//! Invariants: without `[tcp]` nothing listens; the removal, change or expiry of a token
//! ends its connections at once; objects beyond a token's reach appear not to exist; only
//! the hash of a token is stored.

mod certificate;
mod grant;
mod listeners;
mod refusals;
mod tokens;

pub(crate) use grant::{Grant, Shown};
pub(crate) use listeners::{Ears, Listener, Serve};
pub(crate) use refusals::DELAY as REFUSAL_DELAY;
pub(crate) use tokens::{Tokens, new_token};

use crate::compose::Report;
use crabtalk_config::{Config, Home};
use refusals::Refusals;

/// The remote access of a node.
pub(crate) struct Remote {
    pub(crate) tokens: Tokens,
    pub(crate) refusals: Refusals,
    pub(crate) ears: Ears,
}

impl Remote {
    pub(crate) fn new(home: &Home, config: &Config) -> Self {
        let tokens = Tokens::default();
        tokens.replace(config);
        Self {
            tokens,
            refusals: Refusals::default(),
            ears: Ears::new(home.clone()),
        }
    }

    /// Opens the configured listeners; `serve` serves their connections.
    pub(crate) async fn begin(&self, serve: Serve, config: &Config) {
        let mut report = Report::default();
        self.ears.belong_to(serve);
        self.apply(config, &mut report).await;
        report.log();
    }

    /// Applies another configuration.
    pub(crate) async fn apply(&self, config: &Config, report: &mut Report) {
        // First, so that new listeners refuse a removed token.
        self.tokens.replace(config);
        self.ears.apply(config.tcp.as_ref(), report).await;
    }
}
