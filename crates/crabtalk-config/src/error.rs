//! What can be wrong with a file, where, and what would be right (OPS-4).

use crabtalk_files::tree::Position;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A place in a file and what was found there. Line and column count from 1,
/// the column in characters; a line of 0 means that the place is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, or what stands for it in a message.
    pub file: PathBuf,
    /// Its line.
    pub line: usize,
    /// Its column.
    pub column: usize,
    /// What is wrong and what would be right.
    pub message: String,
    /// The key, if what is wrong is that nobody knows it.
    pub unknown: Option<UnknownKey>,
}

/// A key that nobody knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// With dots, from the top.
    pub name: String,
    /// The whole name of the one that was most likely meant.
    pub nearest: Option<String>,
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no key {} in the configuration", self.name)?;
        match &self.nearest {
            Some(near) => write!(f, "; did you mean {near}?"),
            None => f.write_str("; `crabtalk config get` shows those that there are"),
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

    /// Of a file as a whole.
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

/// Something that is ignored, and that its author should know of.
pub type Warning = Diagnostic;

/// Why configuration could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A text is wrong somewhere; the diagnostic has the line and what would be right.
    #[error("{0}")]
    Invalid(Diagnostic),
    /// The system refuses a file or a folder, mostly for want of rights.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is too large to be configuration, and was not read: probably another file is meant.
    #[error("{} is larger than the limit of {limit} bytes", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// Bytes that it may have.
        limit: u64,
    },
    /// Somebody else changed the file since it was read; the wire answers 409.
    #[error(
        "{} was changed by somebody else since it was read: read it again and repeat the edit",
        .0.display()
    )]
    Conflict(PathBuf),
    /// An edit that makes no sense; the wire answers 400.
    #[error("{0}")]
    BadEdit(String),
    /// The named file is missing, empty or blank; the provider is not called without a key.
    #[error(
        "{at}: there is no key in {}: write the key into that file",
        path.display()
    )]
    NoKey {
        /// `provider.NAME.api_key_file`, for instance.
        at: String,
        /// The file that should hold it.
        path: PathBuf,
    },
    /// A key file that cannot be read.
    #[error("{at}")]
    KeyFile {
        /// `provider.NAME.api_key_file`, for instance.
        at: String,
        /// Why it cannot be read.
        #[source]
        source: Box<Error>,
    },
    /// A key that no request can carry, such as one of several lines. It is not
    /// shown.
    #[error(
        "{at}: the key holds a line break or another control character: write one key, in one line"
    )]
    BadKey {
        /// `provider.NAME.api_key`, or `.api_key_file`.
        at: String,
    },
    /// There is nowhere to look for a configuration, and no folder is guessed.
    #[error("neither CRABTALK_HOME nor HOME is set: set one, or name a folder with --home")]
    NoHome,
    /// A value names `${..}` that is missing or empty; what needs it cannot be used.
    #[error(
        "{owner}: the environment variable {variable} (named by {key}) is not set: set it where the daemon runs"
    )]
    MissingVariable {
        /// `provider.NAME` or `mcp.NAME`.
        owner: String,
        /// The key whose value names it.
        key: String,
        /// The variable.
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

/// The candidate that `word` most likely meant, if any is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the word may differ: `detcet` is near `detect`, `foo` near nothing.
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
    fn the_nearest_word_is_near() {
        let words = ["detect", "resume", "sandbox", "ask_timeout_secs"];
        assert_eq!(nearest("detcet", words), Some("detect"));
        assert_eq!(nearest("Sandbx", words), Some("sandbox"));
        assert_eq!(nearest("ask_timeout", words), None);
        assert_eq!(nearest("ask_timeout_sec", words), Some("ask_timeout_secs"));
        assert_eq!(nearest("zzz", words), None);
    }
}
