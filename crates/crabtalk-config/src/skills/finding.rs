//! Problems of skills, with position and remedy.

use std::fmt;
use std::path::{Path, PathBuf};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A recommendation.
    Advice,
    /// A violation of the format; the skill is loaded.
    Wrong,
    /// The skill or the file is not used.
    Refused,
}

/// A problem of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its severity.
    pub level: Level,
    /// The file or folder.
    pub file: PathBuf,
    /// The line in the file, from 1.
    pub line: Option<usize>,
    /// A description of the problem.
    pub what: String,
    /// The remedy.
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

    /// Creates a finding about a file or folder that is not used.
    pub(crate) fn refused(file: &Path, what: impl Into<String>, right: impl Into<String>) -> Self {
        Self::new(Level::Refused, file, None, Trouble::new(what, right))
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

/// A finding without its file name.
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
