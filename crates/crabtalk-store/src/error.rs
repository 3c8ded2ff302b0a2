//! Converts errors of the operating system to errors of the port.

use crabtalk_domain::storage::Error;
use std::io;
use std::path::Path;
use tokio::task::JoinError;

/// Distinguishes a full or read-only disk (STORE-5) from other failures.
pub(crate) fn failed(action: &'static str, file: &Path, source: io::Error) -> Error {
    if is_unwritable(&source) {
        Error::Unwritable {
            object: file.display().to_string(),
            source,
        }
    } else {
        Error::Io {
            action,
            object: file.display().to_string(),
            source,
        }
    }
}

/// Converts an error while reading, where missing rights do not mean an unwritable disk.
pub(crate) fn unreadable(action: &'static str, file: &Path, source: io::Error) -> Error {
    Error::Io {
        action,
        object: file.display().to_string(),
        source,
    }
}

/// Whether free space or write access would help.
pub(crate) fn is_unwritable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::WriteZero
    )
}

/// Copies an error for another waiter; `io::Error` cannot be cloned.
pub(crate) fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Converts the failure of a task in the blocking pool; a panic continues.
pub(crate) fn not_done(error: JoinError) -> Error {
    if error.is_panic() {
        std::panic::resume_unwind(error.into_panic());
    }
    Error::Io {
        action: "use",
        object: "the store".to_owned(),
        source: io::Error::other("the daemon is shutting down"),
    }
}
