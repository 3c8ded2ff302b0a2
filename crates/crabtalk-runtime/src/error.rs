//! The runtime's errors and their codes (WIRE-3).

use crabtalk_domain::{AgentName, ConversationKey, NameError, Refusal, storage};

/// A refused request, or the failure of an operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name is empty, too long, or has characters that are not allowed.
    #[error(transparent)]
    BadName(#[from] NameError),
    /// No agent has this name.
    #[error("there is no agent {name:?}; there are: {known}")]
    UnknownAgent {
        /// The requested name, possibly shortened.
        name: String,
        /// The names of the agents that exist.
        known: String,
    },
    /// The agent's file is invalid; the agent cannot run until the file is repaired.
    #[error("the agent {name} cannot be used: {why}")]
    AgentRefused {
        /// The agent.
        name: AgentName,
        /// The error in its file.
        why: String,
    },
    /// The message is blank.
    #[error("the message is empty; send some text")]
    EmptyContent,
    /// The sender has no conversation with the agent, and the operation does not create
    /// one.
    #[error("there is no conversation {0}; send a message to begin one")]
    NoConversation(ConversationKey),
    /// No user message of the conversation has this index.
    #[error("{1} has no user message at index {0}; take an index from the history")]
    NoMessage(u64, ConversationKey),
    /// The conversation has no archive of this number.
    #[error("{1} has no archive {0}; `crabtalk archives` lists them")]
    NoArchive(u32, ConversationKey),
    /// The sender is reserved for the daemon (CONV-10).
    #[error("the sender {0:?} is reserved for the daemon; choose another")]
    ReservedSender(String),
    /// The conversation's queue is full (CONV-3).
    #[error("{key} has {bound} queued runs, the limit (limits.queued_runs); try again later")]
    QueueFull {
        /// The conversation.
        key: ConversationKey,
        /// Maximum number of queued runs.
        bound: usize,
    },
    /// The message was withdrawn before its run began.
    #[error("the message was withdrawn before its run began")]
    Withdrawn,
    /// The run of the message has begun, so the message cannot be withdrawn (CONV-3).
    #[error("the run of this message has begun in {0}; kill the run to end it")]
    Begun(ConversationKey),
    /// No message with this request id is queued.
    #[error("no queued message of {0} has this request id; it may have ended or been withdrawn")]
    NotQueued(ConversationKey),
    /// No run is in flight for a kill or a steering message.
    #[error("nothing is running in {0}")]
    NothingRunning(ConversationKey),
    /// The run accepts no more steering messages before its next step (RUN-8).
    #[error("{key} has {bound} of waiting steering messages, the limit; wait for the next step")]
    SteersFull {
        /// The conversation.
        key: ConversationKey,
        /// The limit with its unit.
        bound: String,
    },
    /// A kill cancelled the operation; nothing was changed.
    #[error("cancelled")]
    Cancelled,
    /// A compaction on demand exceeded its time limit, in minutes.
    #[error("the compaction took longer than {0} minutes and was cancelled; nothing changed")]
    TookTooLong(u64),
    /// A task of the daemon, or a provider or hook, panicked.
    #[error("internal error: the run failed; see the daemon's log")]
    Panicked,
    /// No ask with this id is pending.
    #[error("no question is waiting for an answer{0}")]
    NoAsk(String),
    /// The reply is invalid; the ask stays pending.
    #[error("{0}")]
    BadReply(String),
    /// "Allow always" could not be stored; holds the reason.
    #[error(
        "the approval cannot be stored, so nothing was allowed: {0}; the question still waits: \
         \"Allow once\" allows only this call"
    )]
    NotKept(String),
    /// A field of the request is invalid.
    #[error("{0}")]
    BadRequest(String),
    /// The operation is not possible while a run is in flight (STORE-8).
    #[error("{0} has a run in flight; kill it first or wait")]
    Busy(ConversationKey),
    /// A hook refused the content, for instance a slash command out of scope.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The log cannot be read or written.
    #[error("{}", with_source(.0))]
    Storage(#[from] storage::Error),
    /// The provider failed after all retries and fallbacks.
    #[error(transparent)]
    Model(#[from] crabtalk_domain::model::Error),
    /// The runtime is shutting down.
    #[error("the daemon is shutting down; try again when it is back")]
    ShuttingDown,
}

impl Error {
    /// Whether the operation failed because the disk is full (STORE-5).
    pub fn is_full_disk(&self) -> bool {
        let Self::Storage(storage::Error::Unwritable { source, .. }) = self else {
            return false;
        };
        // Missing permission is not a full disk.
        source.kind() != std::io::ErrorKind::PermissionDenied
    }

    /// The code on the wire (WIRE-3).
    pub fn code(&self) -> u32 {
        match self {
            Self::BadName(_) | Self::EmptyContent | Self::BadReply(_) | Self::BadRequest(_) => 400,
            Self::ReservedSender(_) => 403,
            Self::UnknownAgent { .. }
            | Self::NoConversation(_)
            | Self::NoMessage(..)
            | Self::NoArchive(..)
            | Self::NothingRunning(_)
            | Self::NotQueued(_)
            | Self::NoAsk(_) => 404,
            Self::NotKept(_) => 500,
            Self::Busy(_) | Self::Begun(_) | Self::AgentRefused { .. } => 409,
            Self::QueueFull { .. } | Self::SteersFull { .. } => 429,
            Self::Cancelled | Self::Withdrawn => 499,
            Self::Panicked => 500,
            Self::TookTooLong(_) => 504,
            Self::Refused(refusal) => refusal.code,
            Self::Storage(error) => storage_code(error),
            Self::Model(error) => error.kind.code(),
            Self::ShuttingDown => 503,
        }
    }
}

/// The code on the wire for an error of the store.
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

/// An error of the store with its cause in one line.
pub(crate) fn with_source(error: &storage::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) if !matches!(error, storage::Error::Unwritable { .. }) => {
            format!("{error}: {source}")
        }
        Some(_) | None => error.to_string(),
    }
}
