//! Where whole outputs lie, and how much of the disk they take.
//!
//! Invariants: all outputs together stay within a budget, and are no reason
//! for the disk to be full; the oldest go first; a file that is still written
//! stays; what could not be kept whole leaves nothing.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Whole outputs kept per conversation; the oldest go first.
const MAX_FILES: usize = 64;

/// Bytes of all whole outputs together: sixteen of the longest.
const MAX_BYTES: u64 = 1 << 30;

/// Free space that is left to others, the conversations' logs before all.
const LEAVE_FREE: u64 = 64 << 20;

/// How much an output takes at a time.
const BLOCK: u64 = 1 << 20;

/// All outputs of a daemon.
#[derive(Debug)]
pub(crate) struct Shelves {
    root: PathBuf,
    most: u64,
    leave_free: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes of finished files; `None` until they were counted.
    settled: Option<u64>,
    /// Bytes that files being written have taken.
    taken: u64,
    writing: HashSet<PathBuf>,
}

#[derive(Debug, Clone)]
pub(super) struct Output {
    pub(super) path: PathBuf,
    taken: u64,
}

impl Output {
    /// Bytes that it may come to have.
    pub(super) fn room(&self) -> u64 {
        self.taken
    }
}

struct Finished {
    modified: SystemTime,
    path: PathBuf,
    bytes: u64,
}

impl Shelves {
    /// Outputs below `root`, one folder for each conversation.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            most: MAX_BYTES,
            leave_free: LEAVE_FREE,
            state: Mutex::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn with_limits(root: PathBuf, most: u64, leave_free: u64) -> Self {
        Self {
            most,
            leave_free,
            ..Self::new(root)
        }
    }

