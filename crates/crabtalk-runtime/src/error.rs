//! What the runtime refuses, and with which code (WIRE-3).

use crabtalk_domain::{AgentName, ConversationKey, NameError, Refusal, storage};

/// A refusal before a run starts, or the failure of an operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name is empty or too long, or has characters that none may have.
    #[error(transparent)]
    BadName(#[from] NameError),
    /// No agent file and nothing built in has this name.
    #[error("there is no agent {name:?}; there are: {known}")]
    UnknownAgent {
        /// The name, or its beginning.
        name: String,
        /// The names that exist, for a person to choose from.
        known: String,
    },
    /// Its file is there and wrong; until it is mended no run of it begins.
    #[error("the agent {name} cannot be used: {why}")]
    AgentRefused {
        /// The agent.
        name: AgentName,
        /// What is wrong with its file.
        why: String,
    },
    /// The message has nothing but blanks; no run was started.
    #[error("the content is empty; say something")]
    EmptyContent,
    /// Nobody has talked to this agent as this sender, and the operation creates none.
    #[error("there is no conversation {0}; send a message to begin one")]
    NoConversation(ConversationKey),
    /// A sender that the daemon alone may use (CONV-10).
    #[error("the sender {0:?} is reserved for the daemon; choose another")]
    ReservedSender(String),
    /// The conversation's queue is full (CONV-3).
    #[error("{key} has {bound} runs waiting, the bound (limits.queued_runs); try again later")]
    QueueFull {
        /// The conversation.
        key: ConversationKey,
        /// How many may wait.
        bound: usize,
    },
    /// A kill or a steering message came while no run was in flight: it may just have ended.
    #[error("nothing is running in {0}")]
    NothingRunning(ConversationKey),
    /// The run takes no more steering messages before its next step (RUN-8).
    #[error("{key} has {bound} of steering messages waiting, the bound; wait for the next step")]
    SteersFull {
        /// The conversation.
        key: ConversationKey,
        /// What may wait, with its unit.
        bound: String,
    },
    /// A kill ended it before it was done; nothing of it was kept.
    #[error("cancelled")]
    Cancelled,
    /// The model was slow or hung; the next run compacts where it has to. It holds the minutes.
    #[error("the compaction took longer than {0} minutes and was given up; nothing changed")]
    TookTooLong(u64),
    /// A part of the daemon, or something plugged into it, panicked.
    #[error("internal error: the run failed; the daemon's log says where")]
    Panicked,
    /// It was answered, withdrawn or timed out meanwhile, or none was put; list what is open.
    #[error("no question is waiting for an answer{0}")]
    NoAsk(String),
    /// The reply does not answer the ask, which stays.
    #[error("{0}")]
    BadReply(String),
    /// "Allow always" was chosen, and the file of approvals could not be written; it says why.
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
    /// A hook refuses the content, such as a slash command out of scope.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The log cannot be read or written; nothing was told that is not in it.
    #[error("{}", with_source(.0))]
    Storage(#[from] storage::Error),
    /// The provider failed for good, after all retries and fallbacks.
    #[error(transparent)]
    Model(#[from] crabtalk_domain::model::Error),
    /// Nothing new is begun; what was told is in the log.
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
        storage::Error::BadId(_) => 400,
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
