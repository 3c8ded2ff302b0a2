//! The errors of the daemon's operations.
//!
//! Invariant: errors are independent of the protocol; `session/wire.rs` assigns codes.

use crabtalk_domain::storage;
use crabtalk_files::tables::TablesError;
use crabtalk_tools::UndoRefused;
use crabtalk_triggers::bus::PublishError;
use std::sync::Arc;

/// A failed operation. Its text is shown to the client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The request is malformed or names an impossible value.
    #[error("{0}")]
    Invalid(String),
    /// The client must authenticate first.
    #[error("{0}")]
    Unauthorized(String),
    /// The client lacks the right.
    #[error("{0}")]
    Forbidden(String),
    /// The object does not exist, or is beyond the client's reach.
    #[error("{0}")]
    NotFound(String),
    /// The object exists already, was changed, or is in use.
    #[error("{0}")]
    Conflict(String),
    /// The request exceeds a limit of size.
    #[error("{0}")]
    TooLarge(String),
    /// The request exceeds a limit of number.
    #[error("{0}")]
    TooMany(String),
    /// An operation of the daemon or its disk failed.
    #[error("{0}")]
    Failed(String),
    /// The daemon cannot serve the client now.
    #[error("{0}")]
    Unavailable(String),
    /// The operation took too long.
    #[error("{0}")]
    TimedOut(String),
    /// A run ended with a code other than 0.
    #[error("{error}")]
    RunEnded {
        /// The run's code.
        code: u32,
        /// The run's error.
        error: String,
    },
    /// The runtime or its storage failed.
    #[error(transparent)]
    Runtime(#[from] Arc<crabtalk_runtime::Error>),
    /// The configuration cannot be read, changed or written.
    #[error("{}", .0.with_causes())]
    Config(#[from] crabtalk_config::Error),
    /// A file of cron entries or subscriptions cannot be read or written.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// The memory refused an operation.
    #[error(transparent)]
    Memory(#[from] crabtalk_memory::Error),
}

impl From<crabtalk_runtime::Error> for Error {
    fn from(error: crabtalk_runtime::Error) -> Self {
        Self::Runtime(Arc::new(error))
    }
}

impl From<storage::Error> for Error {
    fn from(error: storage::Error) -> Self {
        crabtalk_runtime::Error::from(error).into()
    }
}

impl From<PublishError> for Error {
    fn from(error: PublishError) -> Self {
        let message = error.to_string();
        match error {
            PublishError::TooLong(_) => Self::Invalid(message),
            PublishError::Full => Self::TooMany(message),
            PublishError::Unrecorded(_) => Self::Failed(message),
        }
    }
}

impl From<UndoRefused> for Error {
    fn from(error: UndoRefused) -> Self {
        match error {
            UndoRefused::NoRun(_) | UndoRefused::Nothing => Self::NotFound(error.to_string()),
            UndoRefused::Failed(why) => Self::Failed(why),
        }
    }
}

/// A worker thread panicked.
impl From<tokio::task::JoinError> for Error {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Failed(error.to_string())
    }
}
