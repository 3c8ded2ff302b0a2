//! Why a request has no answer.

use crate::codec::FrameError;
use crate::status::Status;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The daemon refused; the status has its code and its reason.
    #[error(transparent)]
    Refused(#[from] Status),
    /// The connection failed, or ended before the answer did.
    #[error(transparent)]
    Connection(#[from] FrameError),
    /// The daemon is of another version, or the reply belongs to another request: reconnect.
    #[error("the daemon's answer is not the {0} that belongs to the request")]
    Unexpected(&'static str),
    /// An earlier reply was dropped before its end; what is left of it would
    /// be taken for the answer.
    #[error("an earlier reply on this connection was not read to its end; open another connection")]
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
