//! Reads regular files of a bounded size, without blocking on other processes.
//!
//! Invariant: the kind is checked on the open file, so that replacing the name in between
//! has no effect.

use crate::error::Error;
use crate::system;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Opens a regular file for reading, following links.
///
/// # Errors
/// [`Error::Kind`] for another kind of object, [`Error::LeadsNowhere`] for a dangling link,
/// [`Error::Io`] for an error of the system; see [`Error::is_absent`].
pub fn open(path: &Path) -> Result<File, Error> {
    regular(system::open(path)?)
}

/// Opens a regular file for appending; a missing file is created as private (0600).
///
/// # Errors
/// Like [`open`].
pub fn open_to_append(path: &Path) -> Result<File, Error> {
    regular(system::open_to_append(path)?)
}

/// Returns the file if it is a regular one, for callers that open files without blocking by
/// other means.
///
/// # Errors
/// [`Error::Kind`] for another kind of object.
pub fn regular(file: File) -> Result<File, Error> {
    match system::other_kind(&file)? {
        None => Ok(file),
        Some(kind) => Err(Error::Kind(kind)),
    }
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// Like [`open`], and [`Error::TooLarge`].
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    read_open(&open(path)?, limit)
}

/// Reads an open file from its current offset, if the rest has at most `limit` bytes.
///
/// # Errors
/// [`Error::TooLarge`], and [`Error::Io`].
pub fn read_open(file: &File, limit: u64) -> Result<Vec<u8>, Error> {
    let size = file.metadata()?.len();
    if size > limit {
        return Err(Error::TooLarge(limit));
    }
    // The size is a hint: a file may grow while it is read, and some report none.
    let mut bytes = Vec::with_capacity(size as usize);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(Error::TooLarge(limit));
    }
    Ok(bytes)
}

/// Reads a text file of at most `limit` bytes.
///
/// # Errors
/// Like [`read`], and [`Error::NotText`].
pub fn read_text(path: &Path, limit: u64) -> Result<String, Error> {
    String::from_utf8(read(path, limit)?).map_err(|_| Error::NotText)
}

/// Returns `None` for a missing file. A dangling link is an error, since a file was meant to
/// exist.
pub fn if_there<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FileType, Mode};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    fn refusal(path: &Path) -> String {
        read(path, 9).expect_err("refused").to_string()
    }

    /// Each of these would block forever, or never end, if opened and read without care.
    #[test]
    fn whatever_lies_in_a_files_place_is_told_by_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, mode, 0).unwrap();
        symlink(at("pipe"), at("link")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        assert_eq!(refusal(&at("pipe")), "is a pipe, not a regular file");
        assert_eq!(refusal(&at("link")), "is a pipe, not a regular file");
        assert_eq!(refusal(&at("socket")), "is a socket, not a regular file");
        assert_eq!(refusal(folder.path()), "is a folder, not a regular file");
        let zero = Path::new("/dev/zero");
        assert_eq!(refusal(zero), "is a device, not a regular file");
    }

    #[test]
    fn appending_waits_for_nobody_either() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, mode, 0).unwrap();
        for in_place in [at("pipe"), folder.path().to_owned(), "/dev/null".into()] {
            let refused = open_to_append(&in_place).unwrap_err();
            assert!(matches!(refused, Error::Kind(_)), "{refused}");
        }
        for line in ["one\n", "two\n"] {
            let mut file = open_to_append(&at("log")).unwrap();
            std::io::Write::write_all(&mut file, line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(at("log")).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        assert!(if_there(read(&path, 9)).unwrap().is_none());
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        assert_eq!(
            read(&path, 4).unwrap_err().to_string(),
            "has more than 4 bytes"
        );
        fs::write(&path, [0xff]).unwrap();
        assert!(matches!(read_text(&path, 5), Err(Error::NotText)));
        // The kernel reports a size of zero.
        let proc = Path::new("/proc/self/status");
        assert!(matches!(read(proc, 5), Err(Error::TooLarge(5))));
    }

    #[test]
    fn a_link_to_nothing_is_not_an_absent_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        symlink(folder.path().join("b"), &path).unwrap();
        let error = if_there(read(&path, 9)).unwrap_err();
        assert_eq!(error.to_string(), "is a link whose target does not exist");
    }
}
