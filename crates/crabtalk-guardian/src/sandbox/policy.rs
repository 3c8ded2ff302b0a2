//! What a sandboxed command may reach, as the daemon tells the guardian.
//!
//! Invariant: a file or folder is told by its path without links together
//! with what was found there when it was judged. Whoever opens it follows no
//! link and compares, so that nothing put in its place later is opened.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What a sandboxed command may reach (GATE-5); everything else is closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// Where the command runs.
    pub cwd: Spot,
    /// Files and folders below which everything may be changed.
    pub write: Vec<Spot>,
    /// Files and folders below which everything may be read and executed.
    pub read: Vec<Spot>,
    /// Links on the ways to them, as people and programs write these.
    pub links: Vec<Link>,
    /// Whether sockets other than Unix ones may be made.
    pub network: bool,
    /// Whether the command runs in namespaces of its own.
    pub namespaces: bool,
    /// The version of landlock beyond which nothing is asked of the kernel.
    pub landlock: u8,
}

/// A file or folder as it was when it was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spot {
    /// Its path, without links.
    pub path: PathBuf,
    device: u64,
    inode: u64,
}

/// A symbolic link outside of every opened folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Where it is.
    pub path: PathBuf,
    /// Where it leads.
    pub target: PathBuf,
}

#[cfg(target_os = "linux")]
impl Spot {
    /// Notes what a path without links leads to now, so that nothing else is opened in
    /// its place later.
    ///
    /// # Errors
    /// What the system says of a path that cannot be opened.
    pub fn judge(path: &Path) -> io::Result<Self> {
        Self::of(path, &open(path)?)
    }

    /// The same for what was opened at that path already.
    ///
    /// # Errors
    /// What the system says if it cannot be looked at.
    pub fn of(path: &Path, opened: &OwnedFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(opened)?;
        Ok(Self {
            path: path.to_path_buf(),
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }

    /// Whether something opened is what was judged.
    pub(crate) fn is(&self, opened: &OwnedFd) -> bool {
        rustix::fs::fstat(opened).is_ok_and(|s| (s.st_dev, s.st_ino) == (self.device, self.inode))
    }

    /// The names in the folder that was judged.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        use std::os::fd::AsRawFd;
        let opened = self.open()?;
        let folder = format!("/proc/self/fd/{}", opened.as_raw_fd());
        std::fs::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    }

    /// Exactly what was judged, as a mere place, or an error.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        let opened = open(&self.path)?;
        if self.is(&opened) {
            return Ok(opened);
        }
        Err(io::Error::other(
            "something else is in its place since it was judged",
        ))
    }
}

/// Opens a path as a mere place. A link on the way, the last name included,
/// is an error.
#[cfg(target_os = "linux")]
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    Ok(opened)
}

#[cfg(not(target_os = "linux"))]
impl Spot {
    /// There is no sandbox here; what would be opened is only named.
    pub fn judge(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_path_buf(),
            device: 0,
            inode: 0,
        })
    }

    /// As on Linux, but for what was opened.
    pub fn of(path: &Path, _opened: &OwnedFd) -> io::Result<Self> {
        Self::judge(path)
    }

    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(&self.path)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    }
}
