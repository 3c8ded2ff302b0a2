//! The folder in which a command runs.
//!
//! Invariant: it is the folder that was judged. A link that was put into its
//! path since is refused; from then on the folder is held open.

use crate::files::open_folder;
use crabtalk_guardian::Spot;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A working folder, held open.
pub(crate) struct Workplace {
    spot: Spot,
    folder: OwnedFd,
}

impl Workplace {
    /// Takes hold of a judged folder. Touches the disk.
    pub(crate) fn enter(path: &Path) -> Result<Self, String> {
        let failed = |why: &dyn std::fmt::Display| {
            format!(
                "the working directory {} cannot be used: {why}",
                path.display()
            )
        };
        let folder = open_folder(path, false).map_err(|e| failed(&e))?;
        let spot = Spot::of(path, &folder).map_err(|e| failed(&e))?;
        Ok(Self { spot, folder })
    }

    pub(crate) fn spot(&self) -> &Spot {
        &self.spot
    }

    /// A path to the held folder for a child of this process, independent of the
    /// folder's name.
    pub(crate) fn as_folder(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.folder.as_raw_fd()).into()
    }
}
