//! The folders of output files, and their disk budget.
//!
//! Invariants: finished files stay within a budget, and the oldest are removed first;
//! no file is begun on a disk that is nearly full; an incomplete
//! output leaves no file.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Maximum number of output files per conversation.
const MAX_FILES: usize = 64;

/// Maximum bytes of all output files together: sixteen of the longest.
const MAX_BYTES: u64 = 1 << 30;

/// Free space required to begin a file: its maximum, and as much
/// for other data, especially conversation logs.
const NEEDED_FREE: u64 = 128 << 20;

/// All output files of a daemon.
#[derive(Debug)]
pub(crate) struct Shelves {
    root: PathBuf,
    most: u64,
    needed_free: u64,
    /// Bytes written since the budget was last enforced.
    written: AtomicU64,
}

struct Finished {
    modified: SystemTime,
    path: PathBuf,
    bytes: u64,
}

impl Shelves {
    /// The output files below `root`, in one folder per conversation.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self::with_limits(root, MAX_BYTES, NEEDED_FREE)
    }

    fn with_limits(root: PathBuf, most: u64, needed_free: u64) -> Self {
        Self {
            root,
            most,
            needed_free,
            // Files of earlier daemons count as well.
            written: AtomicU64::new(most),
        }
    }

    /// Creates a file in a conversation's folder after making room for it. Blocks.
    pub(super) fn start(&self, folder: &Path, prefix: &str) -> Result<(File, PathBuf), String> {
        let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed)?;
        self.check_disk()?;
        remove_oldest(files(folder).collect(), |count, _| count < MAX_FILES);
        // Checks after each quarter of the budget, so that not every file causes a scan.
        if self.written.load(Ordering::Relaxed) >= self.most / 4 {
            self.written.store(0, Ordering::Relaxed);
            let all = folders(&self.root).flat_map(|folder| files(&folder));
            remove_oldest(all.collect(), |_, bytes| bytes <= self.most / 4 * 3);
        }
        // Created with mode 0600.
        let made = tempfile::Builder::new()
            .prefix(prefix)
            .suffix(".txt")
            .tempfile_in(folder)
            .map_err(failed)?;
        made.keep().map_err(|e| failed(e.error))
    }

    /// Counts a complete output.
    pub(super) fn finish(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Stores a complete output. Blocks.
    pub(crate) fn keep(
        &self,
        folder: &Path,
        prefix: &str,
        bytes: &[u8],
    ) -> Result<PathBuf, String> {
        let (mut file, path) = self.start(folder, prefix)?;
        if let Err(e) = file.write_all(bytes) {
            // Only the first error is reported.
            let _ = std::fs::remove_file(&path);
            return Err(format!("{}: {e}", path.display()));
        }
        self.finish(bytes.len() as u64);
        Ok(path)
    }

    fn check_disk(&self) -> Result<(), String> {
        let Ok(disk) = rustix::fs::statvfs(&self.root) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free < self.needed_free {
            return Err(format!(
                "the disk of {} has {} MiB left; make room",
                self.root.display(),
                free >> 20
            ));
        }
        Ok(())
    }
}

/// Removes the oldest files until `is_enough` accepts the number and bytes of the
/// rest. Skips files that cannot be removed.
fn remove_oldest(mut files: Vec<Finished>, is_enough: impl Fn(usize, u64) -> bool) {
    files.sort_by_key(|file| file.modified);
    let mut count = files.len();
    let mut bytes = files.iter().map(|file| file.bytes).sum();
    for file in files {
        if is_enough(count, bytes) {
            return;
        }
        if std::fs::remove_file(&file.path).is_ok() {
            count -= 1;
            bytes -= file.bytes;
        }
    }
}

fn folders(root: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

fn files(folder: &Path) -> impl Iterator<Item = Finished> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let meta = entry.metadata().ok()?;
        Some(Finished {
            modified: meta.modified().ok()?,
            path: entry.path(),
            bytes: meta.len(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn set_age(path: &Path, seconds: u64) {
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let file = File::options().append(true).open(path).expect("is there");
        file.set_modified(then).expect("is ours");
    }

    #[test]
    fn conversation_keeps_its_newest_outputs() {
        let dir = tempfile::tempdir().expect("creates");
        let shelves = Shelves::with_limits(dir.path().into(), MAX_BYTES, 0);
        let folder = dir.path().join("a");
        let mut made = Vec::new();
        for at in 0..MAX_FILES as u64 + 5 {
            let path = shelves.keep(&folder, "bash-", b"x").expect("kept");
            set_age(&path, at);
            made.push(path);
        }
        let (gone, kept) = made.split_at(5);
        assert!(gone.iter().all(|path| !path.exists()), "the oldest go");
        assert!(kept.iter().all(|path| path.exists()));
    }

    #[test]
    fn all_outputs_stay_within_their_budget() {
        const KIB: usize = 1 << 10;
        let dir = tempfile::tempdir().expect("creates");
        let most = 4 * KIB as u64;
        let keep = |shelves: &Shelves, folder: &str, bytes: usize| {
            let kept = shelves.keep(&dir.path().join(folder), "bash-", &vec![b'x'; bytes]);
            kept.expect("kept")
        };
        let before = Shelves::with_limits(dir.path().into(), most, 0);
        let old = keep(&before, "old", 3 * KIB);
        set_age(&old, 1);
        let shelves = Shelves::with_limits(dir.path().into(), most, 0);
        for at in 0..20 {
            let path = keep(&shelves, &at.to_string(), KIB);
            assert!(path.exists());
            set_age(&path, 2 + at);
            let all = folders(dir.path()).flat_map(|folder| files(&folder));
            let taken: u64 = all.map(|file| file.bytes).sum();
            assert!(taken <= most, "{taken} at {at}");
        }
        assert!(!old.exists());
    }

    #[test]
    fn nearly_full_disk_refuses_outputs() {
        let dir = tempfile::tempdir().expect("creates");
        let shelves = Shelves::with_limits(dir.path().into(), MAX_BYTES, u64::MAX);
        let folder = dir.path().join("a");
        let why = shelves.keep(&folder, "bash-", b"x").expect_err("no room");
        assert!(why.contains("MiB left; make room"), "{why}");
        assert_eq!(files(&folder).count(), 0);
    }
}
