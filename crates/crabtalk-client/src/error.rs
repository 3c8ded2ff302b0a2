//! What went wrong, its code, and what to do.

use crabtalk_proto::{ClientError, FrameError, Status, code};

/// Why something did not come about.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    /// No daemon answers there.
    #[error("{0}")]
    NoDaemon(String),
    /// The daemon could not be started.
    #[error("{0}")]
    NotStarted(String),
    /// It would not be safe to talk to it.
    #[error("{0}")]
    Unsafe(String),
    /// The daemon refused the connection.
    #[error("{}", .0.message)]
    NotWelcome(Status),
    /// The daemon refused the request.
    #[error("{}", .0.message)]
    Refused(Status),
    /// The connection broke before the answer came: whether what was asked for
    /// was done is not known.
    #[error("the connection to the daemon broke ({0})")]
    Broken(#[source] FrameError),
    #[error("the connection to the daemon is lost, and none came about for {secs} s: {why}")]
    Lost {
        /// For how long it was tried.
        secs: u64,
        why: String,
    },
    #[error("run {run} can be told no further: {why}")]
    RunGone { run: u64, why: String },
    /// Something else came than belongs to the request.
    #[error(transparent)]
    Unexpected(ClientError),
}

impl Error {
    /// The daemon's code, if it was the daemon that refused.
    pub fn code(&self) -> Option<u32> {
        match self {
            Self::Refused(status) | Self::NotWelcome(status) => Some(status.code),
            Self::RunGone { .. } => Some(code::NOT_FOUND),
            Self::NoDaemon(_)
            | Self::NotStarted(_)
            | Self::Unsafe(_)
            | Self::Broken(_)
            | Self::Lost { .. }
            | Self::Unexpected(_) => None,
        }
    }

    /// Whether another attempt may succeed although nobody did anything.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::NoDaemon(_) | Self::Broken(_) => true,
            Self::Refused(status) | Self::NotWelcome(status) => {
                matches!(status.code, code::TOO_MANY | code::SHUTTING_DOWN)
            }
            Self::NotStarted(_)
            | Self::Unsafe(_)
            | Self::Lost { .. }
            | Self::RunGone { .. }
            | Self::Unexpected(_) => false,
        }
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(status) => Self::Refused(status),
            ClientError::Connection(
                error @ (FrameError::Closed | FrameError::Truncated { .. } | FrameError::Io(_)),
            ) => Self::Broken(error),
            error @ (ClientError::Connection(_)
            | ClientError::Unexpected { .. }
            | ClientError::Unfinished) => Self::Unexpected(error),
        }
    }
}
