//! What can go wrong at a terminal.

use crabtalk_backend::Failure;
use std::path::PathBuf;

/// Why something with a terminal did not come about.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(
        "agents in terminals need tmux, and `tmux` cannot be started: {0}; install it (apt-get \
         install tmux, brew install tmux) or give the agent another backend"
    )]
    NoTmux(#[source] std::io::Error),
    #[error("agents in terminals need tmux 3.2 or later, and this is {0:?}")]
    OldTmux(String),
    /// Another team is in it.
    #[error(
        "another NEXUS, the one of {0}, has its agents in this tmux server; give this one a server \
         of its own: `[tmux] socket = \"/some/place\"` in nexus.toml"
    )]
    Taken(PathBuf),
    #[error("tmux refused `{what}`: {said}")]
    Refused { what: String, said: String },
    #[error("tmux did not answer `{what}` within {secs} s")]
    Timeout { what: String, secs: u64 },
    #[error("cannot write {path}: {source}")]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("kind {kind:?}: {said}")]
    Kind { kind: String, said: String },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let said = error.to_string();
        match error {
            Error::NoTmux(_) | Error::OldTmux(_) | Error::Taken(_) => Self::Missing(said),
            Error::Timeout { .. } => Self::Timeout(said),
            Error::Refused { .. } | Error::Write { .. } | Error::Kind { .. } => Self::Failed(said),
        }
    }
}
