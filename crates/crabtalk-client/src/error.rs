//! Errors of the client and their codes.

use crabtalk_proto::{ClientError, FrameError, Status, code};

/// An error of the client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No daemon answers: start one, or name another address.
    #[error("{0}")]
    NoDaemon(String),
    /// The daemon could not be started or ended at once; the message includes the end of its log.
    #[error("{0}")]
    NotStarted(String),
    /// The certificate is not the pinned one, or the connection is not encrypted; no token was sent.
    #[error("{0}")]
    Unsafe(String),
    /// The daemon refused the connection, for example because of an unknown token.
    #[error("{}", .0.message)]
    NotWelcome(Status),
    /// The daemon refused the request; the status has its code and its reason.
    #[error("{}", .0.message)]
    Refused(Status),
    /// The connection broke before the answer, so the outcome of the request is unknown.
    #[error("the connection to the daemon ended ({0})")]
    Broken(#[source] FrameError),
    /// All attempts to reconnect failed; the run may continue without this client.
    #[error("lost the connection to the daemon, and reconnecting failed for {secs} s: {why}")]
    Lost {
        /// The time of the attempts in seconds.
        secs: u64,
        /// The error of the last attempt.
        why: String,
    },
    /// The daemon has no more events of the run; read the history instead.
    #[error("the daemon no longer has the events of run {run}: {why}")]
    RunGone {
        /// The number of the run.
        run: u64,
        /// The daemon's reason.
        why: String,
    },
    /// The answer does not belong to the request: reconnect.
    #[error(transparent)]
    Unexpected(ClientError),
}

impl Error {
    /// The code of the daemon's refusal.
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

    /// Whether the error is temporary, so that a retry may succeed.
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
