//! Modes: how much a run may do without asking.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How much a run may do without asking (GATE-2), ordered from the narrowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Commands run in the sandbox and cannot write; edits are refused.
    ReadOnly,
    /// Commands and edits require approval.
    Ask,
    /// Sandboxed commands and edits below the folder run without asking; leaving the
    /// sandbox requires approval.
    Auto,
    /// Nothing requires approval, and commands run outside the sandbox.
    Full,
}

impl Mode {
    /// Every mode, the narrowest first.
    pub const ALL: [Self; 4] = [Self::ReadOnly, Self::Ask, Self::Auto, Self::Full];

    /// The name in files, on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Full => "full",
        }
    }

    /// Parses the name of a mode.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
