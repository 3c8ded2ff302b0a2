//! The modes of runs.

use clap::ValueEnum;
use std::fmt;

/// How much a run may do without asking; see the guide on permissions.
// Doc comments on the variants would turn every help text into the long format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    ReadOnly,
    Ask,
    Auto,
    Full,
}

impl Mode {
    /// All modes, from narrow to wide.
    pub(crate) const ALL: [Self; 4] = [Self::ReadOnly, Self::Ask, Self::Auto, Self::Full];

    /// The name on the wire and on the command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Full => "full",
        }
    }

    /// Parses the name of a mode.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Mode;
    use crate::args::Cli;
    use clap::{Parser, ValueEnum};

    #[test]
    fn mode_is_read_by_name() {
        for mode in Mode::ALL {
            assert_eq!(Mode::parse(mode.as_str()), Some(mode));
            for command in ["ask hi", "chat"] {
                let line = format!("crabtalk {command} --mode {mode}");
                let cli = Cli::try_parse_from(line.split(' ')).unwrap();
                assert_eq!(cli.global.mode, Some(mode), "{line}");
            }
        }
        assert_eq!(Mode::value_variants(), Mode::ALL);
    }
}
