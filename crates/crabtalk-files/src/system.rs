//! Opens files without blocking.

use crate::error::Error;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Opening a pipe would block, and a terminal would become the controlling terminal.
const UNWAITING: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Opens an object for reading, without blocking on other processes.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    match rustix::fs::open(path, UNWAITING, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        // The error of a socket.
        Err(rustix::io::Errno::NXIO) => Err(Error::Kind("a socket")),
        Err(rustix::io::Errno::NOENT) if path.is_symlink() => Err(Error::LeadsNowhere),
        Err(error) => Err(Error::Io(error.into())),
    }
}

/// Opens an object for appending; a missing file is created as private (0600).
pub(crate) fn open_to_append(path: &Path) -> Result<File, Error> {
    let options = UNWAITING | OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    match rustix::fs::open(path, options, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(File::from(file)),
        // The error of a pipe without a reader, and of a socket.
        Err(rustix::io::Errno::NXIO) => Err(Error::Kind("a pipe or a socket")),
        Err(rustix::io::Errno::ISDIR) => Err(Error::Kind("a folder")),
        Err(error) => Err(Error::Io(error.into())),
    }
}

/// Creates a private file (0600), which must not exist.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(path)
}

/// The kind of an open object, unless it is a regular file.
pub(crate) fn other_kind(file: &File) -> io::Result<Option<&'static str>> {
    let stat = rustix::fs::fstat(file)?;
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => None,
        FileType::Directory => Some("a folder"),
        FileType::Fifo => Some("a pipe"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
        FileType::Symlink | FileType::Unknown => Some("an unknown kind of file"),
    })
}

/// Creates a private folder (0700) and missing parents.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes changes to a folder's names durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
