//! Errors of requests.

use crate::codec::FrameError;
use crate::status::Status;

/// An error of a request.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The daemon refused; the status has its code and its reason.
    #[error(transparent)]
    Refused(#[from] Status),
    /// The connection failed, or ended before the answer did.
    #[error(transparent)]
    Connection(#[from] FrameError),
    /// The answer has an unexpected type: the daemon has another version, or the connection is out of step; reconnect.
    #[error("unexpected answer from the daemon: expected {0}")]
    Unexpected(&'static str),
    /// An earlier reply on this connection was dropped before its end; its remaining
    /// messages would be read as the answer.
    #[error("an earlier reply on this connection was not read completely; open another connection")]
    Unfinished,
}

impl ClientError {
    /// The daemon's code, if it was the daemon that refused.
    pub fn code(&self) -> Option<u32> {
        match self {
            Self::Refused(status) => Some(status.code),
            Self::Connection(_) | Self::Unexpected(_) | Self::Unfinished => None,
        }
    }
}
