//! What went wrong, its code, and what to do.

use crabtalk_proto::{ClientError, FrameError, Status, code};

/// Why something did not come about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No daemon answers there: start one, or name another address.
    #[error("{0}")]
    NoDaemon(String),
    /// The daemon could not be started, or ended at once; it says what the log has of it.
    #[error("{0}")]
    NotStarted(String),
    /// The certificate is not the pinned one, or none protects the way; no token was sent.
    #[error("{0}")]
    Unsafe(String),
    /// The daemon refused the connection, as with a token that it does not know.
    #[error("{}", .0.message)]
    NotWelcome(Status),
    /// The daemon refused the request; the status has its code and its reason.
    #[error("{}", .0.message)]
    Refused(Status),
    /// The connection broke before the answer came: whether what was asked for
    /// was done is not known.
    #[error("the connection to the daemon broke ({0})")]
    Broken(#[source] FrameError),
    /// Attempts to find the daemon again were given up; the run may go on without this client.
    #[error("the connection to the daemon is lost, and none came about for {secs} s: {why}")]
    Lost {
        /// For how long it was tried.
        secs: u64,
        /// Why the last attempt failed.
        why: String,
    },
    /// The daemon that was found again knows nothing of the run; the history has what it kept.
    #[error("run {run} can be told no further: {why}")]
    RunGone {
        /// The number of the run.
        run: u64,
        /// What the daemon said.
        why: String,
    },
    /// Something else came than belongs to the request: connect again.
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
            | ClientError::Unexpected(_)
            | ClientError::Unfinished) => Self::Unexpected(error),
        }
    }
}
