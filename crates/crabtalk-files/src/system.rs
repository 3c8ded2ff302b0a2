//! Files opened without waiting, and the kernel's stamps of them.

use crate::error::Error;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Opening a pipe would wait for a writer and a terminal would become ours.
const UNWAITING: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Opens an object for reading, without waiting for other processes.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    match rustix::fs::open(path, UNWAITING, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        // The error of a socket.
        Err(rustix::io::Errno::NXIO) => Err(Error::Kind("a socket")),
        Err(rustix::io::Errno::NOENT) if path.is_symlink() => Err(Error::LeadsNowhere),
        Err(error) => Err(Error::Io(error.into())),
    }
}

/// Opens an object for writing at its end, and makes a file for its
/// owner alone (0600) where nothing does.
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

/// Makes a file where nothing lies, for its owner alone (0600).
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
        FileType::Symlink | FileType::Unknown => Some("something else"),
    })
}

/// Creates a folder and those above it, for their owner alone (0700).
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes what was done to a folder's names last.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The identity of a file.
pub(crate) fn place(metadata: &Metadata) -> [u64; 2] {
    [metadata.dev(), metadata.ino()]
}

/// Values that change with the content.
pub(crate) fn content(metadata: &Metadata) -> [i64; 5] {
    [
        metadata.size() as i64,
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ]
}

/// When a file's state changed last; `None` before 1970.
pub(crate) fn changed(metadata: &Metadata) -> Option<SystemTime> {
    let seconds = Duration::from_secs(u64::try_from(metadata.ctime()).ok()?);
    let nanos = Duration::from_nanos(u64::try_from(metadata.ctime_nsec()).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(seconds + nanos)
}

/// Whether the nearest folder that exists lies on a file system that answers
/// at once and counts finely.
pub(crate) fn is_local(folder: &Path) -> bool {
    /// Magic numbers of statfs(2): ext2 to ext4, XFS, Btrfs, F2FS, ZFS,
    /// bcachefs, tmpfs and overlayfs.
    const LOCAL: [u32; 8] = [
        0xEF53,
        0x5846_5342,
        0x9123_683E,
        0xF2F5_2010,
        0x2FC1_2FC1,
        0xCA45_1A4E,
        0x0102_1994,
        0x794C_7630,
    ];
    let found = folder
        .ancestors()
        .find_map(|at| rustix::fs::statfs(at).ok());
    found.is_some_and(|stat| LOCAL.contains(&(stat.f_type as u32)))
}
