//! Error messages of servers that cannot be connected or have ended.
//!
//! Invariant: the message includes the program's own last output.

use crate::pipes::GivenUp;
use crate::program::Complaints;
use crate::said;
use crabtalk_guardian::ExitStatus;
use rmcp::service::ClientInitializeError;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const CLOSED: &str = "it closed the connection";

/// The reason why a connection could not be opened.
#[derive(Debug)]
pub(crate) struct NotOpened {
    pub(crate) why: String,
    /// A person has to log in first.
    pub(crate) wants_login: bool,
    /// The end of the program's standard error.
    pub(crate) stderr: String,
}

impl From<String> for NotOpened {
    fn from(why: String) -> Self {
        Self {
            why: said::sentence(why),
            wants_login: false,
            stderr: String::new(),
        }
    }
}

/// The output of a program other than messages.
#[derive(Default)]
pub(crate) struct ProgramOutput {
    /// Standard error.
    pub(crate) complaints: Complaints,
    /// Lines of standard output that are not messages.
    babble: Complaints,
    given_up: GivenUp,
}

impl ProgramOutput {
    /// The destinations of such output.
    pub(crate) fn beside(&self) -> (Complaints, GivenUp) {
        (self.babble.clone(), Arc::clone(&self.given_up))
    }

    /// Appends the last line of output to a message.
    pub(crate) fn with(&self, how: String) -> String {
        let last = |said: &Complaints| {
            let text = said.text();
            let line = text.lines().rfind(|line| !line.trim().is_empty());
            line.map(|line| line.trim().to_owned())
        };
        let (complained, babbled) = (last(&self.complaints), last(&self.babble));
        match (complained, babbled) {
            (Some(last), _) => format!("{how}; its last line of standard error: {last}"),
            (None, Some(last)) => {
                format!("{how}; instead of a message it wrote to standard output: {last}")
            }
            (None, None) => how,
        }
    }

    /// The reason why the server ended the connection.
    pub(crate) fn closed(&self) -> String {
        let why = self.given_up.get().copied();
        self.with(why.unwrap_or(CLOSED).into())
    }

    pub(crate) fn not_opened(&self, why: String) -> NotOpened {
        NotOpened {
            stderr: self.complaints.text(),
            ..why.into()
        }
    }
}

/// Describes how a program ended, with its last output.
pub(crate) fn ended(end: &ExitStatus, words: &ProgramOutput) -> String {
    let how = match end {
        ExitStatus::Ended {
            code: Some(code), ..
        } => format!("the program ended with code {code}"),
        ExitStatus::Ended {
            signal: Some(signal),
            ..
        } => format!("the program was ended by signal {signal}"),
        ExitStatus::Ended { .. } => "the program ended".into(),
        ExitStatus::NotStarted { why } => format!("the program cannot be started: {why}"),
        ExitStatus::GuardianKilled => "the program's guardian was killed".into(),
        ExitStatus::Lost { why } => format!("the program's state is unknown: {why}"),
    };
    words.with(how)
}

/// Whether the server answered with an error, which is more specific than the exit status.
pub(crate) fn refused(error: &ClientInitializeError) -> bool {
    matches!(error, ClientInitializeError::JsonRpcError(_))
}

/// Seconds, with a fraction only below one.
pub(crate) fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{:.1}", time.as_secs_f64()),
        secs => secs.to_string(),
    }
}

/// The message for a failed handshake.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library may add variants, whose text suffices"
)]
pub(crate) fn handshake(error: &ClientInitializeError, words: &ProgramOutput) -> String {
    if error.is_authorization_required() {
        return "it refused the credentials in the configuration's headers".into();
    }
    let why = match error {
        ClientInitializeError::TransportError { error, .. } => crate::http::chain(&*error.error),
        ClientInitializeError::ConnectionClosed(_) => {
            "it closed the connection during the handshake".into()
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refused the handshake: {}", error.message)
        }
        other => other.to_string(),
    };
    words.with(why)
}