    /// Makes a file in a conversation's folder. Blocks.
    pub(super) fn start(&self, folder: &Path, prefix: &str) -> io::Result<(File, Output)> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        self.make_room_for_one(folder);
        // Created with mode 0600.
        let made = tempfile::Builder::new()
            .prefix(prefix)
            .suffix(".txt")
            .tempfile_in(folder)?;
        let (file, path) = made.keep().map_err(|e| e.error)?;
        self.state().writing.insert(path.clone());
        Ok((file, Output { path, taken: 0 }))
    }

    /// Makes sure that a file may come to have so many bytes. Blocks.
    pub(super) fn grow(&self, output: &mut Output, bytes: u64) -> Result<(), String> {
        while output.taken < bytes {
            self.check_disk()?;
            let mut state = self.state();
            let mut settled = match state.settled {
                Some(settled) => settled,
                None => self.clear(&state.writing, u64::MAX),
            };
            if settled + state.taken + BLOCK > self.most {
                // A quarter at once, so that not each output counts them all.
                let keep = (self.most / 4 * 3).saturating_sub(state.taken);
                settled = self.clear(&state.writing, keep);
            }
            state.settled = Some(settled);
            if settled + state.taken + BLOCK > self.most {
                return Err(format!(
                    "all outputs may take {} MiB of the disk together, and others are being written",
                    self.most >> 20
                ));
            }
            state.taken += BLOCK;
            output.taken += BLOCK;
        }
        Ok(())
    }

    /// Keeps a whole output that is there already. Blocks.
    pub(crate) fn keep(
        &self,
        folder: &Path,
        prefix: &str,
        bytes: &[u8],
    ) -> Result<PathBuf, String> {
        let failed = |e: io::Error| format!("{}: {e}", folder.display());
        let (mut file, mut output) = self.start(folder, prefix).map_err(failed)?;
        let length = bytes.len() as u64;
        let written = self
            .grow(&mut output, length)
            .and_then(|()| file.write_all(bytes).map_err(failed));
        match written {
            Ok(()) => {
                self.finish(&output, length);
                Ok(output.path)
            }
            Err(why) => {
                self.discard(&output);
                Err(why)
            }
        }
    }

    /// A file is complete with so many bytes.
    pub(super) fn finish(&self, output: &Output, bytes: u64) {
        let mut state = self.state();
        state.writing.remove(&output.path);
        state.taken -= output.taken;
        if let Some(settled) = &mut state.settled {
            *settled += bytes;
        }
    }

    /// A file that cannot be completed goes. Blocks.
    pub(super) fn discard(&self, output: &Output) {
        // What cannot be removed was not kept whole all the same.
        let _ = std::fs::remove_file(&output.path);
        self.finish(output, 0);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Sums and a set of names, each changed in one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the disk has room beside what is left to others.
    fn check_disk(&self) -> Result<(), String> {
        let Ok(disk) = rustix::fs::statvfs(&self.root) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free < self.leave_free.saturating_add(BLOCK) {
            return Err(format!(
                "the disk of {} has {} MiB left; make room",
                self.root.display(),
                free >> 20
            ));
        }
        Ok(())
    }

    /// Removes the oldest until the rest takes no more than `keep`; returns
    /// what it takes. What cannot be removed is counted on.
    fn clear(&self, writing: &HashSet<PathBuf>, keep: u64) -> u64 {
        let mut finished: Vec<Finished> = folders(&self.root)
            .flat_map(|folder| files(&folder))
            .filter(|file| !writing.contains(&file.path))
            .collect();
        finished.sort_by_key(|file| file.modified);
        let mut bytes = finished.iter().map(|file| file.bytes).sum();
        for file in finished {
            if bytes <= keep {
                break;
            }
            if std::fs::remove_file(&file.path).is_ok() {
                bytes -= file.bytes;
            }
        }
        bytes
    }

    /// Removes the oldest of a conversation; what cannot be removed only takes
    /// room.
    fn make_room_for_one(&self, folder: &Path) {
        let mut files: Vec<Finished> = files(folder).collect();
        let excess = (files.len() + 1).saturating_sub(MAX_FILES);
        if excess == 0 {
            return;
        }
        files.sort_by_key(|file| file.modified);
        let mut state = self.state();
        files.retain(|file| !state.writing.contains(&file.path));
        for file in files.into_iter().take(excess) {
            if std::fs::remove_file(&file.path).is_ok()
                && let Some(settled) = &mut state.settled
            {
                *settled = settled.saturating_sub(file.bytes);
            }
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

    fn names(folder: &Path) -> usize {
        files(folder).count()
    }

    #[test]
    fn old_outputs_of_a_conversation_make_room() {
        let dir = tempfile::tempdir().expect("creates");
        let shelves = Shelves::new(dir.path().into());
        let folder = dir.path().join("a");
        let mut made = Vec::new();
        for at in 0..MAX_FILES as u64 + 5 {
            let (file, output) = shelves.start(&folder, "bash-").expect("made");
            let then = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
            file.set_modified(then).expect("is ours");
            shelves.finish(&output, 0);
            made.push(output.path);
        }
        assert_eq!(names(&folder), MAX_FILES);
        let (gone, kept) = made.split_at(5);
        assert!(gone.iter().all(|path| !path.exists()), "the oldest go");
        assert!(kept.iter().all(|path| path.exists()));
    }

    /// Writes a whole output of so many bytes.
    fn keep(shelves: &Shelves, folder: &Path, bytes: u64) -> Result<PathBuf, String> {
        let (mut file, mut output) = shelves.start(folder, "bash-").expect("made");
        shelves
            .grow(&mut output, bytes)
            .inspect_err(|_| shelves.discard(&output))?;
        file.write_all(&vec![b'x'; usize::try_from(bytes).expect("small")])
            .expect("written");
        shelves.finish(&output, bytes);
        Ok(output.path)
    }

    #[test]
    fn all_outputs_together_stay_within_their_budget() {
        let dir = tempfile::tempdir().expect("creates");
        // Something from before this daemon's start counts as well.
        let old = dir.path().join("old");
        let before = Shelves::with_limits(dir.path().into(), 4 * BLOCK, 0);
        keep(&before, &old, 3 * BLOCK).expect("fits");
        let shelves = Shelves::with_limits(dir.path().into(), 4 * BLOCK, 0);
        let taken = || -> u64 {
            let all = folders(dir.path()).flat_map(|folder| files(&folder));
            all.map(|file| file.bytes).sum()
        };
        for at in 0..20 {
            let folder = dir.path().join(at.to_string());
            let path = keep(&shelves, &folder, BLOCK).expect("the oldest made room");
            assert!(path.exists());
            assert!(taken() <= 4 * BLOCK, "{} at {at}", taken());
        }
        assert_eq!(names(&old), 0);
    }

    #[test]
    fn outputs_that_are_being_written_stay_and_keep_others_from_more() {
        let dir = tempfile::tempdir().expect("creates");
        let shelves = Shelves::with_limits(dir.path().into(), 4 * BLOCK, 0);
        let folder = dir.path().join("a");
        let (_, mut first) = shelves.start(&folder, "bash-").expect("made");
        shelves.grow(&mut first, 3 * BLOCK).expect("fits");
        let why = keep(&shelves, &folder, 2 * BLOCK).expect_err("too much");
        assert!(why.contains("may take 4 MiB"), "{why}");
        assert!(first.path.exists());
        assert_eq!(names(&folder), 1);
        shelves.discard(&first);
        keep(&shelves, &folder, 2 * BLOCK).expect("room again");
    }

    #[test]
    fn a_disk_that_is_nearly_full_is_left_alone() {
        let dir = tempfile::tempdir().expect("creates");
        let shelves = Shelves::with_limits(dir.path().into(), MAX_BYTES, u64::MAX);
        let folder = dir.path().join("a");
        let why = keep(&shelves, &folder, 1).expect_err("no room");
        assert!(why.contains("MiB left; make room"), "{why}");
        assert_eq!(names(&folder), 0);
    }
}
