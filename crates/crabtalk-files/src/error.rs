//! Why a file was not read.

use std::io::{self, ErrorKind};

/// Why a file was not read. It does not name the path, which the caller knows.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something else lies in its place.
    #[error("is {0}, not a regular file")]
    Kind(&'static str),
    /// It is larger than any honest file of its sort.
    #[error("has more than {0} bytes")]
    TooLarge(u64),
    /// It is not text.
    #[error("is not UTF-8 text")]
    NotText,
    /// It is a link to nothing.
    #[error("is a link that leads nowhere")]
    LeadsNowhere,
    /// The operating system refused.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl Error {
    /// Whether there is nothing at that path.
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
