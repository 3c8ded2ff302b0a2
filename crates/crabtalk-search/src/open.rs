//! Opens files and folders of a named folder without following links.
//!
//! Invariant: each component of a path is opened relative to its parent with a flag
//! that refuses links, so that no link can be inserted. Pipes and devices are
//! opened without blocking and then refused.

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

const FOLDER: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::RDONLY);

const FILE: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC)
    .union(OFlags::RDONLY);

/// Metadata that changes with a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    pub(crate) modified_ns: i64,
    pub(crate) changed_ns: i64,
    pub(crate) inode: u64,
}

/// An open regular file.
pub(crate) struct Opened {
    file: File,
    pub(crate) stamp: Stamp,
}

impl Opened {
    /// Reads the contents, unless they are longer than `most`.
    pub(crate) fn read(self, most: u64) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        self.file.take(most + 1).read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 <= most).then_some(bytes))
    }
}

/// Opens a folder by an absolute path without links.
pub(crate) fn folder(path: &Path) -> io::Result<OwnedFd> {
    let mut at = open("/", FOLDER, Mode::empty())?;
    for step in steps(path)? {
        at = openat(&at, step, FOLDER, Mode::empty())?;
    }
    Ok(at)
}

/// Opens a folder in another.
pub(crate) fn folder_at(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(parent, name, FOLDER, Mode::empty())?)
}

/// Opens a regular file in a folder.
pub(crate) fn file_at(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<Opened> {
    let fd = openat(parent, name, FILE, Mode::empty())?;
    let stat = fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let nanoseconds = |secs: i64, nanos: i64| secs.saturating_mul(1_000_000_000) + nanos;
    let stamp = Stamp {
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        modified_ns: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        changed_ns: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        inode: stat.st_ino,
    };
    let file = File::from(fd);
    Ok(Opened { file, stamp })
}

/// Opens a regular file by an absolute path without links.
pub(crate) fn file(path: &Path) -> io::Result<Opened> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    file_at(folder(parent)?.as_fd(), name)
}

/// The components of an absolute path.
fn steps(path: &Path) -> io::Result<Vec<&OsStr>> {
    let mut steps = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir => {}
            Component::Normal(name) => steps.push(name),
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return Err(Errno::INVAL.into());
            }
        }
    }
    Ok(steps)
}
