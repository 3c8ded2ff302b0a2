//! Opens exactly the path that was judged, and replaces contents atomically.
//!
//! The way is walked component by component with `O_NOFOLLOW`: one mechanism
//! that every Unix has, so that nothing hangs on the kernel's age.

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

/// A folder as a mere place: needs no right to list it.
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Opening must neither follow a link nor wait for a pipe's other end nor
/// make a terminal the controlling one.
const FILE: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Attempts at a free name for a temporary file; more than one collision
/// among 64-bit random names means something else is wrong.
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
    /// There is a file already.
    Exists,
    /// The file there is not this one any more.
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

/// How unfinished files begin that a crash may leave beside a file.
const TEMPORARY: &str = ".crabtalk-";

/// A place in a folder that holds, or will hold, one file.
pub(crate) struct Spot<'a> {
    pub(crate) folder: OwnedFd,
    pub(crate) name: &'a OsStr,
    pub(crate) path: &'a Path,
}

impl<'a> Spot<'a> {
    /// Walks to the folder of a judged path, creating what is missing of it
    /// when asked.
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

    /// The file there, opened for reading and known to be writable; `None`
    /// when there is none. A rename would replace a read-only file, which is
    /// not what its owner meant.
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

    /// Puts `content` there, whole or not at all, with the mode and where
    /// possible the owner of what was there.
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

    /// Writes a file beside the place and has `name` give it its name. `adopt`
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
        // The error that is reported is the first one.
        let _ = rustix::fs::unlinkat(&self.folder, temporary, AtFlags::empty());
    }

    /// Removes the unfinished files that crashes left beside this one.
    pub(crate) fn sweep(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&self.folder, ".", flags, Mode::empty());
        let Ok(entries) = folder.and_then(rustix::fs::Dir::new) else {
            // It cannot be listed.
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

    /// A new name for an unfinished file, which tells for which file it is.
    pub(crate) fn temporary(&self) -> String {
        format!("{}{:016x}", self.temporary_prefix(), random())
    }

    fn temporary_prefix(&self) -> String {
        let hash = Sha256::digest(self.name.as_encoded_bytes());
        let hash: String = hash[..8].iter().map(|b| format!("{b:02x}")).collect();
        format!("{TEMPORARY}{hash}-")
    }

    /// Gives a file its name, unless `unless` applies.
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
                // Not every file system can; then the look before has to do.
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

    /// Renames and replaces nothing.
    fn put_new(&self, temporary: &str) -> Result<(), Errno> {
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(&self.folder, temporary, &self.folder, self.name, flags)
    }

    fn create_temporary(&self, is_new: bool) -> Result<(String, File), Error> {
        // A new file gets what the umask leaves; a replacement stays private
        // until it has the old one's mode.
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

/// Gives a file to an owner, where that is allowed: only root gives files away,
/// and for others the group may still be kept. The content matters more.
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
                    // Another process may just have created it.
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
