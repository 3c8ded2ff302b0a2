//! Removes old items: the trash, outputs of tools, and recorded changes of runs.
//!
//! Invariants: an item's age is the number of dates with a sweep since it was found, so
//! that a wrong clock costs one day at most; an item that cannot be removed keeps its
//! age.

use crabtalk_config::Home;
use crabtalk_files::{Existing, if_there, read, write};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// Interval between sweeps.
pub(crate) const BETWEEN: Duration = Duration::from_secs(24 * 60 * 60);

/// Largest record of sweeps: a hundred thousand items.
const MAX_BYTES: u64 = 16 << 20;

/// The record of when each item was first found, in `state/swept.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Account {
    /// The date of the last sweep.
    day: Option<Date>,
    /// Number of dates with a sweep.
    days: u64,
    /// The value of `days` at which each item was first found.
    items: BTreeMap<String, u64>,
}

impl Account {
    fn load(path: &Path) -> Self {
        let loaded = if_there(read(path, MAX_BYTES));
        let parsed = loaded.map_err(|e| e.to_string()).and_then(|bytes| {
            let parse = |bytes: Vec<u8>| serde_json::from_slice(&bytes);
            bytes.map(parse).transpose().map_err(|e| e.to_string())
        });
        parsed
            .unwrap_or_else(|error| {
                // All items start with age 0 again.
                tracing::warn!(file = %path.display(), error, "the account of the trash cannot be read; all items start with age 0");
                None
            })
            .unwrap_or_default()
    }

    /// Counts a new date; an earlier date does not count.
    fn begin(&mut self, today: Date) {
        if self.day.is_none_or(|day| day < today) {
            self.days += 1;
        }
        self.day = Some(today);
    }

    /// Whether an item has reached an age. Adds a new item.
    fn is_old(&mut self, item: &str, days: u64) -> bool {
        let since = *self.items.entry(item.to_owned()).or_insert(self.days);
        self.days.saturating_sub(since) >= days
    }
}

/// Removes items that are `days` old; none if `days` is 0.
pub(crate) fn sweep(home: &Home, today: Date, days: u64) {
    if days == 0 {
        return;
    }
    let path = home.state_dir().join("swept.json");
    let mut account = Account::load(&path);
    account.begin(today);
    let mut kept = BTreeMap::new();
    let mut removed = 0_u64;
    for (name, item) in items(home) {
        if account.is_old(&name, days) {
            match remove(&item) {
                Ok(()) => {
                    removed += 1;
                    continue;
                }
                Err(error) => {
                    tracing::warn!(item = %item.display(), %error, "an old item cannot be removed");
                }
            }
        }
        if let Some(since) = account.items.get(&name) {
            kept.insert(name, *since);
        }
    }
    account.items = kept;
    let emptied = folders(&outputs(home))
        .into_iter()
        .chain(folders(&changes(home)));
    for folder in emptied {
        // Removes only empty folders.
        let _ = fs::remove_dir(folder);
    }
    let text = serde_json::to_vec(&account).expect("names and numbers always serialise");
    if let Err(error) = write(&path, &text, Existing::Replace) {
        tracing::warn!(file = %path.display(), %error, "the account of the trash cannot be written");
    }
    if removed > 0 {
        tracing::info!(removed, "swept the trash and old outputs");
    }
}

fn outputs(home: &Home) -> PathBuf {
    home.state_dir().join("outputs")
}

/// The items by a stable name: those in the trash, each output of a conversation,
/// outputs of removed conversations, and the changes of each run.
fn items(home: &Home) -> Vec<(String, PathBuf)> {
    let mut items = Vec::new();
    let mut add = |prefix: &str, path: PathBuf| {
        if let Some(name) = path.file_name() {
            items.push((format!("{prefix}/{}", name.to_string_lossy()), path));
        }
    };
    for path in entries(&home.trash_dir()) {
        add("trash", path);
    }
    for folder in entries(&outputs(home)) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if name.contains('.') {
            // Moved here when its conversation was removed.
            add("outputs", folder);
            continue;
        }
        let prefix = format!("outputs/{name}");
        for path in entries(&folder) {
            add(&prefix, path);
        }
    }
    for folder in entries(&changes(home)) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if name == "settings" {
            continue;
        }
        let prefix = format!("changes/{name}");
        for path in entries(&folder) {
            add(&prefix, path);
        }
    }
    items
}

/// The changes of runs: a folder for each conversation with one for each run.
fn changes(home: &Home) -> PathBuf {
    home.state_dir().join("changes")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    entries(folder).into_iter().filter(is_folder).collect()
}

/// Removes a file, a link, or a folder with its content.
fn remove(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path(), None).unwrap().create().unwrap();
        fs::create_dir_all(home.trash_dir().join("a.jsonl.outputs")).unwrap();
        fs::write(home.trash_dir().join("a.jsonl.outputs/bash-1.txt"), "x").unwrap();
        fs::write(home.trash_dir().join("a.jsonl"), "x").unwrap();
        fs::create_dir_all(outputs(&home).join("0a1b")).unwrap();
        fs::write(outputs(&home).join("0a1b/bash-2.txt"), "x").unwrap();
        fs::create_dir_all(changes(&home).join("settings/git")).unwrap();
        (dir, home)
    }

    fn left(home: &Home) -> usize {
        items(home).len()
    }

    fn day(number: i64) -> Date {
        let first = Date::constant(2026, 1, 1);
        first.checked_add(number.days()).unwrap()
    }

    #[test]
    fn old_items_are_removed_and_new_ones_kept() {
        let (_dir, home) = home();
        for number in 0..30 {
            sweep(&home, day(number), 30);
            assert_eq!(left(&home), 3, "day {number}");
        }
        fs::write(home.trash_dir().join("b.jsonl"), "x").unwrap();
        sweep(&home, day(30), 30);
        assert_eq!(left(&home), 1);
        assert!(home.trash_dir().join("b.jsonl").exists());
        assert!(!outputs(&home).join("0a1b").exists(), "it is empty");
    }

    #[test]
    fn wrong_clock_removes_nothing() {
        let (_dir, home) = home();
        sweep(&home, day(0), 30);
        for _ in 0..10 {
            sweep(&home, day(800), 30);
        }
        // The clock is corrected and wrong again.
        for number in [1, 800, 2, 3] {
            sweep(&home, day(number), 30);
        }
        // The clock goes back repeatedly.
        for number in (3..60).rev() {
            sweep(&home, day(number), 30);
        }
        assert_eq!(left(&home), 3);
    }

    #[test]
    fn zero_days_remove_nothing_and_a_lost_account_starts_over() {
        let (_dir, home) = home();
        for number in 0..100 {
            sweep(&home, day(number), 0);
        }
        assert_eq!(left(&home), 3);
        for number in 0..29 {
            sweep(&home, day(number), 30);
        }
        fs::write(home.state_dir().join("swept.json"), "no JSON").unwrap();
        for number in 29..59 {
            sweep(&home, day(number), 30);
        }
        assert_eq!(left(&home), 3);
    }
}
