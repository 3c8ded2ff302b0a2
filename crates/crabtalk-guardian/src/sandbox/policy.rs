//! The access of a sandboxed command, as the daemon sends it to the guardian.
//!
//! Invariant: a file or folder is named by its path without links together
//! with the device and inode found there when it was judged. Opening it follows
//! no link and compares both, so that a later replacement is never opened.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The access of a sandboxed command (GATE-5); everything else is closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// Where the command runs.
    pub cwd: Spot,
    /// Files and folders with their rights.
    pub opened: Vec<OpenedPath>,
    /// Parts of git directories that must not come into being.
    pub absent: Vec<MissingPart>,
    /// The path of the command's private, empty home.
    pub home: Option<PathBuf>,
    /// Private copies of caches.
    pub caches: Option<Caches>,
    /// Links on the ways to opened places, as people and programs write them.
    pub links: Vec<Link>,
    /// Hosts that the proxy connects to; the proxy is absent without any.
    pub hosts: Vec<String>,
    /// Whether the command runs in namespaces.
    pub namespaces: bool,
    /// The latest version of landlock to ask the kernel for.
    pub landlock: u8,
}

/// A file or folder of the machine in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedPath {
    /// The file or folder.
    pub spot: Spot,
    /// The command's right to it.
    pub right: Right,
}

/// The right of a command to a place. The last three need namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Right {
    /// Read and execute it and everything below.
    Read,
    /// Change it and everything below as well.
    Write,
    /// Change it, but neither rename nor remove it: it is a separate mount.
    Pinned,
    /// Read it, although the folder around it is writable.
    ReadOnly,
    /// Find it empty.
    Hidden,
}

/// A part of a git directory that does not exist when the command starts. A
/// placeholder is put there, so that the command cannot create it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingPart {
    /// A folder that exists.
    pub folder: Spot,
    /// The path relative to it.
    pub name: PathBuf,
    /// The whole path.
    pub path: PathBuf,
    /// Whether it is a file that the configuration includes. In a work tree a
    /// placeholder could be committed, so that it is only removed afterwards.
    pub include: bool,
}

/// The content of a placeholder `commondir`: git then finds all that work trees
/// share in the same folder. An empty one is an error.
pub(crate) const PLACEHOLDER: &[u8] = b".\n";

/// Caches whose changes stay within one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caches {
    /// A folder for what overlay mounts need while they exist.
    pub work: PathBuf,
    /// The caches.
    pub list: Vec<Cache>,
}

/// A cache of a toolchain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// Where the command finds it.
    pub path: PathBuf,
    /// The person's own, which is never changed.
    pub lower: Option<Spot>,
    /// The private folder that takes changes.
    pub upper: Spot,
}

/// Where overlay mounts of one command keep their files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Overlays {
    /// The folder for the kernel's files.
    pub(crate) work: Spot,
    /// Whether changes go to the project's folder, or are lost.
    pub(crate) keep: bool,
}

/// A file or folder with its identity when it was judged.
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

impl Spot {
    /// Notes what a path without links leads to now.
    ///
    /// # Errors
    /// The path has a link or cannot be opened.
    pub fn judge(path: &Path) -> io::Result<Self> {
        Self::of(path, &open(path)?)
    }

    /// The same for a place that is open already.
    ///
    /// # Errors
    /// The kernel does not say what was opened.
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

    /// Opens exactly what was judged, as a mere place.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        let opened = open(&self.path)?;
        if self.is(&opened) {
            return Ok(opened);
        }
        Err(io::Error::other("it was replaced since it was judged"))
    }
}

/// Opens a path as a mere place. A link on the way, the last name included,
/// is an error.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    Ok(opened)
}
