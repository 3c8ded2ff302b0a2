//! Error codes (WIRE-3) and the error that carries one.

use crate::ErrorMsg;

/// The codes of WIRE-3, with the meaning that HTTP gives them.
pub mod code {
    /// The request is invalid; the message names the remedy.
    pub const BAD_REQUEST: u32 = 400;
    /// The token is missing or unknown.
    pub const UNAUTHORIZED: u32 = 401;
    /// A budget is spent.
    pub const BUDGET: u32 = 402;
    /// The client is authenticated but not allowed to do this.
    pub const FORBIDDEN: u32 = 403;
    /// The agent, conversation, provider, cron entry, ask or run does not exist.
    pub const NOT_FOUND: u32 = 404;
    /// The object exists already, or changed since it was read.
    pub const CONFLICT: u32 = 409;
    /// The request exceeds a size limit.
    pub const TOO_LARGE: u32 = 413;
    /// The request is well-formed but cannot be performed.
    pub const UNPROCESSABLE: u32 = 422;
    /// A limit on a count was reached; a later attempt may succeed.
    pub const TOO_MANY: u32 = 429;
    /// The run or request was cancelled.
    pub const CANCELLED: u32 = 499;
    /// The daemon failed.
    pub const INTERNAL: u32 = 500;
    /// The operation is not implemented, or nothing is registered for it.
    pub const NOT_IMPLEMENTED: u32 = 501;
    /// The model provider failed.
    pub const PROVIDER: u32 = 502;
    /// The daemon is shutting down.
    pub const SHUTTING_DOWN: u32 = 503;
    /// A timeout.
    pub const TIMEOUT: u32 = 504;
    /// The run reached `max_iterations`.
    pub const MAX_ITERATIONS: u32 = 508;
}

/// The error of a server method, which a client gets as [`ErrorMsg`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Status {
    /// A code of the module [`code`].
    pub code: u32,
    /// The failure, its object and the remedy.
    pub message: String,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident = $code:ident;)*) => {
        impl Status {$(
            $(#[$doc])*
            pub fn $name(message: impl Into<String>) -> Self {
                Self::new(code::$code, message)
            }
        )*}
    };
}

impl Status {
    /// Creates a status.
    pub fn new(code: u32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

constructors! {
    /// 400.
    bad_request = BAD_REQUEST;
    /// 401.
    unauthorized = UNAUTHORIZED;
    /// 403.
    forbidden = FORBIDDEN;
    /// 404.
    not_found = NOT_FOUND;
    /// 409.
    conflict = CONFLICT;
    /// 413.
    too_large = TOO_LARGE;
    /// 422.
    unprocessable = UNPROCESSABLE;
    /// 429.
    too_many = TOO_MANY;
    /// 500.
    internal = INTERNAL;
    /// 501.
    not_implemented = NOT_IMPLEMENTED;
    /// 503.
    shutting_down = SHUTTING_DOWN;
}

impl From<Status> for ErrorMsg {
    fn from(status: Status) -> Self {
        Self {
            code: status.code,
            message: status.message,
        }
    }
}

impl From<ErrorMsg> for Status {
    fn from(error: ErrorMsg) -> Self {
        Self {
            code: error.code,
            message: error.message,
        }
    }
}
