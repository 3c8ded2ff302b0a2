//! Opens files without following links, and reads their metadata.

use rustix::fs::{Mode, OFlags, open, openat};
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path};
use std::time::{Duration, SystemTime};

/// Opens a canonical path below a canonical folder step by step, without following links
/// or blocking on a pipe.
pub(crate) fn open_real(folder: &Path, real: &Path) -> io::Result<File> {
    let step = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let last = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let relative = real
        .strip_prefix(folder)
        .map_err(|_| io::Error::other("it lies outside"))?;
    let mut at = open(folder, step, Mode::empty())?;
    let mut components = relative.components().peekable();
    while let Some(component) = components.next() {
        let Component::Normal(name) = component else {
            return Err(io::Error::other("it is not a plain path"));
        };
        let flags = if components.peek().is_some() {
            step
        } else {
            last
        };
        at = openat(&at, name, flags, Mode::empty())?;
    }
    Ok(File::from(at))
}

/// Opens or creates a private lock file, without blocking on a pipe.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)
}

/// Creates a new private file.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Copies only the executable bit.
pub(crate) fn copy_mode(of: &Metadata, to: &File) -> io::Result<()> {
    let executable = of.permissions().mode() & 0o100;
    to.set_permissions(Permissions::from_mode(0o600 | executable))
}

/// Device, inode and size.
pub(crate) fn place(metadata: &Metadata) -> [u64; 3] {
    [metadata.dev(), metadata.ino(), metadata.size()]
}

/// Times of modification and change.
pub(crate) fn times(metadata: &Metadata) -> [i64; 4] {
    [
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ]
}

/// The time of change in seconds; tools can set the time of modification, but not this one.
pub(crate) fn changed(metadata: &Metadata) -> Option<SystemTime> {
    let changed = Duration::from_secs(u64::try_from(metadata.ctime()).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(changed)
}
