//! Removes what a command created where git would obey it.
//!
//! Invariant: every operation starts at a folder that was opened before the
//! command and follows no link.

use crate::sandbox::SandboxPolicy;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, openat2, renameat, statat, unlinkat,
};
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Names that did not exist before the command.
pub(super) struct Leftovers(Vec<(OwnedFd, PathBuf)>);

impl Leftovers {
    /// Notes which of a policy's names are absent now.
    pub(super) fn watch(policy: Option<&SandboxPolicy>) -> Self {
        let mut watched = Vec::new();
        for absent in policy.into_iter().flat_map(|policy| &policy.absent) {
            for name in &absent.names {
                // A folder that was replaced is not opened to the command.
                if let Ok(folder) = absent.folder.open()
                    && kind(&folder, name).is_none()
                {
                    watched.push((folder, name.clone()));
                }
            }
        }
        Self(watched)
    }

    /// Removes those that exist by now. All are renamed first, which takes no
    /// time however much a folder holds.
    pub(super) fn remove(self) {
        let mut renamed = Vec::new();
        for (folder, path) in self.0 {
            let Some(parent) = parent_of(&folder, &path) else {
                continue;
            };
            let name = path.file_name().unwrap_or_default();
            let Some(kind) = kind(&parent, Path::new(name)) else {
                continue;
            };
            let random = RandomState::new().hash_one(std::process::id());
            let away = format!("crabtalk-removed-{random:016x}");
            if renameat(&parent, name, &parent, &away).is_ok() {
                renamed.push((parent, away, kind));
            }
        }
        for (parent, name, kind) in renamed {
            // What stays has a name that git does not know.
            if kind == FileType::Directory {
                let parent = PathBuf::from(format!("/proc/self/fd/{}", parent.as_raw_fd()));
                let _ = std::fs::remove_dir_all(parent.join(name));
            } else {
                let _ = unlinkat(&parent, name, AtFlags::empty());
            }
        }
    }
}

/// The kind of the file at a path below a folder.
fn kind(folder: &OwnedFd, path: &Path) -> Option<FileType> {
    let parent = parent_of(folder, path)?;
    let name = path.file_name()?;
    let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

fn parent_of(folder: &OwnedFd, path: &Path) -> Option<OwnedFd> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(folder, parent, flags, Mode::empty(), within).ok()
}
