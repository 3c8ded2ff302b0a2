//! What went wrong, its code, and what to do.

use crabtalk_proto::{ClientError, FrameError, Status, code};

/// Why something did not come about.
#[derive(Debug, thiserror::Error)]
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
    /// The connection broke, and no other came about in time.
    #[error("the connection to the daemon is lost, and none came about for {secs} s: {why}")]
    Lost {
        /// For how long it was tried.
        secs: u64,
        /// Why the last attempt failed.
        why: String,
    },
    /// The run that was followed can be told no further.
    #[error("run {run} can be told no further: {why}")]
    RunGone {
        /// The run.
        run: u64,
        /// What the daemon says.
        why: String,
    },
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

    /// What a person can do about it, where the message does not say so
    /// itself.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::NoDaemon(_) => Some(crate::system::NO_DAEMON),
            Self::Unsafe(_) => Some(
                "ask its owner for the fingerprint (`crabtalk tokens` tells it there), then add it \
                 again with `crabtalk remote add`",
            ),
            Self::NotStarted(_) => Some("run `crabtalk daemon run` to see why"),
            Self::Broken(_) => Some("a run in flight goes on: attach to it, or see the history"),
            Self::Lost { .. } => {
                Some("see `crabtalk daemon status`; a run that went on is in the history")
            }
            Self::RunGone { .. } => Some("see the history"),
            Self::Unexpected(_) => Some("update the older of daemon and client"),
            Self::Refused(status) | Self::NotWelcome(status) => of_code(status.code),
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

fn of_code(refusal: u32) -> Option<&'static str> {
    match refusal {
        code::UNAUTHORIZED => Some("give a token that the daemon knows"),
        code::BUDGET => Some("wait until the budget opens again, or raise it"),
        code::CONFLICT => Some("read it again, then repeat"),
        code::TOO_LARGE => Some("send less at a time"),
        code::TOO_MANY | code::SHUTTING_DOWN | code::TIMEOUT => Some("try again later"),
        code::NOT_IMPLEMENTED => Some("update the daemon"),
        code::PROVIDER => Some("see whether the model's provider is well, or use another model"),
        code::INTERNAL => Some("see the daemon's log"),
        code::MAX_ITERATIONS => Some("say \"go on\" to continue"),
        _ => None,
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
