//! One day's calls: `state/ledger/2026-11-21.jsonl`, a line for each.
//!
//! Invariants: sums in memory are those of the lines; a line that was torn by
//! a crash is skipped and costs no other; a file that has grown is replaced by
//! one of the same sums and the same last runs with fewer lines.

use super::sums::{Entry, Sum, Sums};
use crabtalk_config::read_limited;
use jiff::civil::Date;
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
struct Read {
    sums: Sums,
    bytes: u64,
    /// Whether the file ends within a line.
    torn: bool,
    /// Why more may be in it than is known here.
    unreadable: Option<String>,
}

fn read(path: &Path) -> Read {
    match read_limited(path, MAX_BYTES) {
        Ok(text) => parse(path, &text.unwrap_or_default()),
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
    let mut broken = 0_u64;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str::<Entry>(line) {
            Ok(entry) => sums.add(entry),
            Err(_) => broken += 1,
        }
    }
    if broken > 0 {
        tracing::warn!(file = %path.display(), lines = broken, "lines of the ledger are broken and not counted");
    }
    Read {
        sums,
        bytes: text.len() as u64,
        torn: !text.is_empty() && !text.ends_with('\n'),
        unreadable: None,
    }
}

/// The sums of a day that is over.
pub(super) fn read_day(folder: &Path, date: Date) -> Sums {
    read(&path(folder, date)).sums
}

/// Room for a line.
const LINE_BYTES: usize = 256;

/// A day's book, open for more.
pub(super) struct Book {
    folder: PathBuf,
    date: Date,
    read: Read,
    file: Option<File>,
    full_at: u64,
}

impl Book {
    pub(super) fn open(folder: &Path, date: Date) -> Self {
        forget_old(folder);
        Self {
            read: read(&path(folder, date)),
            folder: folder.to_owned(),
            date,
            file: None,
            full_at: FULL_BYTES,
        }
    }

    pub(super) fn date(&self) -> Date {
        self.date
    }

    /// Why nobody knows what was spent before, if that is so. Looks again
    /// whether somebody mended the file.
    pub(super) fn unknown(&mut self) -> Option<&str> {
        if self.read.unreadable.is_some() {
            let path = path(&self.folder, self.date);
            match read_limited(&path, MAX_BYTES) {
                Ok(Some(text)) => self.read = parse(&path, &text),
                // Moved away: what was counted meanwhile is the beginning.
                Ok(None) => self.read.unreadable = None,
                Err(_) => {}
            }
        }
        self.read.unreadable.as_deref()
    }

    pub(super) fn sums(&self) -> &Sums {
        &self.read.sums
    }

    pub(super) fn total(&self) -> Sum {
        self.read.sums.total
    }

    pub(super) fn of_agent(&self, agent: &str) -> Sum {
        self.read
            .sums
            .speakers
            .get(agent)
            .copied()
            .unwrap_or_default()
    }

    /// Counts a call and writes it down.
    pub(super) fn add(&mut self, entry: Entry) {
        let mut line = Vec::with_capacity(LINE_BYTES);
        push_line(&mut line, &entry);
        self.read.sums.add(entry);
        let written = self.append(&line).and_then(|()| {
            if self.read.bytes < self.full_at {
                return Ok(());
            }
            self.rewrite()
        });
        if let Err(error) = written {
            tracing::error!(
                %error,
                folder = %self.folder.display(),
                "cannot write down what was spent; it counts until a restart"
            );
        }
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            fs::create_dir_all(&self.folder)?;
            let open = crabtalk_files::open_to_append(&path(&self.folder, self.date));
            self.file = Some(open?);
        }
        let file = self.file.as_mut().expect("opened above");
        if self.read.torn {
            file.write_all(b"\n")?;
        }
        // Part of a line may be written when the disk is full.
        self.read.torn = true;
        file.write_all(line)?;
        self.read.torn = false;
        self.read.bytes += line.len() as u64;
        Ok(())
    }

    /// Replaces the lines by their sums. Not synced: a power cut may cost the
    /// figures of a day, but waiting for a disk would hold up every stream.
    fn rewrite(&mut self) -> io::Result<()> {
        if self.read.unreadable.is_some() {
            return Ok(());
        }
        self.file = None;
        let mut text = Vec::new();
        for (cell, sum) in self.read.sums.cells.sorted() {
            push_line(&mut text, &cell.line(sum));
        }
        for run in &self.read.sums.runs {
            push_line(&mut text, &run.line());
        }
        let mut file = crabtalk_files::unfinished(&self.folder)?;
        file.write_all(&text)?;
        let renamed = file.persist(path(&self.folder, self.date));
        renamed.map_err(|e| e.error)?;
        self.read.bytes = text.len() as u64;
        self.full_at = FULL_BYTES.max(2 * self.read.bytes);
        self.read.torn = false;
        Ok(())
    }

    /// The day is over.
    pub(super) fn close(mut self) {
        if let Err(error) = self.rewrite() {
            tracing::warn!(%error, day = %self.date, "the ledger's lines stay as they are");
        }
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
