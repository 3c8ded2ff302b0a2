//! The lines of what became of each due time, on disk: `state/cron/N.jsonl`.
//!
//! Invariants: a line is written whole or not at all, and synced; a file begins
//! with what all earlier ones say, so that the newest alone is enough for a
//! start; the oldest files go by their number, never by a date, since a clock
//! that is wrong for once must delete nothing; a run that has begun and not
//! ended is closed as interrupted when the books are opened again, until somebody
//! knows better: how it ended, or that it never began and goes on.

use crate::account::{Account, Ended, Fired, Line, Outcome, Skipped, Usage};
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Size at which a new file is begun: some ten thousand runs.
const FULL_BYTES: u64 = 4 * 1024 * 1024;

/// Files that are kept.
const KEEP_FILES: usize = 8;

/// Largest file that is read: one that is full, behind the accounts of more
/// entries than anybody has.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Lines that wait for a disk that takes none: an end for each run, for long.
const MAX_UNWRITTEN: usize = 10_000;

/// How a file ends.
const SUFFIX: &str = ".jsonl";

/// What the books say when they are opened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loaded {
    /// By entry.
    pub accounts: BTreeMap<u64, Account>,
    /// The last number that an entry got.
    pub last_id: u64,
    /// The last number that a run got.
    pub last_seq: u64,
    /// Runs that the last daemon did not end. They are closed by now.
    pub interrupted: Vec<Ended>,
    /// Lines that could not be read.
    pub broken: u64,
}

/// What became of a due time, or of a run that somebody wanted.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// A run, and how it ended if it has.
    Run(Box<Fired>, Option<Box<Ended>>),
    /// Due times that no run came of.
    Skipped(Skipped),
}

/// The books, open for more.
#[derive(Debug)]
pub struct Books {
    folder: PathBuf,
    number: u64,
    file: Option<File>,
    bytes: u64,
    /// Whether the file ends within a line.
    torn: bool,
    /// Lines that the disk did not take yet.
    unwritten: VecDeque<Line>,
}

