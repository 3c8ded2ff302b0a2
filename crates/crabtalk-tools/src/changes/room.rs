//! Keeps what is kept of changes within a budget; the oldest run goes first.

use super::Inner;
use super::found::Found;
use crabtalk_domain::ConversationKey;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Bytes of all that is kept: weeks of ordinary work.
const MAX_BYTES: u64 = 512 << 20;

/// Bytes that are written between two counts of them.
pub(super) const COUNT_EVERY: u64 = 32 << 20;

/// Free space that is left to others, the conversations' logs before all.
const LEAVE_FREE: u64 = 256 << 20;

impl Inner {
    /// Whether the disk has room for more than the logs.
    pub(super) fn has_room(&self) -> Result<(), String> {
        let there = self.root.ancestors().find(|folder| folder.exists());
        let stat = rustix::fs::statvfs(there.unwrap_or(&self.home));
        match stat {
            Ok(stat) if stat.f_bavail.saturating_mul(stat.f_frsize) < LEAVE_FREE => {
                Err("the disk is nearly full, and contents are not kept".to_owned())
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Counts what was kept, and makes room once there is much of it.
    pub(super) fn count(&self, found: &Found, run: &(ConversationKey, u64)) {
        let size = match found {
            Found::File { size, .. } => *size,
            Found::Nothing | Found::Link { .. } | Found::Unkept { .. } => 0,
        };
        let written = self.written.fetch_add(size, Ordering::Relaxed) + size;
        if written >= COUNT_EVERY {
            self.written.store(0, Ordering::Relaxed);
            let own = self.journal(run);
            let in_use: Vec<PathBuf> = self
                .running()
                .iter()
                .map(|running| self.journal(&running.run).folder().to_owned())
                .chain([own.folder().to_owned()])
                .collect();
            make_room(&self.root, MAX_BYTES, &in_use);
        }
    }
}

/// Removes the oldest runs until what is kept takes three quarters of what it
/// may; nothing if it takes less than that.
pub(super) fn make_room(root: &Path, most: u64, in_use: &[PathBuf]) {
    let entries = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut runs = Vec::new();
    for run in entries(root).iter().flat_map(|folder| entries(folder)) {
        let Ok(changed) = run
            .join("changes.jsonl")
            .metadata()
            .and_then(|m| m.modified())
        else {
            continue;
        };
        runs.push((changed, bytes(&run), run));
    }
    let mut total: u64 = runs.iter().map(|(_, bytes, _)| bytes).sum();
    if total <= most {
        return;
    }
    runs.sort();
    for (_, bytes, run) in runs {
        if total <= most / 4 * 3 {
            return;
        }
        if !in_use.contains(&run) && std::fs::remove_dir_all(&run).is_ok() {
            total -= bytes;
        }
    }
}

/// Bytes below a folder.
fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
