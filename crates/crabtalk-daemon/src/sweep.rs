//! Empties the trash, and takes away outputs of tools, and what runs changed,
//! that grew old.
//!
//! Invariants: nothing goes on the word of the clock alone: an item's days are
//! those on which a daemon found it there, one a sweep at most, so that a clock
//! that is wrong for a while costs a day and nothing else; what cannot be read or
//! removed stays, and its days with it.

use crabtalk_config::Home;
use crabtalk_files::{Existing, if_there, read, write};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// From one sweep to the next: a day, since days are what is counted.
pub(crate) const BETWEEN: Duration = Duration::from_secs(24 * 60 * 60);

/// Largest account that is read: a hundred thousand items.
const MAX_BYTES: u64 = 16 << 20;

/// Which items were found when, in `state/swept.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Account {
    /// The date of the last sweep, as the clock said.
    day: Option<Date>,
    /// Days on which there was a sweep.
    days: u64,
    /// Items with the day on which each was found first.
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
                // Everything stays for all of its days once more.
                tracing::warn!(file = %path.display(), error, "the account of the trash begins anew");
                None
            })
            .unwrap_or_default()
    }

    /// Another day, if the clock says so; a clock that goes back counts none.
    fn begin(&mut self, today: Date) {
        if self.day.is_none_or(|day| day < today) {
            self.days += 1;
        }
        self.day = Some(today);
    }

    /// Whether an item has been there for so many days; a new one is noted.
    fn is_old(&mut self, item: &str, days: u64) -> bool {
        let since = *self.items.entry(item.to_owned()).or_insert(self.days);
        self.days.saturating_sub(since) >= days
    }
}

/// Sweeps once: what was found on so many days goes. 0 days: nothing ever does.
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
                    tracing::warn!(item = %item.display(), %error, "it stays for now");
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
        // Goes if it is empty.
        let _ = fs::remove_dir(folder);
    }
    let text = serde_json::to_vec(&account).expect("names and numbers always serialise");
    if let Err(error) = write(&path, &text, Existing::Replace) {
        tracing::warn!(file = %path.display(), %error, "the days of the trash are not counted");
    }
    if removed > 0 {
        tracing::info!(removed, "swept the trash and old outputs");
    }
}

fn outputs(home: &Home) -> PathBuf {
    home.state_dir().join("outputs")
}

/// What may be swept, by a name that stays: whatever is in the trash, each
/// output of a conversation, outputs that went with theirs, and what a run
/// changed.
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
            // Set aside when its conversation was removed.
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

/// What runs changed, a folder for each run in one for each conversation.
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

/// Removes a file, a link, or a folder with all that is in it.
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
    fn what_was_there_for_its_days_goes_and_what_is_new_stays() {
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
    fn a_clock_that_is_wrong_takes_nothing() {
        let (_dir, home) = home();
        sweep(&home, day(0), 30);
        for _ in 0..10 {
            sweep(&home, day(800), 30);
        }
        // It is set right, and wrong once more.
        for number in [1, 800, 2, 3] {
            sweep(&home, day(number), 30);
        }
        // It is put back again and again.
        for number in (3..60).rev() {
            sweep(&home, day(number), 30);
        }
        assert_eq!(left(&home), 3);
    }

    #[test]
    fn without_days_nothing_ever_goes_and_a_lost_account_begins_anew() {
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
