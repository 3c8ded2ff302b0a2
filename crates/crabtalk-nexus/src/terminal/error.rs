//! Errors of terminals.

use crate::backend::Failure;
use std::io;
use std::path::Path;

/// Why something with a terminal did not come about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A requirement is missing, which a person has to provide.
    #[error("{0}")]
    Missing(String),
    /// tmux refused, as for a window that is gone.
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
    /// A file cannot be written, or a kind or a sandbox is described wrongly.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// A file that an agent is started with cannot be kept.
    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Failed(format!("cannot write {path}: {source}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let said = error.to_string();
        match error {
            Error::Missing(_) => Self::Missing(said),
            Error::Timeout { .. } => Self::Timeout(said),
            Error::Refused { .. } | Error::Failed(_) => Self::Failed(said),
        }
    }
}
