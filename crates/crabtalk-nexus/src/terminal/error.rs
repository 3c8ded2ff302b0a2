//! Errors of terminals.

use crate::backend::Failure;
use std::path::PathBuf;

/// Why something with a terminal did not come about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// tmux is missing or may not be run; once it is there, the next try finds it.
    #[error(
        "agents in terminals need tmux, and `tmux` cannot be started: {0}; install it (apt-get \
         install tmux, brew install tmux) or give the agent another backend"
    )]
    NoTmux(#[source] std::io::Error),
    /// This tmux lacks what agents are watched with: install a later one. It holds what tmux said.
    #[error("agents in terminals need tmux 3.2 or later, and this is {0:?}")]
    OldTmux(String),
    /// A team that works has marked this server; it holds the folder of that one.
    #[error(
        "another NEXUS, the one of {0}, has its agents in this tmux server; give this team another \
         server: `[tmux] socket = \"/some/place\"` in nexus.toml"
    )]
    Taken(PathBuf),
    /// tmux refused, as for a window that is gone: read the windows again.
    #[error("tmux refused `{what}`: {said}")]
    Refused {
        /// The command of tmux, without its arguments.
        what: String,
        /// What tmux wrote on standard error.
        said: String,
    },
    /// tmux hangs; whether the command took effect is not known.
    #[error("tmux did not answer `{what}` within {secs} s")]
    Timeout {
        /// The command of tmux, without its arguments.
        what: String,
        /// How long it was waited for.
        secs: u64,
    },
    /// A file that an agent is started with cannot be kept: make room, or allow it.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Which file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The sandbox cannot be described: mend what it says.
    #[error("cannot start {agent} in the sandbox: {said}")]
    Sandbox {
        /// The agent.
        agent: String,
        /// The problem.
        said: String,
    },
    /// An agent is of a kind that is not known or whose description is wrong: mend it.
    #[error("kind {kind:?}: {said}")]
    Kind {
        /// The name of the kind.
        kind: String,
        /// The problem.
        said: String,
    },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let said = error.to_string();
        match error {
            Error::NoTmux(_) | Error::OldTmux(_) | Error::Taken(_) => Self::Missing(said),
            Error::Timeout { .. } => Self::Timeout(said),
            Error::Refused { .. } | Error::Write { .. } | Error::Kind { .. } => Self::Failed(said),
            Error::Sandbox { .. } => Self::Failed(said),
        }
    }
}