impl Books {
    /// Opens the books and closes the runs that were open.
    ///
    /// # Errors
    /// A file that is there and cannot be read. Without knowing what fired,
    /// nothing may fire.
    pub fn open(folder: &Path, now: Timestamp) -> io::Result<(Self, Loaded)> {
        let mut files = files(folder)?;
        let mut books = Self {
            folder: folder.to_owned(),
            number: files.pop().unwrap_or(1),
            file: None,
            bytes: 0,
            torn: false,
            unwritten: VecDeque::new(),
        };
        let text = read(&books.path(books.number))?;
        books.bytes = text.len() as u64;
        books.torn = !text.is_empty() && !text.ends_with(b"\n");
        let mut loaded = Loaded::default();
        for line in lines(&text) {
            match line {
                Some(line) => loaded.take(&line),
                None => loaded.broken += 1,
            }
        }
        if loaded.broken > 0 {
            // The numbers that it began with may be among them, and none is given twice.
            for older in files {
                let text = read(&books.path(older)).unwrap_or_default();
                for line in lines(&text).flatten() {
                    loaded.count(&line);
                }
            }
        }
        loaded.interrupted = loaded.open_runs(now);
        let closed: Vec<Line> = loaded
            .interrupted
            .iter()
            .cloned()
            .map(Line::Ended)
            .collect();
        closed.iter().for_each(|line| loaded.take(line));
        if !closed.is_empty() {
            // A disk that takes nothing now: they are written with what comes.
            let _ = books.append(&closed);
        }
        Ok((books, loaded))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:06}{SUFFIX}"))
    }

    /// Writes lines down, all or none, and lines before them that could not be
    /// written when their time was.
    pub fn append(&mut self, lines: &[Line]) -> io::Result<()> {
        let mut text = Vec::new();
        if self.torn {
            text.push(b'\n');
        }
        for line in self.unwritten.iter().chain(lines) {
            serde_json::to_writer(&mut text, line).map_err(io::Error::other)?;
            text.push(b'\n');
        }
        if text.is_empty() {
            return Ok(());
        }
        self.write(&text)?;
        self.unwritten.clear();
        Ok(())
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            crabtalk_files::create_folder(&self.folder)?;
            let file = crabtalk_files::open_to_append(&self.path(self.number));
            self.file = Some(file.map_err(io::Error::from)?);
        }
        let file = self.file.as_mut().expect("opened above");
        // Somebody may have cut it meanwhile; what is there counts.
        let before = file.metadata()?.len();
        let written = file.write_all(text).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Part of it may be there. What cannot be cut off is a broken line.
            self.torn = file.set_len(before).is_err();
            self.file = None;
            return Err(error);
        }
        self.torn = false;
        self.bytes = before + text.len() as u64;
        Ok(())
    }

    /// Keeps a line for when the disk takes it again: that a run is over is
    /// true whatever the disk says.
    pub fn keep(&mut self, line: Line) {
        if self.unwritten.len() < MAX_UNWRITTEN {
            self.unwritten.push_back(line);
        }
    }

    /// Whether it is time for a new file.
    pub fn is_full(&self) -> bool {
        self.bytes >= FULL_BYTES
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Begins a new file with what all lines so far say, and removes the oldest
    /// ones.
    pub fn turn(&mut self, summary: &[Line]) -> io::Result<()> {
        let mut text = Vec::new();
        for line in summary.iter().chain(&self.unwritten) {
            serde_json::to_writer(&mut text, line).map_err(io::Error::other)?;
            text.push(b'\n');
        }
        let number = self.number + 1;
        crabtalk_files::write(&self.path(number), &text, crabtalk_files::Existing::Refuse)?;
        self.number = number;
        self.file = None;
        self.torn = false;
        // What a summary takes does not fill a file again.
        self.bytes = 0;
        self.unwritten.clear();
        let files = files(&self.folder)?;
        for old in &files[..files.len().saturating_sub(KEEP_FILES)] {
            // Another time will do.
            let _ = fs::remove_file(self.path(*old));
        }
        Ok(())
    }

    /// Rows of one entry, or of all, the latest first.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn rows(folder: &Path, id: Option<u64>, limit: usize) -> io::Result<Vec<Row>> {
        let mut rows = Vec::new();
        let mut ended: HashMap<u64, Box<Ended>> = HashMap::new();
        let mut told = HashSet::new();
        for number in files(folder)?.into_iter().rev() {
            let text = read(&folder.join(format!("{number:06}{SUFFIX}")))?;
            let all: Vec<Line> = lines(&text).flatten().collect();
            for line in all.into_iter().rev() {
                if rows.len() == limit {
                    return Ok(rows);
                }
                if id.is_some() && line.id() != id {
                    continue;
                }
                match line {
                    // The last word on a run counts.
                    Line::Ended(end) => {
                        ended.entry(end.seq).or_insert_with(|| Box::new(end));
                    }
                    // One that a later daemon began is told once, as it stands there.
                    Line::Fired(fired) if !told.insert(fired.seq) => {
                        ended.remove(&fired.seq);
                    }
                    Line::Fired(fired) => {
                        let end = ended.remove(&fired.seq);
                        rows.push(Row::Run(Box::new(fired), end));
                    }
                    Line::Skipped(skipped) => rows.push(Row::Skipped(skipped)),
                    Line::Known { .. }
                    | Line::Paused { .. }
                    | Line::Removed { .. }
                    | Line::Account { .. }
                    | Line::Numbers { .. } => {}
                }
            }
        }
        Ok(rows)
    }
}

impl Loaded {
    /// Takes the numbers of a line, and nothing else of it.
    fn count(&mut self, line: &Line) {
        if let Line::Numbers { last_id, last_seq } = line {
            self.last_id = self.last_id.max(*last_id);
            self.last_seq = self.last_seq.max(*last_seq);
        }
        if let Line::Fired(fired) = line {
            self.last_seq = self.last_seq.max(fired.seq);
        }
        self.last_id = self.last_id.max(line.id().unwrap_or(0));
    }

    fn take(&mut self, line: &Line) {
        self.count(line);
        let Some(id) = line.id() else { return };
        if let Line::Removed { .. } = line {
            self.accounts.remove(&id);
        } else {
            self.accounts.entry(id).or_default().take(line);
        }
    }

    fn open_runs(&self, now: Timestamp) -> Vec<Ended> {
        let open = self.accounts.iter();
        open.filter_map(|(id, account)| {
            Some(Ended {
                id: *id,
                seq: account.open?,
                at: now,
                outcome: Outcome::Interrupted,
                code: 0,
                error: "the daemon ended before the run did".into(),
                ms: 0,
                usage: Usage::default(),
                run: None,
                refused: Vec::new(),
                unstarted: false,
            })
        })
        .collect()
    }
}

/// The numbers of the files that are there, in order.
fn files(folder: &Path) -> io::Result<Vec<u64>> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut numbers = Vec::new();
    for file in listed {
        let name = file?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let read = crabtalk_files::if_there(crabtalk_files::read(path, MAX_BYTES));
    read.map(Option::unwrap_or_default).map_err(io::Error::from)
}

/// Each line; `None` for one that cannot be read.
fn lines(text: &[u8]) -> impl Iterator<Item = Option<Line>> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .map(|line| serde_json::from_slice(line).ok())
}

#[cfg(test)]
mod tests;
