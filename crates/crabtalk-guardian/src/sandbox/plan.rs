//! Plans the mounts of open paths: their order, and the paths that are already included in the
//! mount of a folder above.

use super::SandboxPolicy;
use super::policy::{Cache, MissingPart, PinnedPath, Right};
use std::path::{Path, PathBuf};

/// A path in the command's file system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) path: &'a Path,
    pub(crate) source: Source<'a>,
    pub(crate) right: Right,
    /// Whether the mount above includes it, or it cannot exist there.
    pub(crate) covered: bool,
}

/// The source of the files at a path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The same path on the machine.
    Machine(&'a PinnedPath),
    Cache(&'a Cache),
    /// A placeholder that keeps the command from creating the part.
    MissingPart(&'a MissingPart),
    /// An empty memory file system.
    Memory,
}

impl Part<'_> {
    pub(crate) fn may_change(&self) -> bool {
        matches!(self.right, Right::Write | Right::Pinned)
    }

    /// Order of several parts at one path; the last is mounted. The user's own files precede
    /// private ones, and the stricter right precedes the other, except
    /// that writing includes reading.
    fn rank(&self) -> (bool, bool, Right) {
        let is_cache = matches!(self.source, Source::Cache(_));
        let is_machine = matches!(self.source, Source::Machine(_));
        (is_machine, is_cache, self.right)
    }

    fn is_of_machine(&self) -> bool {
        matches!(self.source, Source::Machine(_)) && self.right != Right::Hidden
    }

    /// Whether the mount of `above` already includes this path.
    fn comes_with(&self, above: &Part<'_>) -> bool {
        match (self.source, self.right) {
            (Source::Machine(_), Right::Read | Right::Write) => {
                above.is_of_machine() && (above.may_change() || !self.may_change())
            }
            (Source::Machine(_), Right::Pinned | Right::ReadOnly | Right::Hidden) => false,
            // The path need not exist, and is not created on the machine.
            (Source::Cache(Cache { lower: None, .. }) | Source::Memory, _) => above.is_of_machine(),
            (Source::Cache(_) | Source::MissingPart(_), _) => false,
        }
    }
}

/// All paths, folders before their contents. `/proc` and `/dev` are mounted new,
/// so the machine's are omitted.
pub(crate) fn plan(policy: &SandboxPolicy) -> Vec<Part<'_>> {
    let part = |path, source, right| Part {
        path,
        source,
        right,
        covered: false,
    };
    let opened = policy.opened.iter().map(|opened| {
        let source = Source::Machine(&opened.spot);
        part(opened.spot.path.as_path(), source, opened.right)
    });
    let caches = policy.caches.iter().flat_map(|caches| &caches.list);
    let caches = caches.map(|cache| part(&cache.path, Source::Cache(cache), Right::Write));
    let home = policy.home.iter();
    let home = home.map(|home| part(home, Source::Memory, Right::Write));
    let absent = policy.absent.iter().filter(|absent| !absent.include);
    let absent =
        absent.map(|absent| part(&absent.path, Source::MissingPart(absent), Right::ReadOnly));
    let mut parts: Vec<Part<'_>> = opened
        .chain(absent)
        .chain(caches)
        .chain(home)
        .filter(|part| !is_the_kernels(part.path))
        .collect();
    parts.sort_by(|a, b| a.path.cmp(b.path).then(b.rank().cmp(&a.rank())));
    parts.dedup_by_key(|part| part.path);
    let mut above: Vec<Part<'_>> = Vec::new();
    for part in &mut parts {
        while above.last().is_some_and(|a| !part.path.starts_with(a.path)) {
            above.pop();
        }
        part.covered = above.last().is_some_and(|above| part.comes_with(above));
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

/// Whether the file at a path is the machine's, including links.
pub(crate) fn is_of_machine(parts: &[Part<'_>], path: &Path) -> bool {
    let mounted = |part: &&Part<'_>| !part.covered && path.starts_with(part.path);
    // Later parts are below earlier ones.
    parts.iter().rfind(mounted).is_some_and(Part::is_of_machine)
}

/// The command's private writable folders: two for temporary files,
/// and shared memory.
pub(crate) const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Whether a folder of the machine replaces a private one.
pub(crate) fn is_opened(parts: &[Part<'_>], path: &str) -> bool {
    parts.iter().any(|part| part.path == Path::new(path))
}

/// The folder for temporary files.
pub(crate) fn temporary(policy: &SandboxPolicy) -> &'static str {
    let parts = plan(policy);
    let [first, second, _] = PRIVATE;
    let taken = parts
        .iter()
        .any(|part| part.path == Path::new(first) && !part.may_change());
    if taken { second } else { first }
}

/// Whether a mount at a path may be writable: the nearest mount above it
/// decides.
pub(crate) fn may_change(parts: &[Part<'_>], mounted: &Path) -> bool {
    let private = PRIVATE.iter().map(|path| (PathBuf::from(path), true));
    let opened = parts
        .iter()
        .filter(|part| !part.covered)
        .map(|part| (part.path.to_path_buf(), part.may_change()));
    private
        .chain(opened)
        .filter(|(path, _)| mounted.starts_with(path))
        // Of a private folder and an open one at the same path, the open
        // one is on top.
        .max_by_key(|(path, _)| path.components().count())
        .is_some_and(|(_, change)| change)
}
