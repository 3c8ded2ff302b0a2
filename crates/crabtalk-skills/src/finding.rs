//! What is wrong, where, and what would be right.

use std::fmt;
use std::path::{Path, PathBuf};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Against no rule, yet better otherwise.
    Advice,
    /// Against the format; the skill loads all the same.
    Wrong,
    /// The skill, or the file named, is not used.
    Refused,
}

/// Something about a skill that its author ought to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// The file or folder.
    pub file: PathBuf,
    /// The line in the file, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub right: String,
}

impl Finding {
    pub(crate) fn new(level: Level, file: &Path, line: Option<usize>, trouble: Trouble) -> Self {
        Self {
            level,
            file: file.to_owned(),
            line,
            what: trouble.what,
            right: trouble.right,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}; {}", self.what, self.right)
    }
}

/// A finding that does not know its file yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) what: String,
    pub(crate) right: String,
}

impl Trouble {
    pub(crate) fn new(what: impl Into<String>, right: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            right: right.into(),
        }
    }
}
