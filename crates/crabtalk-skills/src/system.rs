//! Files opened step by step.

use rustix::fs::{Mode, OFlags, open, openat};
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path};

/// Opens a canonical path below a canonical folder step by step, following no
/// link; without blocking, should it be a pipe.
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

/// Opens or creates a lock file for its owner alone, without blocking on a pipe.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)
}

/// Creates a new file for its owner alone.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Copies the executable bit only.
pub(crate) fn copy_mode(of: &Metadata, to: &File) -> io::Result<()> {
    let executable = of.permissions().mode() & 0o100;
    to.set_permissions(Permissions::from_mode(0o600 | executable))
}
