//! Reads files within a limit and replaces them atomically.

use crate::Error;
use crabtalk_files::{Error as FileError, Existing};
use std::path::Path;

/// Reads a text file of at most `limit` bytes without its byte order mark; `None` if it
/// does not exist.
pub fn read_limited(path: &Path, limit: u64) -> Result<Option<String>, Error> {
    let read = crabtalk_files::if_there(crabtalk_files::read_text(path, limit));
    let text = read.map_err(|error| match error {
        FileError::TooLarge(limit) => Error::TooLarge {
            path: path.to_owned(),
            limit,
        },
        FileError::Kind(_) | FileError::NotText | FileError::LeadsNowhere | FileError::Io(_) => {
            Error::io("read", path, error.into())
        }
    })?;
    Ok(text.map(|text| match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }))
}

/// Replaces a private file (0600) atomically: after a crash it has the old text or the new
/// one. A symbolic link stays, and its target changes.
pub fn write_atomic(path: &Path, text: &str) -> Result<(), Error> {
    crabtalk_files::write(path, text.as_bytes(), Existing::Replace)
        .map_err(|e| Error::io("write", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn file_above_the_limit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_limited(&path, 5).unwrap().as_deref(), Some("12345"));
        let error = read_limited(&path, 4).unwrap_err().to_string();
        assert!(
            error.ends_with("a is larger than the limit of 4 bytes"),
            "{error}"
        );
        assert!(read_limited(&folder.path().join("b"), 4).unwrap().is_none());
        assert!(read_limited(folder.path(), 4).is_err());
    }
}
