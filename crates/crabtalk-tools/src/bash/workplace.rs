//! The folder in which a command runs.
//!
//! Invariant: it is the folder that the gate judged. A link that replaced a part of its
//! path since is refused; after that, the open descriptor identifies the folder.

use crate::files::open_folder;
use crabtalk_guardian::PinnedPath;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A working folder with an open descriptor.
pub(crate) struct Workplace {
    spot: PinnedPath,
    folder: OwnedFd,
}

impl Workplace {
    /// Opens a judged folder. Reads the disk.
    pub(crate) fn enter(path: &Path) -> Result<Self, String> {
        let failed = |why: &dyn std::fmt::Display| {
            format!(
                "the working directory {} cannot be used: {why}",
                path.display()
            )
        };
        let folder = open_folder(path, false).map_err(|e| failed(&e))?;
        let spot = PinnedPath::of(path, &folder).map_err(|e| failed(&e))?;
        Ok(Self { spot, folder })
    }

    pub(crate) fn spot(&self) -> &PinnedPath {
        &self.spot
    }

    /// A path to the open folder for a child of this process, independent of the
    /// folder's name.
    pub(crate) fn as_folder(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.folder.as_raw_fd()).into()
    }
}
