//! Reads regular files of a bounded size, without waiting for other processes.
//!
//! Invariant: the kind is judged on what was opened, never on what a name led
//! to a moment before; so a swap in between gains nothing.

use crate::error::Error;
use crate::system;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Opens a regular file for reading, following links.
///
/// # Errors
/// [`Error::Kind`] where something else lies there, [`Error::LeadsNowhere`] for a link
/// to nothing, [`Error::Io`] for what the system refused; see [`Error::is_absent`].
pub fn open(path: &Path) -> Result<File, Error> {
    regular(system::open(path)?)
}

/// Opens a regular file for writing at its end, for its owner alone (0600),
/// made where it is missing.
///
/// # Errors
/// As for [`open`].
pub fn open_to_append(path: &Path) -> Result<File, Error> {
    regular(system::open_to_append(path)?)
}

/// The same file if it is a regular one. For those who open by other means,
/// which has to be without waiting.
///
/// # Errors
/// [`Error::Kind`] if it is another one.
pub fn regular(file: File) -> Result<File, Error> {
    match system::other_kind(&file)? {
        None => Ok(file),
        Some(kind) => Err(Error::Kind(kind)),
    }
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// As for [`open`], and [`Error::TooLarge`].
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    read_open(&open(path)?, limit)
}

/// Reads what is open, from where it stands, if that is at most `limit` bytes.
///
/// # Errors
/// [`Error::TooLarge`], and [`Error::Io`].
pub fn read_open(file: &File, limit: u64) -> Result<Vec<u8>, Error> {
    let size = file.metadata()?.len();
    if size > limit {
        return Err(Error::TooLarge(limit));
    }
    // The size is a hint: a file may grow while it is read, and some have none.
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
/// As for [`read`], and [`Error::NotText`].
pub fn read_text(path: &Path, limit: u64) -> Result<String, Error> {
    String::from_utf8(read(path, limit)?).map_err(|_| Error::NotText)
}

/// Makes nothing of a file that is not there. A link that leads nowhere is an
/// error, since a file was meant to be there.
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

    /// Each of these would wait for ever, or never end, when simply opened and
    /// read.
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
        // The kernel says that it has no bytes at all.
        let proc = Path::new("/proc/self/status");
        assert!(matches!(read(proc, 5), Err(Error::TooLarge(5))));
    }

    #[test]
    fn a_link_to_nothing_is_not_an_absent_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        symlink(folder.path().join("b"), &path).unwrap();
        let error = if_there(read(&path, 9)).unwrap_err();
        assert_eq!(error.to_string(), "is a link that leads nowhere");
    }
}
