//! Errors of commands and their exit codes.

use crabtalk_client as client;
use crabtalk_proto::ClientError;
use std::io;
use std::process::ExitCode;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// The daemon does not run or cannot be reached.
    #[error("{0}")]
    NoDaemon(String),
    #[error("{message}")]
    Refused {
        /// The daemon's code (WIRE-3).
        code: u32,
        message: String,
    },
    #[error("{0}")]
    Failed(String),
    /// The run failed; its events were shown.
    #[error("the run failed")]
    RunFailed,
    /// Ctrl-C ended the command.
    #[error("interrupted")]
    Interrupted,
    #[error("standard output was closed")]
    Unread,
}

impl Error {
    /// The error as JSON, with the daemon's code if it refused.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let mut refused = None;
        if let Self::Refused { code, .. } = self {
            refused = Some(*code);
        }
        serde_json::json!({
            "type": "error", "code": refused, "exit": self.exit(), "message": self.to_string(),
        })
    }

    /// The exit code, as documented in interface.md.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit())
    }

    fn exit(&self) -> u8 {
        match self {
            Self::Unread => 0,
            Self::Failed(_) | Self::Refused { .. } | Self::RunFailed => 1,
            Self::Usage(_) => 2,
            Self::NoDaemon(_) => 3,
            Self::Interrupted => 130,
        }
    }

    /// Whether no message is printed.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::RunFailed | Self::Interrupted | Self::Unread)
    }

    /// Appends a line to the message.
    #[must_use]
    pub(crate) fn and(self, line: &str) -> Self {
        let and = |message: String| format!("{message}\n{line}");
        match self {
            Self::Usage(message) => Self::Usage(and(message)),
            Self::NoDaemon(message) => Self::NoDaemon(and(message)),
            Self::Failed(message) => Self::Failed(and(message)),
            Self::Refused { code, message } => Self::Refused {
                code,
                message: and(message),
            },
            Self::RunFailed | Self::Interrupted | Self::Unread => self,
        }
    }

    /// An error of the operating system, with the attempted action.
    pub(crate) fn io(attempt: impl std::fmt::Display, error: &io::Error) -> Self {
        Self::Failed(format!("cannot {attempt}: {error}"))
    }
}

/// Converts a failure to write to standard output.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Unread;
        }
        Self::io("write the answer", &error)
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        client::Error::from(error).into()
    }
}

impl From<client::Error> for Error {
    fn from(error: client::Error) -> Self {
        match error {
            client::Error::NoDaemon(message) | client::Error::NotStarted(message) => {
                Self::NoDaemon(message)
            }
            client::Error::NotWelcome(status) => Self::NoDaemon(status.message),
            client::Error::Refused(status) => Self::Refused {
                code: status.code,
                message: status.message,
            },
            error @ (client::Error::Unsafe(_)
            | client::Error::Broken(_)
            | client::Error::Lost { .. }
            | client::Error::RunGone { .. }
            | client::Error::Unexpected(_)) => Self::Failed(match error.advice() {
                Some(advice) => format!("{error}; {advice}"),
                None => error.to_string(),
            }),
        }
    }
}

impl From<crabtalk_config::Error> for Error {
    fn from(error: crabtalk_config::Error) -> Self {
        Self::Failed(error.with_causes())
    }
}
