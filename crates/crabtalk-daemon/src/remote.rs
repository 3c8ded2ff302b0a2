//! The way in from elsewhere: tokens, what each reaches, and the listeners
//! (REMOTE-1).
//!
//! Invariants: without `[tcp]` nothing of this listens or runs; a token that is
//! removed, changed or over ends every connection that showed it, at once; what a
//! token may not name does not exist for it; no token is kept, only its hash.

mod certificate;
mod grant;
mod guesses;
mod listeners;
mod tokens;

pub(crate) use grant::{Grant, Shown};
pub(crate) use listeners::{Answers, Ears, Listener};
pub(crate) use tokens::{Tokens, new_token};

use crate::compose::Report;
use crabtalk_config::{Config, Home};
use guesses::Guesses;
use std::sync::Arc;

/// What a node has of it.
pub(crate) struct Remote {
    tokens: Tokens,
    guesses: Guesses,
    ears: Ears,
}

impl Remote {
    pub(crate) fn new(home: &Home, config: &Config) -> Self {
        let tokens = Tokens::default();
        tokens.replace(config);
        Self {
            tokens,
            guesses: Guesses::default(),
            ears: Ears::new(home.clone()),
        }
    }

    /// Lets those in whom the configuration names, on the addresses that it names.
    /// `answering` is who answers them.
    pub(crate) async fn begin(&self, answering: Arc<dyn Answers>, config: &Config) {
        let mut report = Report::default();
        self.ears.belong_to(Arc::downgrade(&answering));
        self.apply(config, &mut report).await;
        report.log();
    }

    /// Takes another configuration.
    pub(crate) async fn apply(&self, config: &Config, report: &mut Report) {
        // First, so that nobody comes in by what has just been removed.
        self.tokens.replace(config);
        self.ears.apply(config.tcp.as_ref(), report).await;
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    pub(crate) fn guesses(&self) -> &Guesses {
        &self.guesses
    }

    pub(crate) fn ears(&self) -> &Ears {
        &self.ears
    }
}
