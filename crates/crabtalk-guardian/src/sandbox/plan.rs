//! Which opened places are mounted, in which order, and which come with the
//! folder above.

use super::SandboxPolicy;
use super::policy::{Absent, Cache, Right, Spot};
use std::path::{Path, PathBuf};

/// One place in the command's own file system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) path: &'a Path,
    pub(crate) source: Source<'a>,
    pub(crate) right: Right,
    /// Whether it comes with the folder above, or has no place there.
    pub(crate) covered: bool,
}

/// Where the files of a place come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The same place of the machine.
    Machine(&'a Spot),
    Cache(&'a Cache),
    /// A placeholder for something that must not be created.
    Absent(&'a Absent),
    /// Memory, empty at first.
    Memory,
}

impl Part<'_> {
    pub(crate) fn may_change(&self) -> bool {
        matches!(self.right, Right::Write | Right::Pinned)
    }

    /// Which of several at one path is mounted: the person's own files come
    /// before private ones, and the stricter right before the other, except
    /// that writing covers reading.
    fn rank(&self) -> (bool, bool, Right) {
        let is_cache = matches!(self.source, Source::Cache(_));
        let is_machine = matches!(self.source, Source::Machine(_));
        (is_machine, is_cache, self.right)
    }

    fn is_of_machine(&self) -> bool {
        matches!(self.source, Source::Machine(_)) && self.right != Right::Hidden
    }

    /// Whether nothing has to be mounted below `above`.
    fn comes_with(&self, above: &Part<'_>) -> bool {
        match (self.source, self.right) {
            (Source::Machine(_), Right::Read | Right::Write) => {
                above.is_of_machine() && (above.may_change() || !self.may_change())
            }
            (Source::Machine(_), Right::Pinned | Right::ReadOnly | Right::Hidden) => false,
            // Its place need not exist, and is not made on the machine.
            (Source::Cache(Cache { lower: None, .. }) | Source::Memory, _) => above.is_of_machine(),
            (Source::Cache(_) | Source::Absent(_), _) => false,
        }
    }
}

/// All places, folders before those below. `/proc` and `/dev` are mounted fresh,
/// so the machine's are left out.
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
    let absent = absent.map(|absent| part(&absent.path, Source::Absent(absent), Right::ReadOnly));
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

/// Whether what is at a path is the machine's, links included.
pub(crate) fn is_of_machine(parts: &[Part<'_>], path: &Path) -> bool {
    let mounted = |part: &&Part<'_>| !part.covered && path.starts_with(part.path);
    // Later parts lie below earlier ones.
    parts.iter().rfind(mounted).is_some_and(Part::is_of_machine)
}

/// Folders of the command's own that may be changed: two for temporary files,
/// and shared memory.
pub(crate) const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Whether a folder of the machine is opened in the place of a private one.
pub(crate) fn is_opened(parts: &[Part<'_>], path: &str) -> bool {
    parts.iter().any(|part| part.path == Path::new(path))
}

/// Where temporary files go.
pub(crate) fn temporary(policy: &SandboxPolicy) -> &'static str {
    let parts = plan(policy);
    let [first, second, _] = PRIVATE;
    let taken = parts
        .iter()
        .any(|part| part.path == Path::new(first) && !part.may_change());
    if taken { second } else { first }
}

/// Whether what is mounted at a path may be changed: what the place mounted
/// next above it says.
pub(crate) fn may_change(parts: &[Part<'_>], mounted: &Path) -> bool {
    let private = PRIVATE.iter().map(|path| (PathBuf::from(path), true));
    let opened = parts
        .iter()
        .filter(|part| !part.covered)
        .map(|part| (part.path.to_path_buf(), part.may_change()));
    private
        .chain(opened)
        .filter(|(path, _)| mounted.starts_with(path))
        // Of a private folder and an opened one at the same path, the latter
        // is on top.
        .max_by_key(|(path, _)| path.components().count())
        .is_some_and(|(_, change)| change)
}
