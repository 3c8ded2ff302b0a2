//! The access of a sandboxed command, as the daemon sends it to the guardian.
//!
//! Invariant: a file or folder is identified by its path without links together
//! with its device and inode when it was judged. Opening it follows
//! no link and compares both, so that a replacement is never opened.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The access of a sandboxed command (GATE-5); everything else is closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// The working folder.
    pub cwd: PinnedPath,
    /// Files and folders with their rights.
    pub opened: Vec<OpenedPath>,
    /// Parts of git directories that the command must not create.
    pub absent: Vec<MissingPart>,
    /// The path of the command's private, empty home.
    pub home: Option<PathBuf>,
    /// Private copies of caches.
    pub caches: Option<Caches>,
    /// Links on the paths to open files, which users and programs may use.
    pub links: Vec<Link>,
    /// Hosts to which the proxy connects; an empty list means no proxy.
    pub hosts: Vec<String>,
    /// Whether the command runs in namespaces.
    pub namespaces: bool,
    /// The highest landlock version to use.
    pub landlock: u8,
}

/// A file or folder of the machine in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedPath {
    /// The file or folder.
    pub spot: PinnedPath,
    /// The command's right to it.
    pub right: Right,
}

/// A command's right to a path. The last three need namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Right {
    /// Read and execute the path and everything below.
    Read,
    /// Read, execute and change the path and everything below.
    Write,
    /// Change the path, but neither rename nor remove it: it is a separate mount.
    Pinned,
    /// Read the path, although the folder around it is writable.
    ReadOnly,
    /// See an empty file or folder at the path.
    Hidden,
}

/// A part of a git directory that does not exist when the command starts. A
/// placeholder keeps the command from creating it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingPart {
    /// An existing folder.
    pub folder: PinnedPath,
    /// The path of the part relative to the folder.
    pub name: PathBuf,
    /// The whole path.
    pub path: PathBuf,
    /// Whether the part is a file that the configuration includes. A placeholder in a work tree
    /// could be committed, so such a file is only removed after the command.
    pub include: bool,
}

/// The content of a placeholder `commondir`: git then looks for shared files
/// in the same folder. An empty file would be an error.
pub(crate) const PLACEHOLDER: &[u8] = b".\n";

/// Caches whose changes stay within one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caches {
    /// A folder for the data of overlay mounts while they exist.
    pub work: PathBuf,
    /// The caches.
    pub list: Vec<Cache>,
}

/// A cache of a toolchain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// The path at which the command finds the cache.
    pub path: PathBuf,
    /// The user's own cache, which is never changed.
    pub lower: Option<PinnedPath>,
    /// The private folder that takes changes.
    pub upper: PinnedPath,
}

/// The folder for the data of overlay mounts of one command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Overlays {
    /// The folder for the kernel's files.
    pub(crate) work: PinnedPath,
    /// Whether changes go to the project's folder or are discarded.
    pub(crate) keep: bool,
}

/// A file or folder with its identity when it was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedPath {
    /// Its path, without links.
    pub path: PathBuf,
    device: u64,
    inode: u64,
}

/// A symbolic link outside of every opened folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The path of the link.
    pub path: PathBuf,
    /// The target of the link.
    pub target: PathBuf,
}

impl PinnedPath {
    /// Records the identity of the file at a path without links.
    ///
    /// # Errors
    /// The path has a link or cannot be opened.
    pub fn judge(path: &Path) -> io::Result<Self> {
        Self::of(path, &open(path)?)
    }

    /// Records the identity of an open file.
    ///
    /// # Errors
    /// The kernel cannot identify the file.
    pub fn of(path: &Path, opened: &OwnedFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(opened)?;
        Ok(Self {
            path: path.to_path_buf(),
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }

    /// Whether an open file is the judged one.
    pub(crate) fn is(&self, opened: &OwnedFd) -> bool {
        rustix::fs::fstat(opened).is_ok_and(|s| (s.st_dev, s.st_ino) == (self.device, self.inode))
    }

    /// The names in the judged folder.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        use std::os::fd::AsRawFd;
        let opened = self.open()?;
        let folder = format!("/proc/self/fd/{}", opened.as_raw_fd());
        std::fs::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    }

    /// Opens exactly the judged file with `O_PATH`.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        let opened = open(&self.path)?;
        if self.is(&opened) {
            return Ok(opened);
        }
        Err(io::Error::other("the file was replaced since the check"))
    }
}

/// Opens a path with `O_PATH`. A link in it, including its last component,
/// is an error.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    Ok(opened)
}
