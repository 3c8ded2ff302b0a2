//! Opens exactly the path that was judged, and replaces contents atomically.
//!
//! Paths are walked component by component with `O_NOFOLLOW`, which works on every Unix
//! and kernel version.

use super::Error;
use super::resolve::{Intent, check_kind};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

/// Opens a folder without the right to list it.
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Opening must not follow a link, block on a named pipe, or acquire a controlling
/// terminal.
const FILE: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Attempts to find a free name for a temporary file. More than one collision of random
/// 64-bit names indicates another problem.
const NAME_ATTEMPTS: u32 = 8;

/// An object opened for reading.
pub(super) enum Opened {
    File(File),
    Folder(File),
}

/// Opens a judged path for reading.
pub(super) fn open_to_read(path: &Path) -> Result<Opened, Error> {
    let file = match path.file_name() {
        Some(name) => {
            let folder = open_folder(path.parent().unwrap_or(Path::new("/")), false)?;
            open_in(&folder, name, OFlags::RDONLY, path)?
        }
        None => File::from(
            rustix::fs::open(
                "/",
                OFlags::RDONLY | OFlags::DIRECTORY | FILE,
                Mode::empty(),
            )
            .map_err(|e| Error::io("open", path, e))?,
        ),
    };
    let meta = file.metadata().map_err(|e| Error::io("inspect", path, e))?;
    check_kind(path, &meta, Intent::Read)?;
    Ok(if meta.is_dir() {
        Opened::Folder(file)
    } else {
        Opened::File(file)
    })
}

/// The condition under which a content is not written.
#[derive(Debug)]
pub(super) enum Unless {
    Never,
    /// A file exists at the path.
    Exists,
    /// The file at the path changed.
    Changed(Stamp),
}

/// Identifies a file and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp(String);

impl Stamp {
    pub(super) fn take(file: &File) -> io::Result<Self> {
        Ok(Self::of(&rustix::fs::fstat(file)?))
    }

    fn of(stat: &rustix::fs::Stat) -> Self {
        Self(format!(
            "{}:{}:{}:{}.{}:{}.{}",
            stat.st_dev,
            stat.st_ino,
            stat.st_size,
            stat.st_mtime,
            stat.st_mtime_nsec,
            stat.st_ctime,
            stat.st_ctime_nsec
        ))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Prefix of temporary files, which a crash may leave next to a file.
const TEMPORARY: &str = ".crabtalk-";

/// A file name in an open folder; the file may not exist yet.
pub(crate) struct PathInFolder<'a> {
    pub(crate) folder: OwnedFd,
    pub(crate) name: &'a OsStr,
    pub(crate) path: &'a Path,
}

impl<'a> PathInFolder<'a> {
    /// Walks to the folder of a judged path. With `create`, missing folders are
    /// created.
    pub(crate) fn reach(path: &'a Path, create: bool) -> Result<Self, Error> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Error::Folder(path.to_path_buf()));
        };
        Ok(Self {
            folder: open_folder(folder, create)?,
            name,
            path,
        })
    }

