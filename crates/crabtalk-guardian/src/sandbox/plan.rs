//! Which opened files and folders are mounted, and which come with another.

use super::SandboxPolicy;
use super::policy::Spot;
use std::path::{Path, PathBuf};

/// One file or folder in the command's own file system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) spot: &'a Spot,
    pub(crate) change: bool,
    /// Whether it comes with the folder above.
    pub(crate) covered: bool,
}

/// Folders above before those below. What a folder above shows with at least
/// the same right is not mounted again. The kernel's own file systems are made
/// anew, and nothing of the system's takes their place.
pub(crate) fn plan(policy: &SandboxPolicy) -> Vec<Part<'_>> {
    let part = |change| {
        move |spot| Part {
            spot,
            change,
            covered: false,
        }
    };
    let mut parts: Vec<Part<'_>> = policy
        .write
        .iter()
        .map(part(true))
        .chain(policy.read.iter().map(part(false)))
        .filter(|part| !is_the_kernels(&part.spot.path))
        .collect();
    // Of two rights to one folder the larger comes first, and covers.
    parts.sort_by(|a, b| {
        let path = a.spot.path.cmp(&b.spot.path);
        path.then(b.change.cmp(&a.change))
    });
    let mut above: Vec<Part<'_>> = Vec::new();
    for part in &mut parts {
        while above
            .last()
            .is_some_and(|a| !part.spot.path.starts_with(&a.spot.path))
        {
            above.pop();
        }
        part.covered = above.last().is_some_and(|a| a.change || !part.change);
        if !part.covered {
            above.push(*part);
        }
    }
    parts
}

fn is_the_kernels(path: &Path) -> bool {
    path == Path::new("/")
        || path.starts_with("/proc")
        || (path.starts_with("/dev") && !path.starts_with("/dev/shm"))
}

/// Whether something is mounted at a path or above it, in which case links
/// there are those of the folder.
pub(crate) fn is_mounted(parts: &[Part<'_>], path: &Path) -> bool {
    parts
        .iter()
        .any(|part| !part.covered && path.starts_with(&part.spot.path))
}

/// Folders of the command's own that may be changed: two for temporary files,
/// and shared memory.
pub(crate) const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Whether somebody else's folder is opened in the place of a private one.
pub(crate) fn is_opened(parts: &[Part<'_>], path: &str) -> bool {
    parts.iter().any(|part| part.spot.path == Path::new(path))
}

/// Where temporary files go.
pub(crate) fn temporary(policy: &SandboxPolicy) -> &'static str {
    let parts = plan(policy);
    let [first, second, _] = PRIVATE;
    let taken = parts
        .iter()
        .any(|part| part.spot.path == Path::new(first) && !part.change);
    if taken { second } else { first }
}

/// Whether what is mounted at a path may be changed: what the folder mounted
/// next above it says.
pub(crate) fn may_change(parts: &[Part<'_>], mounted: &Path) -> bool {
    let private = PRIVATE.iter().map(|path| (PathBuf::from(path), true));
    let opened = parts
        .iter()
        .filter(|part| !part.covered)
        .map(|part| (part.spot.path.clone(), part.change));
    private
        .chain(opened)
        .filter(|(path, _)| mounted.starts_with(path))
        // Of a private folder and an opened one at the same path, the latter
        // is on top.
        .max_by_key(|(path, _)| path.components().count())
        .is_some_and(|(_, change)| change)
}
