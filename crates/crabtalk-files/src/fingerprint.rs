//! Stamps of files, and when they may be believed.
//!
//! Invariant: while a fingerprint holds, reading the files again would give
//! what was read when it was taken. Where that cannot be told there is none.

use crate::system;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file that changed this shortly before it was read may change again under
/// the same stamp: kernels count in ticks of up to ten milliseconds.
const SETTLED: Duration = Duration::from_millis(100);

/// Most files of one fingerprint: asking costs about a microsecond each, on a
/// thread that others wait for.
const MAX_TRACES: usize = 256;

/// A source of cached data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trace {
    /// A file's content or a folder's list; it need not be there.
    Content(PathBuf),
    /// The file or folder that a path leads to, not its content.
    Place(PathBuf),
}

/// The stamps of some files.
#[derive(Debug)]
pub struct Fingerprint(Vec<(Trace, Option<Stamp>)>);

/// The stamp of a file. The time of the last change of state is in
/// it, since tools set that of modification back as they like.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    place: [u64; 2],
    content: Option<[i64; 5]>,
}

impl Fingerprint {
    /// Takes the stamps of what was read since `begun`. `None` where they prove
    /// nothing: something changed since or just before, lies on a file system
    /// whose stamps mean less or may be long in coming, or is too much to ask
    /// for each time.
    pub fn take(traces: Vec<Trace>, begun: SystemTime) -> Option<Self> {
        if traces.len() > MAX_TRACES {
            return None;
        }
        let believed = begun.checked_sub(SETTLED)?;
        let mut folder: Option<PathBuf> = None;
        let mut stamps = Vec::with_capacity(traces.len());
        for trace in traces {
            let metadata = fs::metadata(trace.path()).ok();
            if let (Some(metadata), Trace::Content(_)) = (&metadata, &trace)
                && system::changed(metadata)? >= believed
            {
                return None;
            }
            // Neighbours lie on one file system.
            let at = trace.path().parent().unwrap_or(trace.path());
            let target = metadata.as_ref().filter(|it| it.is_dir());
            let at = target.map_or(at, |_| trace.path());
            if folder.as_deref() != Some(at) {
                if !system::is_local(at) {
                    return None;
                }
                folder = Some(at.to_owned());
            }
            let stamp = metadata.map(|metadata| trace.stamp(&metadata));
            stamps.push((trace, stamp));
        }
        Some(Self(stamps))
    }

    /// Whether nothing has changed.
    pub fn holds(&self) -> bool {
        self.0.iter().all(|(trace, stamp)| {
            let now = fs::metadata(trace.path()).ok();
            now.map(|metadata| trace.stamp(&metadata)) == *stamp
        })
    }
}

impl Trace {
    fn path(&self) -> &Path {
        match self {
            Self::Content(path) | Self::Place(path) => path,
        }
    }

    fn stamp(&self, metadata: &Metadata) -> Stamp {
        let content = match self {
            Self::Place(_) => None,
            Self::Content(_) => Some(system::content(metadata)),
        };
        Stamp {
            place: system::place(metadata),
            content,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A moment at which all present files have settled.
    fn later() -> SystemTime {
        SystemTime::now() + 2 * SETTLED
    }

    fn content(paths: &[&Path]) -> Vec<Trace> {
        paths.iter().map(|p| Trace::Content((*p).into())).collect()
    }

    #[test]
    fn every_change_ends_it() {
        let dir = tempfile::tempdir().unwrap();
        let (file, absent) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&file, "one").unwrap();
        let take = || Fingerprint::take(content(&[&file, &absent]), later()).unwrap();
        let first = take();
        assert!(first.holds());
        fs::write(&absent, "").unwrap();
        assert!(!first.holds(), "a file that was not there");
        let second = take();
        let replaced = dir.path().join("c");
        fs::write(&replaced, "two").unwrap();
        fs::rename(&replaced, &file).unwrap();
        assert!(!second.holds(), "another file of the same size");
        let third = take();
        fs::write(&file, "longer").unwrap();
        assert!(!third.holds());
        let fourth = take();
        fs::remove_file(&file).unwrap();
        assert!(!fourth.holds());
    }

    #[test]
    fn what_changed_just_now_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        fs::write(&file, "one").unwrap();
        let just_now = fs::metadata(&file).unwrap().modified().unwrap();
        assert!(Fingerprint::take(content(&[&file]), just_now).is_none());
        assert!(Fingerprint::take(content(&[&file]), later()).is_some());
    }

    #[test]
    fn a_place_is_where_a_path_leads() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two, link) = ("one", "two", "link");
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at(one)).unwrap();
        fs::create_dir(at(two)).unwrap();
        std::os::unix::fs::symlink(one, at(link)).unwrap();
        let place = Fingerprint::take(vec![Trace::Place(at(link))], SystemTime::now()).unwrap();
        fs::write(at(one).join("file"), "").unwrap();
        assert!(place.holds(), "what is in it does not matter");
        fs::remove_file(at(link)).unwrap();
        std::os::unix::fs::symlink(two, at(link)).unwrap();
        assert!(!place.holds());
    }

    #[test]
    fn what_the_kernel_makes_up_is_not_believed() {
        let status = Path::new("/proc/self/status");
        assert!(Fingerprint::take(content(&[status]), later()).is_none());
    }

    #[test]
    fn too_much_is_not_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let traces = vec![Trace::Content(dir.path().join("a")); MAX_TRACES + 1];
        assert!(Fingerprint::take(traces, later()).is_none());
    }
}