    /// Opens the existing file for reading and checks that it is writable; `None`
    /// if it does not exist. Without the check, a rename would replace even a read-only
    /// file.
    pub(super) fn existing(&self) -> Result<Option<File>, Error> {
        match open_in(&self.folder, self.name, OFlags::RDWR, self.path) {
            Ok(file) => {
                let meta = file
                    .metadata()
                    .map_err(|e| Error::io("inspect", self.path, e))?;
                check_kind(self.path, &meta, Intent::Change)?;
                Ok(Some(file))
            }
            Err(Error::NotFound(_)) => Ok(None),
            // A file that may be written but not read can still be replaced.
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                open_in(&self.folder, self.name, OFlags::WRONLY, self.path).map(Some)
            }
            Err(e) => Err(e),
        }
    }

    /// Replaces the content completely or not at all, keeping the mode and, if
    /// possible, the owner.
    pub(super) fn replace(
        &self,
        content: &[u8],
        old: Option<&File>,
        unless: &Unless,
    ) -> Result<(), Error> {
        let adopt = |file: &File| match old {
            Some(old) => {
                let was = old.metadata()?;
                give(file, was.uid(), was.gid());
                file.set_permissions(was.permissions())
            }
            None => Ok(()),
        };
        self.write(content, old.is_none(), adopt, |name| self.put(name, unless))
    }

    /// Writes a temporary file next to the path, and has `name` rename it. `adopt`
    /// sets its owner and mode.
    pub(crate) fn write<E: From<Error>>(
        &self,
        content: &[u8],
        is_new: bool,
        adopt: impl FnOnce(&File) -> io::Result<()>,
        name: impl FnOnce(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let (temporary, mut file) = self.create_temporary(is_new)?;
        let filled = file
            .write_all(content)
            .and_then(|()| adopt(&file))
            // Renaming before the content is on disk could leave an empty file
            // after a power cut.
            .and_then(|()| file.sync_data());
        let done = filled
            .map_err(|e| Error::io("write", self.path, e).into())
            .and_then(|()| name(&temporary));
        if done.is_err() {
            self.discard(&temporary);
        }
        done
    }

    pub(crate) fn discard(&self, temporary: &str) {
        // Only the first error is reported.
        let _ = rustix::fs::unlinkat(&self.folder, temporary, AtFlags::empty());
    }

    /// Removes temporary files that crashes left next to this file.
    pub(crate) fn sweep(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&self.folder, ".", flags, Mode::empty());
        let Ok(entries) = folder.and_then(rustix::fs::Dir::new) else {
            // The folder cannot be listed.
            return;
        };
        let prefix = self.temporary_prefix();
        for entry in entries.flatten() {
            if let Ok(name) = entry.file_name().to_str()
                && name.starts_with(&prefix)
            {
                self.discard(name);
            }
        }
    }

    /// A new temporary name that includes the final name.
    pub(crate) fn temporary(&self) -> String {
        format!("{}{:016x}", self.temporary_prefix(), random())
    }

    fn temporary_prefix(&self) -> String {
        let hash = Sha256::digest(self.name.as_encoded_bytes());
        let hash: String = hash[..8].iter().map(|b| format!("{b:02x}")).collect();
        format!("{TEMPORARY}{hash}-")
    }

    /// Renames a file to its final name, unless `unless` applies.
    fn put(&self, temporary: &str, unless: &Unless) -> Result<(), Error> {
        let changed = || Error::ChangedMeanwhile(self.path.to_path_buf());
        let failed = |e: Errno| Error::io("write", self.path, e);
        let now = || rustix::fs::statat(&self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW);
        match unless {
            Unless::Never => {}
            Unless::Changed(stamp) => {
                if now().map_or(true, |now| Stamp::of(&now) != *stamp) {
                    return Err(changed());
                }
            }
            Unless::Exists => match self.put_new(temporary) {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => return Err(changed()),
                // Not every file system supports this; the earlier check has to suffice.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::PERM) => {
                    if now().is_ok() {
                        return Err(changed());
                    }
                }
                Err(e) => return Err(failed(e)),
            },
        }
        rustix::fs::renameat(&self.folder, temporary, &self.folder, self.name).map_err(failed)
    }

    /// Renames without replacing.
    fn put_new(&self, temporary: &str) -> Result<(), Errno> {
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(&self.folder, temporary, &self.folder, self.name, flags)
    }

    fn create_temporary(&self, is_new: bool) -> Result<(String, File), Error> {
        // The umask applies to a new file; a replacement stays private until it gets the
        // old file's mode.
        let mode = Mode::from_raw_mode(if is_new { 0o666 } else { 0o600 });
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut last = Errno::EXIST;
        for _ in 0..NAME_ATTEMPTS {
            let name = self.temporary();
            match rustix::fs::openat(&self.folder, &name, flags, mode) {
                Ok(fd) => return Ok((name, File::from(fd))),
                Err(Errno::EXIST) => {}
                Err(e) => {
                    last = e;
                    break;
                }
            }
        }
        Err(Error::io("write in the folder of", self.path, last))
    }
}

/// Changes the owner as far as allowed: only root may change the user; others may keep the
/// group. Errors are ignored, since the content is written.
pub(crate) fn give(file: &File, user: u32, group: u32) {
    use rustix::fs::{Gid, Uid, fchown};
    let group = Some(Gid::from_raw(group));
    if fchown(file, Some(Uid::from_raw(user)), group).is_err() {
        let _ = fchown(file, None, group);
    }
}

/// A random number: the standard library seeds each hasher differently.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

fn open_in(folder: &OwnedFd, name: &OsStr, access: OFlags, path: &Path) -> Result<File, Error> {
    match rustix::fs::openat(folder, name, access | FILE, Mode::empty()) {
        Ok(fd) => Ok(File::from(fd)),
        Err(Errno::LOOP | Errno::MLINK) => Err(Error::Changed(path.to_path_buf())),
        Err(Errno::NOENT) => Err(Error::NotFound(path.to_path_buf())),
        Err(Errno::ISDIR) => Err(Error::Folder(path.to_path_buf())),
        Err(Errno::NXIO) => Err(Error::Special {
            path: path.to_path_buf(),
            kind: "a named pipe or a device",
        }),
        Err(e) => Err(Error::io("open", path, e)),
    }
}

/// Walks from the root to a folder without following a link.
pub(crate) fn open_folder(path: &Path, create: bool) -> Result<OwnedFd, Error> {
    let mut at = rustix::fs::openat(CWD, "/", PLACE, Mode::empty())
        .map_err(|e| Error::io("open", "/", e))?;
    for part in path.components() {
        let Component::Normal(name) = part else {
            continue;
        };
        at = match step(&at, name) {
            Err(Errno::NOENT) if create => {
                match rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
                    // Another process may have created it at the same moment.
                    Ok(()) | Err(Errno::EXIST) => step(&at, name),
                    Err(e) => return Err(Error::io("create the folder", path, e)),
                }
            }
            other => other,
        }
        .map_err(|e| match e {
            Errno::LOOP | Errno::NOTDIR => Error::Changed(path.to_path_buf()),
            Errno::NOENT => Error::NotFound(path.to_path_buf()),
            e => Error::io("open the folder", path, e),
        })?;
    }
    Ok(at)
}

fn step(at: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(at, name, PLACE | OFlags::NOFOLLOW, Mode::empty())
}
