//! What the runtime refuses, and with which code (WIRE-3).

use crabtalk_domain::{AgentName, ConversationKey, NameError, Refusal, storage};

/// A refusal before a run starts, or the failure of an operation.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    /// The name is no name at all.
    #[error(transparent)]
    BadName(#[from] NameError),
    #[error("there is no agent {name:?}; there are: {known}")]
    UnknownAgent { name: String, known: String },
    /// There is one, and what is configured of it cannot be used.
    #[error("the agent {name} cannot be used: {why}")]
    AgentRefused { name: AgentName, why: String },
    #[error("the content is empty; say something")]
    EmptyContent,
    #[error("there is no conversation {0}; send a message to begin one")]
    NoConversation(ConversationKey),
    /// A sender that the daemon alone may use (CONV-10).
    #[error("the sender {0:?} is reserved for the daemon; choose another")]
    ReservedSender(String),
    /// The conversation's queue is full (CONV-3).
    #[error("{key} has {bound} runs waiting, the bound (limits.queued_runs); try again later")]
    QueueFull { key: ConversationKey, bound: usize },
    #[error("nothing is running in {0}")]
    NothingRunning(ConversationKey),
    /// The run takes no more steering messages before its next step (RUN-8).
    #[error("{key} has {bound} of steering messages waiting, the bound; wait for the next step")]
    SteersFull {
        key: ConversationKey,
        /// What may wait, with its unit.
        bound: String,
    },
    #[error("cancelled")]
    Cancelled,
    #[error("the compaction took longer than {0} minutes and was given up; nothing changed")]
    TookTooLong(u64),
    /// A part of the daemon, or something plugged into it, panicked.
    #[error("internal error: the run failed; the daemon's log says where")]
    Panicked,
    #[error("no question is waiting for an answer{0}")]
    NoAsk(String),
    /// The reply does not answer the ask, which stays.
    #[error("{0}")]
    BadReply(String),
    #[error(
        "this cannot be kept, and nothing was allowed: {0}; the question still waits, and \
         \"Allow once\" allows this call alone"
    )]
    NotKept(String),
    /// A field of the request makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// The operation cannot be done while a run is in flight (STORE-8).
    #[error("{0} is running; kill it first or wait")]
    Busy(ConversationKey),
    #[error("{}", .0.message)]
    Refused(Refusal),
    #[error("{}", with_source(.0))]
    Storage(#[from] storage::Error),
    #[error(transparent)]
    Model(#[from] crabtalk_domain::model::Error),
    #[error("the daemon is shutting down; try again when it is back")]
    ShuttingDown,
}

impl Error {
    /// Whether nothing is wrong with what was asked, and room on the disk would do
    /// (STORE-5).
    pub fn is_full_disk(&self) -> bool {
        let Self::Storage(storage::Error::Unwritable { source, .. }) = self else {
            return false;
        };
        // A file that may not be written stays as it is until somebody looks at it.
        source.kind() != std::io::ErrorKind::PermissionDenied
    }

    /// The wire's code (WIRE-3).
    pub fn code(&self) -> u32 {
        match self {
            Self::BadName(_) | Self::EmptyContent | Self::BadReply(_) | Self::BadRequest(_) => 400,
            Self::ReservedSender(_) => 403,
            Self::UnknownAgent { .. }
            | Self::NoConversation(_)
            | Self::NothingRunning(_)
            | Self::NoAsk(_) => 404,
            Self::NotKept(_) => 500,
            Self::Busy(_) | Self::AgentRefused { .. } => 409,
            Self::QueueFull { .. } | Self::SteersFull { .. } => 429,
            Self::Cancelled => 499,
            Self::Panicked => 500,
            Self::TookTooLong(_) => 504,
            Self::Refused(refusal) => refusal.code,
            Self::Storage(error) => storage_code(error),
            Self::Model(error) => error.kind.code(),
            Self::ShuttingDown => 503,
        }
    }
}

/// The wire's code of a failure of the store.
pub(crate) fn storage_code(error: &storage::Error) -> u32 {
    match error {
        storage::Error::NotFound(_) => 404,
        storage::Error::BadFileName(_) => 400,
        storage::Error::Taken(_) => 409,
        storage::Error::Broken { .. }
        | storage::Error::Unwritable { .. }
        | storage::Error::Io { .. } => 500,
    }
}

/// A store's error with its cause, for the one line that a client sees.
pub(crate) fn with_source(error: &storage::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) if !matches!(error, storage::Error::Unwritable { .. }) => {
            format!("{error}: {source}")
        }
        Some(_) | None => error.to_string(),
    }
}
