//! Removes the placeholders for missing parts of git directories after a
//! command has ended.
//!
//! Invariants: every operation starts at a folder that was opened before the
//! command, and follows no link; the last of several commands in one folder removes.

use crate::sandbox::{MissingPart, PLACEHOLDER, PinnedPath};
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, ResolveFlags, flock, openat, openat2,
    renameat, statat, unlinkat,
};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of attempts to lock a folder that another command has locked, and the pause between them.
const SHARE_TRIES: u32 = 50;
const SHARE_PAUSE: Duration = Duration::from_millis(10);

/// A folder that is locked together with other commands that run in it, and the missing
/// names in it.
struct Watched<'a> {
    folder: OwnedFd,
    spot: &'a PinnedPath,
    names: Vec<&'a MissingPart>,
}

/// The placeholder names of a policy.
pub(super) struct Leftovers<'a>(Vec<Watched<'a>>);

impl<'a> Leftovers<'a> {
    /// Opens the folders before the command starts.
    pub(super) fn watch(absent: &'a [MissingPart]) -> Self {
        let mut watched: Vec<Watched<'a>> = Vec::new();
        for absent in absent {
            let known = watched.iter_mut().find(|w| *w.spot == absent.folder);
            if let Some(known) = known {
                known.names.push(absent);
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            // A folder that was replaced is not open to the command.
            let folder = absent.folder.open();
            if let Ok(folder) = folder.and_then(|at| Ok(openat(at, ".", flags, Mode::empty())?)) {
                share(&folder);
                watched.push(Watched {
                    folder,
                    spot: &absent.folder,
                    names: vec![absent],
                });
            }
        }
        Self(watched)
    }

    /// Removes the placeholders, unless another command runs in the folder.
    pub(super) fn remove(self) {
        for Watched { folder, names, .. } in self.0 {
            let alone = flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok();
            for absent in names {
                let name = Path::new(absent.name.file_name().unwrap_or_default());
                let Some(parent) = parent_of(&folder, &absent.name) else {
                    continue;
                };
                if absent.include {
                    remove_all(&parent, name);
                } else if alone {
                    remove_placeholder(&parent, name);
                }
            }
        }
    }
}

/// Takes a shared lock on a folder. Another command locks it exclusively only while it
/// removes a few names; a hostile command gains nothing by locking longer.
fn share(folder: &OwnedFd) {
    for _ in 0..SHARE_TRIES {
        if flock(folder, FlockOperation::NonBlockingLockShared).is_ok() {
            return;
        }
        std::thread::sleep(SHARE_PAUSE);
    }
}

/// Removes a file or folder recursively. It is renamed first, so that the name is free
/// at once.
fn remove_all(parent: &OwnedFd, name: &Path) {
    let Ok(stat) = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return;
    };
    let random = RandomState::new().hash_one(std::process::id());
    let away = format!("crabtalk-removed-{random:016x}");
    if renameat(parent, name, parent, &away).is_err() {
        return;
    }
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        let parent = PathBuf::from(format!("/proc/self/fd/{}", parent.as_raw_fd()));
        let _ = std::fs::remove_dir_all(parent.join(away));
    } else {
        let _ = unlinkat(parent, away, AtFlags::empty());
    }
}

/// Removes an empty folder or an unchanged placeholder file, but not a file that a person
/// put there.
fn remove_placeholder(parent: &OwnedFd, name: &Path) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut text = Vec::new();
    let is_ours = openat(parent, name, flags | OFlags::NONBLOCK, Mode::empty()).is_ok_and(|file| {
        let read = File::from(file).take(8).read_to_end(&mut text);
        read.is_ok() && (text.is_empty() || text == PLACEHOLDER)
    });
    if is_ours {
        let _ = unlinkat(parent, name, AtFlags::empty());
    } else {
        // Fails for files, and for folders that are not empty.
        let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
    }
}

fn parent_of(folder: &OwnedFd, path: &Path) -> Option<OwnedFd> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(folder, parent, flags, Mode::empty(), within).ok()
}
