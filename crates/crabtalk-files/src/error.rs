//! The errors of reading a file.

use std::io::{self, ErrorKind};

/// Why a file was not read. Callers add the path.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object is not a regular file; holds its kind.
    #[error("is {0}, not a regular file")]
    Kind(&'static str),
    /// The file exceeds the limit; holds the limit in bytes.
    #[error("has more than {0} bytes")]
    TooLarge(u64),
    /// The file is not UTF-8.
    #[error("is not UTF-8 text")]
    NotText,
    /// The file is a dangling link.
    #[error("is a link whose target does not exist")]
    LeadsNowhere,
    /// The operating system returned an error.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl Error {
    /// Whether the file does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == ErrorKind::NotFound)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::Io(error) => return error,
            Error::Kind(_) => ErrorKind::InvalidInput,
            Error::TooLarge(_) => ErrorKind::FileTooLarge,
            Error::NotText | Error::LeadsNowhere => ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
