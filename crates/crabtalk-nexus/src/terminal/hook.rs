//! What hooks of an agent's program wrote into its file.
//!
//! A hook appends one object in a line; which names mean what says the kind.

use crate::terminal::kind::HookNames;
use serde_json::Value;

/// Names the file in the agent's environment.
pub(crate) const HOOKS: &str = "CRABTALK_HOOKS";

/// The output of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Began,
    Ended,
    /// Something else, which may name session and transcript.
    Other,
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) said: Said,
    /// Its name in the program.
    pub(crate) name: String,
    /// Where the transcript is, if it says so.
    pub(crate) transcript: Option<String>,
}

impl HookNames {
    /// Parses a line; `None` if it is not a hook's.
    pub(crate) fn read(&self, line: &[u8]) -> Option<Hook> {
        let line: Value = serde_json::from_slice(line).ok()?;
        let name = line["hook_event_name"].as_str()?.to_owned();
        let said = if self.began.contains(&name) {
            Said::Began
        } else if self.ended.contains(&name) {
            Said::Ended
        } else {
            Said::Other
        };
        Some(Hook {
            said,
            name,
            transcript: line["transcript_path"].as_str().map(str::to_owned),
        })
    }
}
