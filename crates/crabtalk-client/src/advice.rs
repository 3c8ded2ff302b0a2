//! Remedies for errors.

use crate::error::Error;
use crabtalk_proto::code;

impl Error {
    /// The remedy, unless the message itself names it.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::NoDaemon(_) => Some("start one with `crabtalk daemon start`"),
            Self::Unsafe(_) => Some(
                "ask its owner for the fingerprint (shown there by `crabtalk tokens`), then add it \
                 again with `crabtalk remote add`",
            ),
            Self::NotStarted(_) => Some("run `crabtalk daemon run` to see why"),
            Self::Broken(_) => Some("a run in flight continues; `crabtalk attach` follows it"),
            Self::Lost { .. } => {
                Some("see `crabtalk daemon status`; `crabtalk attach` follows a run that continues")
            }
            Self::RunGone { .. } => Some("`crabtalk history` shows the messages"),
            Self::Unexpected(_) => Some("update the older of daemon and client"),
            Self::Refused(status) | Self::NotWelcome(status) => of_code(status.code),
        }
    }
}

fn of_code(refusal: u32) -> Option<&'static str> {
    match refusal {
        code::UNAUTHORIZED => Some("use a token from the daemon's configuration"),
        code::BUDGET => Some("wait until midnight of the daemon's time zone, or raise the budget"),
        code::CONFLICT => Some("reload and try again"),
        code::TOO_LARGE => Some("send less at a time"),
        code::TOO_MANY | code::SHUTTING_DOWN | code::TIMEOUT => Some("try again later"),
        code::NOT_IMPLEMENTED => Some("update the daemon"),
        code::PROVIDER => Some("check the status of the model's provider, or use another model"),
        code::INTERNAL => Some("see the daemon's log"),
        code::MAX_ITERATIONS => Some("say \"go on\" to continue"),
        _ => None,
    }
}
