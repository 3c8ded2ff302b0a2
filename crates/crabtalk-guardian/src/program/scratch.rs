//! A folder of the command's own: for its temporary files, and for a command
//! that is too long for an argument.
//!
//! Invariant: the folder is the one that was made, held open from then on;
//! what takes its name later is neither opened nor looked into.

use crate::sandbox::Spot;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::fs::Permissions;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Attempts at a free name; more than one collision among 64-bit random names
/// means that something else is wrong.
const NAME_ATTEMPTS: u32 = 8;

/// A folder as a mere place, at no link.
const PLACE: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removed with all that it holds when it is dropped.
pub(super) struct Scratch {
    parent: OwnedFd,
    name: String,
    spot: Spot,
    is_for_overlays: bool,
}

impl Scratch {
    /// A new one below a folder.
    pub(super) fn make(below: &Path) -> io::Result<Self> {
        let below = below.canonicalize()?;
        let parent = rustix::fs::openat(CWD, &below, PLACE, Mode::empty())?;
        for _ in 0..NAME_ATTEMPTS {
            // The standard library seeds every hasher anew.
            let random = RandomState::new().hash_one(std::process::id());
            let name = format!("crabtalk-{random:016x}");
            match rustix::fs::mkdirat(&parent, &name, Mode::RWXU) {
                Ok(()) => return Self::hold(parent, name, &below),
                Err(Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Err(Errno::EXIST.into())
    }

    /// One for the work folders of overlay mounts, which no command reaches.
    pub(super) fn for_overlays(below: &Path) -> io::Result<Self> {
        let mut scratch = Self::make(below)?;
        scratch.is_for_overlays = true;
        Ok(scratch)
    }

    /// What was made is a folder of ours that nobody else may enter. Whoever
    /// put another one there could do so only with a folder of the same kind.
    fn hold(parent: OwnedFd, name: String, below: &Path) -> io::Result<Self> {
        let folder = rustix::fs::openat(&parent, &name, PLACE, Mode::empty())?;
        let stat = rustix::fs::fstat(&folder)?;
        let is_ours = stat.st_uid == rustix::process::geteuid().as_raw()
            && stat.st_mode & 0o7777 == Mode::RWXU.bits();
        if !is_ours {
            return Err(io::Error::other("somebody else has changed it"));
        }
        Ok(Self {
            spot: Spot::of(&below.join(&name), &folder)?,
            parent,
            name,
            is_for_overlays: false,
        })
    }

    pub(super) fn spot(&self) -> &Spot {
        &self.spot
    }

    /// Its path, for what is told by name alone.
    pub(super) fn path(&self) -> &Path {
        &self.spot.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_for_overlays {
            // What an overlay mount leaves there may not be listed.
            for entry in std::fs::read_dir(self.path())
                .into_iter()
                .flatten()
                .flatten()
            {
                let mut folder = entry.path();
                for name in ["work", "incompat", "volatile"] {
                    folder.push(name);
                    let _ = std::fs::set_permissions(&folder, Permissions::from_mode(0o700));
                }
            }
        }
        // The library follows no link from here on down. What cannot be
        // removed stays below the folder of temporary files, which the system
        // clears.
        let parent = PathBuf::from(format!("/proc/self/fd/{}", self.parent.as_raw_fd()));
        let _ = std::fs::remove_dir_all(parent.join(&self.name));
    }
}
