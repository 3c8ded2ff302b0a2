//! One day's calls: `state/ledger/2026-11-21.jsonl`, a line for each.
//!
//! Invariants: a line that was torn by a crash is skipped and costs no other; a
//! file that has grown is replaced by one of the same sums and the same last runs
//! with fewer lines. Everything here may wait for the disk.

use super::sums::{Entry, Sums};
use crabtalk_config::read_limited;
use jiff::civil::Date;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Days with calls that are kept: a year, and the month in which somebody looks
/// at it.
const KEEP_DAYS: usize = 400;

/// How the file of a day ends.
const SUFFIX: &str = ".jsonl";

/// Size at which a day's lines are added up: some twenty thousand calls.
const FULL_BYTES: u64 = 4 * 1024 * 1024;

/// Largest file that is read: one that is added up stays far below.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

fn push_line(text: &mut Vec<u8>, entry: &Entry) {
    serde_json::to_writer(&mut *text, entry).expect("string keys and numbers are JSON");
    text.push(b'\n');
}

/// The file of a day.
fn path(folder: &Path, date: Date) -> PathBuf {
    folder.join(format!("{date}{SUFFIX}"))
}

/// What was read of a day.
#[derive(Default)]
pub(super) struct Read {
    pub(super) sums: Sums,
    bytes: u64,
    torn: bool,
    /// Whether there is no file.
    pub(super) absent: bool,
    /// Why more may be in it than is known here.
    pub(super) unreadable: Option<String>,
}

fn read(path: &Path) -> Read {
    match read_limited(path, MAX_BYTES) {
        Ok(Some(text)) => parse(path, &text),
        Ok(None) => Read {
            absent: true,
            ..Read::default()
        },
        Err(error) => {
            let error = error.with_causes();
            tracing::error!(error, "what was spent that day is not known");
            Read {
                torn: true,
                unreadable: Some(error),
                ..Read::default()
            }
        }
    }
}

fn parse(path: &Path, text: &str) -> Read {
    let mut sums = Sums::default();
    let mut reserved = BTreeMap::new();
    let mut broken = 0_u64;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str::<Entry>(line) {
            Ok(entry) if entry.reserves != 0 => drop(reserved.insert(entry.reserves, entry)),
            Ok(entry) => {
                reserved.remove(&entry.settles);
                sums.add(entry);
            }
            Err(_) => broken += 1,
        }
    }
    // A crash cut these calls off: what they used is unknown, and counts in full.
    for (_, mut entry) in reserved {
        entry.reserves = 0;
        sums.add(entry);
    }
    if broken > 0 {
        tracing::warn!(file = %path.display(), lines = broken, "lines of the ledger are broken and not counted");
    }
    Read {
        sums,
        bytes: text.len() as u64,
        torn: !text.is_empty() && !text.ends_with('\n'),
        ..Read::default()
    }
}

/// The sums of a day that is over.
pub(super) fn read_day(folder: &Path, date: Date) -> Sums {
    read(&path(folder, date)).sums
}

/// Room for a line.
const LINE_BYTES: usize = 256;

/// A day's file, open for more.
pub(super) struct Book {
    folder: PathBuf,
    date: Date,
    file: Option<File>,
    bytes: u64,
    /// Whether the file ends within a line.
    torn: bool,
    /// Whether there may be more in it than is known.
    unreadable: bool,
    full_at: u64,
}

impl Book {
    /// Opens the file of a day, and says what is in it.
    pub(super) fn open(folder: &Path, date: Date) -> (Self, Read) {
        forget_old(folder);
        let read = read(&path(folder, date));
        let book = Self {
            folder: folder.to_owned(),
            date,
            file: None,
            bytes: read.bytes,
            torn: read.torn,
            unreadable: read.unreadable.is_some(),
            full_at: FULL_BYTES,
        };
        (book, read)
    }

    pub(super) fn date(&self) -> Date {
        self.date
    }

    /// Whether its lines had better be added up.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= self.full_at
    }

    pub(super) fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = Vec::with_capacity(LINE_BYTES);
        push_line(&mut line, entry);
        if self.file.is_none() {
            crabtalk_files::create_folder(&self.folder)?;
            let open = crabtalk_files::open_to_append(&path(&self.folder, self.date));
            self.file = Some(open?);
        }
        let file = self.file.as_mut().expect("opened above");
        if self.torn {
            file.write_all(b"\n")?;
        }
        // Part of a line may be written when the disk is full.
        self.torn = true;
        file.write_all(&line)?;
        self.torn = false;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Replaces the lines by their sums. Not synced: a power cut may cost the
    /// figures of a day.
    pub(super) fn rewrite(&mut self, sums: &Sums) -> io::Result<()> {
        if self.unreadable {
            return Ok(());
        }
        self.file = None;
        let mut text = Vec::new();
        for (cell, sum) in sums.cells.sorted() {
            push_line(&mut text, &cell.line(sum));
        }
        for run in &sums.runs {
            push_line(&mut text, run);
        }
        let mut file = crabtalk_files::unfinished(&self.folder)?;
        file.write_all(&text)?;
        let renamed = file.persist(path(&self.folder, self.date));
        renamed.map_err(|e| e.error)?;
        self.bytes = text.len() as u64;
        self.full_at = FULL_BYTES.max(2 * self.bytes);
        self.torn = false;
        Ok(())
    }
}

/// Removes the oldest files beyond [`KEEP_DAYS`]. They are counted and not
/// dated: a clock that is wrong for once must not delete a day that was.
fn forget_old(folder: &Path) {
    let Ok(files) = fs::read_dir(folder) else {
        return;
    };
    let mut days: Vec<(Date, PathBuf)> = files
        .flatten()
        .filter_map(|file| {
            let name = file.file_name();
            let date = name.to_str()?.strip_suffix(SUFFIX)?.parse().ok()?;
            Some((date, file.path()))
        })
        .collect();
    days.sort_unstable();
    let beyond = days.len().saturating_sub(KEEP_DAYS);
    for (_, old) in &days[..beyond] {
        // Another day will do.
        let _ = fs::remove_file(old);
    }
}
