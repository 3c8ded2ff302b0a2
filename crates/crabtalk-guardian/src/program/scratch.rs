//! Folders that exist as long as a command: for temporary files and
//! for the kernel's data of overlay mounts.

use crate::sandbox::{Overlays, PinnedPath};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A folder that is removed recursively on drop.
pub(super) struct Scratch {
    folder: TempDir,
    spot: PinnedPath,
}

impl Scratch {
    /// Creates a private folder below another folder.
    pub(super) fn make(below: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("crabtalk-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(below.canonicalize()?)?;
        Ok(Self {
            spot: PinnedPath::judge(folder.path())?,
            folder,
        })
    }

    pub(super) fn spot(&self) -> &PinnedPath {
        &self.spot
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A scratch folder for overlay mounts, hidden from the command. Two mounts must not
/// share an upper folder, so the first of several commands uses the project's,
/// and the others have temporary upper folders here.
pub(super) struct OverlayScratch {
    scratch: Scratch,
    /// The lock, if this command is the first.
    lock: Option<File>,
}

impl OverlayScratch {
    pub(super) fn make(below: &Path) -> io::Result<Self> {
        let lock = File::open(below)?;
        let lock = lock.try_lock().is_ok().then_some(lock);
        Ok(Self {
            scratch: Scratch::make(below)?,
            lock,
        })
    }

    pub(super) fn overlays(&self) -> Overlays {
        Overlays {
            work: self.scratch.spot().clone(),
            keep: self.lock.is_some(),
        }
    }
}

impl Drop for OverlayScratch {
    fn drop(&mut self) {
        // The kernel leaves folders that cannot be listed.
        for entry in std::fs::read_dir(self.scratch.path())
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
}
