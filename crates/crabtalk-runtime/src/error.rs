//! Refusals of the runtime and their codes (WIRE-3).

use crabtalk_domain::{AgentName, ConversationKey, NameError, Refusal, storage};

/// A refusal before a run starts, or the failure of an operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name is empty or too long, or has characters that none may have.
    #[error(transparent)]
    BadName(#[from] NameError),
    /// No agent has this name.
    #[error("there is no agent {name:?}; there are: {known}")]
    UnknownAgent {
        /// The name, or its beginning.
        name: String,
        /// The names that exist, for a person to choose from.
        known: String,
    },
    /// Its file is invalid; no run of it begins until the file is repaired.
    #[error("the agent {name} cannot be used: {why}")]
    AgentRefused {
        /// The agent.
        name: AgentName,
        /// The error in its file.
        why: String,
    },
    /// The message is blank; no run was started.
    #[error("the content is empty; say something")]
    EmptyContent,
    /// The sender has no conversation with the agent, and the operation creates
    /// none.
    #[error("there is no conversation {0}; send a message to begin one")]
    NoConversation(ConversationKey),
    /// No user message of the conversation has this index.
    #[error("{1} has no message of yours at {0}; take an index from its history")]
    NoMessage(u64, ConversationKey),
    /// The conversation has no archive of this number.
    #[error("{1} has no archive {0}; `crabtalk archives` lists them")]
    NoArchive(u32, ConversationKey),
    /// A sender that is reserved for the daemon (CONV-10).
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
    /// The message was withdrawn before its run began.
    #[error("the message was withdrawn before its run began")]
    Withdrawn,
    /// The run of the message has begun, and cannot be withdrawn (CONV-3).
    #[error("the run of this message has begun in {0}; kill it to end it")]
    Begun(ConversationKey),
    /// No message with this request id is queued; it may have ended or been withdrawn.
    #[error("no queued message of {0} has this request id; it may have ended or been withdrawn")]
    NotQueued(ConversationKey),
    /// No run is in flight for a kill or a steering message; it may just have
    /// ended.
    #[error("nothing is running in {0}")]
    NothingRunning(ConversationKey),
    /// The run takes no more steering messages before its next step (RUN-8).
    #[error("{key} has {bound} of steering messages waiting, the bound; wait for the next step")]
    SteersFull {
        /// The conversation.
        key: ConversationKey,
        /// The limit with its unit.
        bound: String,
    },
    /// A kill cancelled the operation; nothing of it was kept.
    #[error("cancelled")]
    Cancelled,
    /// The model was too slow; the next run compacts if needed. Holds the
    /// minutes.
    #[error("the compaction took longer than {0} minutes and was given up; nothing changed")]
    TookTooLong(u64),
    /// A part of the daemon, or something plugged into it, panicked.
    #[error("internal error: the run failed; the daemon's log says where")]
    Panicked,
    /// The ask was answered or withdrawn, timed out, or never existed.
    #[error("no question is waiting for an answer{0}")]
    NoAsk(String),
    /// The reply is invalid; the ask stays pending.
    #[error("{0}")]
    BadReply(String),
    /// "Allow always" could not be stored; the text says why.
    #[error(
        "this cannot be kept, and nothing was allowed: {0}; the question still waits, and \
         \"Allow once\" allows this call alone"
    )]
    NotKept(String),
    /// A field of the request is invalid.
    #[error("{0}")]
    BadRequest(String),
    /// The operation cannot be done while a run is in flight (STORE-8).
    #[error("{0} is running; kill it first or wait")]
    Busy(ConversationKey),
    /// A hook refuses the content, such as a slash command out of scope.
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
    /// Whether more room on the disk would solve it (STORE-5).
    pub fn is_full_disk(&self) -> bool {
        let Self::Storage(storage::Error::Unwritable { source, .. }) = self else {
            return false;
        };
        // Missing permission is not a full disk.
        source.kind() != std::io::ErrorKind::PermissionDenied
    }

    /// The wire's code (WIRE-3).
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
