//! The budget of stored contents; the least recently changed run is removed first.

use super::Inner;
use super::found::PathState;
use crabtalk_domain::ConversationKey;
use std::path::Path;
use std::sync::atomic::Ordering;
use tokio::runtime::Handle;

/// Maximum bytes of all stored contents: weeks of ordinary work.
const MAX_BYTES: u64 = 512 << 20;

/// Bytes written between two counts of the stored contents.
pub(super) const COUNT_EVERY: u64 = 32 << 20;

/// Free space reserved for other data, especially conversation logs.
const LEAVE_FREE: u64 = 256 << 20;

impl Inner {
    /// Whether the disk has more free space than the reserve.
    pub(super) fn has_room(&self) -> Result<(), String> {
        let there = self.root.ancestors().find(|folder| folder.exists());
        let stat = rustix::fs::statvfs(there.unwrap_or(&self.home));
        match stat {
            Ok(stat) if stat.f_bavail.saturating_mul(stat.f_frsize) < LEAVE_FREE => {
                Err("the disk is nearly full, so that contents are not kept".to_owned())
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Counts a stored content, and makes room after [`COUNT_EVERY`] bytes. Blocks.
    pub(super) fn count(&self, found: &PathState, run: &(ConversationKey, u64)) {
        let size = match found {
            PathState::File { size, .. } => *size,
            PathState::Nothing | PathState::Link { .. } | PathState::Unkept { .. } => 0,
        };
        let written = self.written.fetch_add(size, Ordering::Relaxed) + size;
        if written < COUNT_EVERY {
            return;
        }
        self.written.store(0, Ordering::Relaxed);
        let mut in_use: Vec<_> = self.running().iter().map(|r| r.run.clone()).collect();
        in_use.push(run.clone());
        if let Err(why) = self.make_room(MAX_BYTES, &in_use) {
            tracing::warn!(why, "old changes of runs cannot be removed");
        }
    }

    /// If the stored contents exceed `most`, removes the oldest runs until three quarters
    /// of it are used.
    pub(super) fn make_room(
        &self,
        most: u64,
        in_use: &[(ConversationKey, u64)],
    ) -> Result<(), String> {
        let runs = Handle::current().block_on(self.port.by_age());
        let mut sized = Vec::new();
        for run in runs.map_err(|e| e.to_string())? {
            let journal = self.journal(&run);
            if journal.folder().is_dir() {
                sized.push((bytes(journal.folder()), run, journal));
            } else {
                journal.remove()?;
            }
        }
        let mut total: u64 = sized.iter().map(|(bytes, ..)| bytes).sum();
        if total <= most {
            return Ok(());
        }
        for (bytes, run, journal) in sized {
            if total <= most / 4 * 3 {
                break;
            }
            if !in_use.contains(&run) && std::fs::remove_dir_all(journal.folder()).is_ok() {
                journal.remove()?;
                total -= bytes;
            }
        }
        Ok(())
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
