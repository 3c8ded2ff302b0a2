//! Errors in files, with their positions and remedies (OPS-4).

use crabtalk_files::tree::Position;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A problem at a position of a file. Line and column count from 1,
/// the column in characters; line 0 means an unknown position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, or a substitute for it in messages.
    pub file: PathBuf,
    /// Its line.
    pub line: usize,
    /// Its column.
    pub column: usize,
    /// The problem and the remedy.
    pub message: String,
    /// The unknown key, if the problem is one.
    pub unknown: Option<UnknownKey>,
}

/// An unknown key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// The full name, with dots.
    pub name: String,
    /// The full name of the most similar key.
    pub nearest: Option<String>,
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration has no key {}", self.name)?;
        match &self.nearest {
            Some(near) => write!(f, "; did you mean {near}?"),
            None => f.write_str("; `crabtalk config get` lists the keys"),
        }
    }
}

impl Diagnostic {
    pub(crate) fn new(file: &Path, at: Position, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: at.line,
            column: at.column,
            message: message.into(),
            unknown: None,
        }
    }

    /// Creates a diagnostic without a position.
    pub(crate) fn of_whole(file: &Path, message: impl Into<String>) -> Self {
        Self::new(file, Position::default(), message)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// A problem that does not prevent the use of the file.
pub type Warning = Diagnostic;

/// A failure to read or change the configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A text is invalid; the diagnostic has position and remedy.
    #[error("{0}")]
    Invalid(Diagnostic),
    /// A file or folder cannot be accessed, usually for lack of rights.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The file is too large for a configuration.
    #[error("{} is larger than the limit of {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file changed since it was read; 409 on the wire.
    #[error(
        "{} was changed since it was read: read it again and repeat the edit",
        .0.display()
    )]
    Conflict(PathBuf),
    /// The edit is invalid; 400 on the wire.
    #[error("{0}")]
    BadEdit(String),
    /// The key file is missing or empty; the provider is not called without a key.
    #[error(
        "{at}: {} has no key: write the key into that file",
        path.display()
    )]
    NoKey {
        /// The configuration key, such as `provider.NAME.api_key_file`.
        at: String,
        /// The key file.
        path: PathBuf,
    },
    /// The key file cannot be read.
    #[error("{at}")]
    KeyFile {
        /// The configuration key, such as `provider.NAME.api_key_file`.
        at: String,
        /// The reason.
        #[source]
        source: Box<Error>,
    },
    /// The key cannot be sent, for instance since it has several lines. The message does not
    /// show the key.
    #[error("{at}: the key contains a line break or control character: write one key on one line")]
    BadKey {
        /// `provider.NAME.api_key`, or `.api_key_file`.
        at: String,
    },
    /// The home folder is unknown.
    #[error("neither CRABTALK_HOME nor HOME is set: set one, or name a folder with --home")]
    NoHome,
    /// A variable in a value is unset or empty.
    #[error(
        "{owner}: the environment variable {variable} (named by {key}) is not set: set it where the daemon runs"
    )]
    MissingVariable {
        /// `provider.NAME` or `mcp.NAME`.
        owner: String,
        /// The key whose value contains the variable.
        key: String,
        /// The name of the variable.
        variable: String,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// The error and its causes on one line.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(source) = cause {
            text.push_str(": ");
            text.push_str(&source.to_string());
            cause = source.source();
        }
        text
    }
}

/// The candidate most similar to `word`, if one is similar enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the word may differ: `detcet` is near `detect`, but nothing is near `foo`.
    let limit = (word.chars().count() / 3).max(1);
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::osa_distance(&word, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_word_differs_by_a_third_at_most() {
        let words = ["detect", "resume", "sandbox", "ask_timeout_secs"];
        assert_eq!(nearest("detcet", words), Some("detect"));
        assert_eq!(nearest("Sandbx", words), Some("sandbox"));
        assert_eq!(nearest("ask_timeout", words), None);
        assert_eq!(nearest("ask_timeout_sec", words), Some("ask_timeout_secs"));
        assert_eq!(nearest("zzz", words), None);
    }
}
