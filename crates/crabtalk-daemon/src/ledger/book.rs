//! One day's calls: `state/ledger/2026-11-21.jsonl`, a line for each.
//!
//! Invariants: sums in memory are those of the lines; a line that was torn by
//! a crash is skipped and costs no other; a file that has grown is replaced by
//! one of the same sums with fewer lines.

use crabtalk_config::read_limited;
use crabtalk_domain::{Cost, Spent};
use jiff::civil::Date;
use jiff::{ToSpan, Zoned};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Days that are kept: a year, and the month in which somebody looks at it.
const KEEP_DAYS: i64 = 400;

/// Size at which a day's lines are added up: some twenty thousand calls.
const FULL_BYTES: u64 = 4 * 1024 * 1024;

/// Largest file that is read: one that is added up stays far below.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Sums of a day that are told apart; what comes later is counted without its
/// conversation, since a gateway's senders have no end.
const MAX_CELLS: usize = 4096;

/// Runs that are told apart, for whoever wants to know what the last ones cost.
const MAX_RUNS: usize = 100;

/// Calls, added up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Sum {
    pub(crate) calls: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    pub(crate) cache_hit_tokens: u64,
    pub(crate) money: f64,
    /// Tokens for which no price is known.
    pub(crate) unpriced_tokens: u64,
}

impl Sum {
    pub(crate) fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.calls, other.calls);
        add(&mut self.prompt_tokens, other.prompt_tokens);
        add(&mut self.completion_tokens, other.completion_tokens);
        add(&mut self.cache_hit_tokens, other.cache_hit_tokens);
        add(&mut self.unpriced_tokens, other.unpriced_tokens);
        // A figure that is none, from a file that was edited, would stick.
        if other.money.is_finite() {
            self.money += other.money;
        }
    }
}

/// What a sum is told apart by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Cell {
    /// The agent that spoke.
    pub(super) speaker: String,
    /// The conversation's agent.
    pub(super) agent: String,
    /// The conversation's sender; empty for those beyond the bound.
    #[serde(default)]
    pub(super) sender: String,
    #[serde(default)]
    pub(super) provider: String,
    #[serde(default)]
    pub(super) model: String,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    at: String,
    #[serde(flatten)]
    cell: Cell,
    /// 0 where several runs are added up.
    #[serde(default)]
    run: u64,
    #[serde(flatten)]
    sum: Sum,
}

impl Entry {
    pub(super) fn new(now: &Zoned, spent: &Spent<'_>, cost: &Cost) -> Self {
        let usage = spent.usage;
        Self {
            at: format!("{:.3}", now.timestamp()),
            cell: Cell {
                speaker: spent.agent.name.to_string(),
                agent: spent.key.agent.to_string(),
                sender: spent.key.sender.to_string(),
                provider: spent.provider.to_owned(),
                model: spent.model.to_owned(),
            },
            run: spent.run,
            sum: Sum {
                calls: 1,
                prompt_tokens: usage.prompt_tokens,
                completion_tokens: usage.completion_tokens,
                cache_hit_tokens: usage.cache_hit_tokens.unwrap_or(0),
                money: cost.money.unwrap_or(0.0),
                unpriced_tokens: cost.unpriced_tokens,
            },
        }
    }
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunKey {
    pub(super) agent: String,
    pub(super) sender: String,
    pub(super) run: u64,
}

/// The sums of a day.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub(super) cells: BTreeMap<Cell, Sum>,
    /// The last ones, oldest first.
    pub(super) runs: VecDeque<(RunKey, Sum)>,
    pub(super) total: Sum,
    pub(super) speakers: BTreeMap<String, Sum>,
}

impl Sums {
    fn add(&mut self, mut entry: Entry) {
        let sum = entry.sum;
        self.total.add(&sum);
        let speaker = self.speakers.entry(entry.cell.speaker.clone());
        speaker.or_default().add(&sum);
        self.add_to_run(&entry);
        if self.cells.len() >= MAX_CELLS && !self.cells.contains_key(&entry.cell) {
            entry.cell.sender.clear();
        }
        self.cells.entry(entry.cell).or_default().add(&sum);
    }

    fn add_to_run(&mut self, entry: &Entry) {
        if entry.run == 0 {
            return;
        }
        let is_it = |key: &RunKey| {
            key.run == entry.run && key.sender == entry.cell.sender && key.agent == entry.cell.agent
        };
        if let Some((_, sum)) = self.runs.iter_mut().rev().find(|(key, _)| is_it(key)) {
            return sum.add(&entry.sum);
        }
        if self.runs.len() >= MAX_RUNS {
            self.runs.pop_front();
        }
        let key = RunKey {
            agent: entry.cell.agent.clone(),
            sender: entry.cell.sender.clone(),
            run: entry.run,
        };
        self.runs.push_back((key, entry.sum));
    }
}

/// The file of a day.
fn path(folder: &Path, date: Date) -> PathBuf {
    folder.join(format!("{date}.jsonl"))
}

/// What was read of a day.
#[derive(Default)]
struct Read {
    sums: Sums,
    bytes: u64,
    /// Whether the file ends within a line.
    torn: bool,
    /// Whether there is more in it than is known here.
    unreadable: bool,
}

fn read(path: &Path) -> Read {
    let text = match read_limited(path, MAX_BYTES) {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => {
            tracing::error!(error = %error.with_causes(), "what was spent that day is not known");
            return Read {
                torn: true,
                unreadable: true,
                ..Read::default()
            };
        }
    };
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
        unreadable: false,
    }
}

/// The sums of a day that is over.
pub(super) fn read_day(folder: &Path, date: Date) -> Sums {
    read(&path(folder, date)).sums
}

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
        forget_old(folder, date);
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
        let mut line = serde_json::to_vec(&entry).expect("string keys and numbers are JSON");
        line.push(b'\n');
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
            let open = OpenOptions::new()
                .create(true)
                .append(true)
                .mode(0o600)
                .open(path(&self.folder, self.date))?;
            self.file = Some(open);
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
        if self.read.unreadable {
            return Ok(());
        }
        self.file = None;
        let mut text = Vec::new();
        for (cell, sum) in &self.read.sums.cells {
            let entry = Entry {
                at: String::new(),
                cell: cell.clone(),
                run: 0,
                sum: *sum,
            };
            serde_json::to_writer(&mut text, &entry)?;
            text.push(b'\n');
        }
        let path = path(&self.folder, self.date);
        let aside = path.with_extension("new");
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&aside)?;
        file.write_all(&text)?;
        fs::rename(&aside, &path)?;
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

fn forget_old(folder: &Path, today: Date) {
    let Ok(oldest) = today.checked_sub(KEEP_DAYS.days()) else {
        return;
    };
    let Ok(files) = fs::read_dir(folder) else {
        return;
    };
    for file in files.flatten() {
        let name = file.file_name();
        let date = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
        let date = date.and_then(|date| date.parse::<Date>().ok());
        if date.is_some_and(|date| date < oldest) {
            // Another day will do.
            let _ = fs::remove_file(file.path());
        }
    }
}
