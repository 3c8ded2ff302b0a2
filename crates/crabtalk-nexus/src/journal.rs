//! The log of events, which is also what a restart begins from.
//!
//! Invariants: append-only; what is appended together counts together or not
//! at all, and is on disk before anything is done about it; a whole state
//! beside it (`snapshot.json`) only shortens reading, and is of an earlier or
//! the same place of the log.

use crate::agent::Ms;
use crate::world::{Entry, Patch};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The log's name in its folder.
pub const EVENTS: &str = "events.jsonl";

const SNAPSHOT: &str = "snapshot.json";
const LOCK: &str = "lock";

/// Bytes of log until a whole state is written beside it: some ten thousand
/// entries, read in a moment.
const SNAPSHOT_EVERY: u64 = 4 * 1024 * 1024;

/// Largest whole state that is read: far above a team at work.
const MAX_SNAPSHOT: u64 = 256 * 1024 * 1024;

/// Longest line of the log that is read.
const MAX_LINE: u64 = 16 * 1024 * 1024;

/// Why the log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another NEXUS has it.
    #[error("another NEXUS runs in {}", .0.display())]
    Taken(PathBuf),
    /// Something failed with it.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// It does not hold what it should.
    #[error("{path}: {why}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { what, path, source }
}

#[derive(Serialize, Deserialize)]
struct Snapshot {
    /// The last entry that is in it.
    n: u64,
    /// Where the log goes on.
    offset: u64,
    set: Patch,
}

/// The log, open for appending. Only one can have it.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    file: File,
    length: u64,
    snapshot_at: u64,
    _lock: File,
}

impl Journal {
    /// Opens the log of a folder, and gives each patch in it, with its entry's
    /// number, to `take`.
    pub fn open(folder: &Path, mut take: impl FnMut(u64, Patch)) -> Result<Self, Error> {
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(folder).map_err(failed("create", folder))?;
        let lock = lock(folder)?;
        crabtalk_files::sweep(folder);
        let mut begin = 0;
        if let Some(snapshot) = read_snapshot(folder)? {
            begin = snapshot.offset;
            take(snapshot.n, snapshot.set);
        }
        let path = folder.join(EVENTS);
        let mut options = File::options();
        options.read(true).append(true).create(true).mode(0o600);
        let file = options.open(&path).map_err(failed("open", &path))?;
        let length = file.metadata().map_err(failed("look at", &path))?.len();
        if length < begin {
            return Err(Error::Broken {
                path,
                why: "it is shorter than the state beside it says".into(),
            });
        }
        let whole = read_from(&file, &path, begin, &mut take)?;
        if whole < length {
            cut(&file, &path, whole)?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            file,
            length: whole,
            snapshot_at: begin,
            _lock: lock,
        })
    }

    /// Appends what belongs together, and waits until it is on disk.
    pub fn append(&mut self, entries: &[Entry], patch: &Patch) -> Result<(), Error> {
        let Some((last, rest)) = entries.split_last() else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        for entry in rest {
            line(&mut bytes, entry, None);
        }
        line(&mut bytes, last, Some(patch));
        let path = self.folder.join(EVENTS);
        self.file
            .write_all(&bytes)
            .and_then(|()| self.file.sync_data())
            .map_err(failed("append to", &path))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Whether a whole state is worth its while.
    pub fn wants_snapshot(&self) -> bool {
        self.length - self.snapshot_at >= SNAPSHOT_EVERY
    }

    /// Writes the whole state as of now.
    pub fn snapshot(&mut self, n: u64, set: Patch) -> Result<(), Error> {
        let offset = self.length;
        let bytes = serde_json::to_vec(&Snapshot { n, offset, set }).expect("plain data is JSON");
        let path = self.folder.join(SNAPSHOT);
        crabtalk_files::write(&path, &bytes, crabtalk_files::Existing::Replace)
            .map_err(failed("write", &path))?;
        self.snapshot_at = offset;
        Ok(())
    }
}

fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(&path).map_err(failed("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Taken(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed("lock", &path)(error)),
    }
}

/// The whole state beside a log, if there is one.
fn read_snapshot(folder: &Path) -> Result<Option<Snapshot>, Error> {
    let path = folder.join(SNAPSHOT);
    let bytes = match crabtalk_files::read(&path, MAX_SNAPSHOT) {
        Ok(bytes) => bytes,
        Err(error) if error.is_absent() => return Ok(None),
        Err(error) => {
            let why = error.to_string();
            return Err(Error::Broken { path, why });
        }
    };
    match serde_json::from_slice(&bytes) {
        Ok(snapshot) => Ok(Some(snapshot)),
        // It is derived: the log alone has all of it.
        Err(_) => Ok(None),
    }
}

/// Reads batches from an offset: how far whole ones reach.
fn read_from(
    file: &File,
    path: &Path,
    begin: u64,
    take: &mut impl FnMut(u64, Patch),
) -> Result<u64, Error> {
    let mut reader = BufReader::new(file);
    let seek = reader.seek(SeekFrom::Start(begin));
    seek.map_err(failed("read", path))?;
    let (mut at, mut whole) = (begin, begin);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut bytes);
        let read = read.map_err(failed("read", path))?;
        if read == 0 || bytes.last() != Some(&b'\n') {
            return Ok(whole);
        }
        at += read as u64;
        let broken = |why: String| Error::Broken {
            path: path.to_owned(),
            why: format!("the line that ends at byte {at}: {why}"),
        };
        let mut value: Value = serde_json::from_slice(&bytes).map_err(|e| broken(e.to_string()))?;
        let Some(set) = value.get_mut("set").map(Value::take) else {
            continue;
        };
        let patch = serde_json::from_value(set).map_err(|e| broken(e.to_string()))?;
        take(value["n"].as_u64().unwrap_or_default(), patch);
        whole = at;
    }
}

/// Cuts off what was not appended whole, and keeps it beside.
fn cut(file: &File, path: &Path, whole: u64) -> Result<(), Error> {
    let torn = path.with_extension("torn");
    let mut rest = Vec::new();
    let mut reader = file;
    reader
        .seek(SeekFrom::Start(whole))
        .and_then(|_| reader.take(MAX_LINE).read_to_end(&mut rest))
        .map_err(failed("read", path))?;
    crabtalk_files::write(&torn, &rest, crabtalk_files::Existing::Replace)
        .map_err(failed("write", &torn))?;
    file.set_len(whole)
        .and_then(|()| file.sync_all())
        .map_err(failed("cut", path))
}

fn line(bytes: &mut Vec<u8>, entry: &Entry, patch: Option<&Patch>) {
    let mut value = serde_json::to_value(entry).expect("plain data is JSON");
    value["time"] = Value::String(time(entry.at));
    if let Some(patch) = patch {
        value["set"] = serde_json::to_value(patch).expect("plain data is JSON");
    }
    serde_json::to_writer(&mut *bytes, &value).expect("memory takes all");
    bytes.push(b'\n');
}

/// A time as people read it.
pub fn time(at: Ms) -> String {
    let at = i64::try_from(at).ok();
    let at = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    at.map_or_else(String::new, |at| at.to_string())
}

/// Reads the entries of a log, whoever writes it meanwhile. What is not read is
/// passed over: it is for people.
pub fn entries(folder: &Path, mut take: impl FnMut(Entry)) -> Result<(), Error> {
    let path = folder.join(EVENTS);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("open", &path)(error)),
    };
    for line in BufReader::new(file).lines() {
        let line = line.map_err(failed("read", &path))?;
        if let Ok(entry) = serde_json::from_str(&line) {
            take(entry);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::name::Name;

    fn patch(turns: u64) -> Patch {
        let mut agent = Agent::new(7);
        agent.meters.turns = turns;
        let mut patch = Patch::default();
        patch.agents.insert(Name::nexus(), agent);
        patch
    }

    fn entry(n: u64) -> Entry {
        Entry {
            n,
            why: "test".into(),
            ..Entry::default()
        }
    }

    fn turns(folder: &Path) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        Journal::open(folder, |n, patch| {
            found.push((n, patch.agents[&Name::nexus()].meters.turns));
        })
        .unwrap();
        found
    }

    /// Cut anywhere, a log holds what was appended whole and nothing of the rest.
    #[test]
    fn a_log_that_is_cut_anywhere_holds_whole_batches() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), |_, _| {}).unwrap();
        let mut ends: Vec<u64> = vec![0];
        for n in 1..4 {
            let batch = [entry(2 * n), entry(2 * n + 1)];
            journal.append(&batch, &patch(n)).unwrap();
            ends.push(journal.length);
        }
        drop(journal);
        let path = folder.path().join(EVENTS);
        let bytes = fs::read(&path).unwrap();
        let near = |length: &usize| ends.iter().any(|end| (*length as u64).abs_diff(*end) < 2);
        // Every cut near an end, some within: each costs the disk a sync.
        for length in (0..=bytes.len())
            .rev()
            .filter(|at| at % 97 == 0 || near(at))
        {
            fs::write(&path, &bytes[..length]).unwrap();
            let whole = ends.iter().filter(|end| **end <= length as u64).count() as u64 - 1;
            let expected: Vec<_> = (1..=whole).map(|n| (2 * n + 1, n)).collect();
            assert_eq!(turns(folder.path()), expected, "{length}");
            let left = fs::metadata(&path).unwrap().len();
            assert_eq!(left, ends[usize::try_from(whole).unwrap()]);
        }
    }

    #[test]
    fn a_snapshot_shortens_reading() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), |_, _| {}).unwrap();
        journal.append(&[entry(1)], &patch(1)).unwrap();
        journal.snapshot(1, patch(1)).unwrap();
        journal.append(&[entry(2)], &patch(2)).unwrap();
        drop(journal);
        assert_eq!(turns(folder.path()), [(1, 1), (2, 2)]);
        fs::write(folder.path().join(SNAPSHOT), "{").unwrap();
        assert_eq!(turns(folder.path()), [(1, 1), (2, 2)]);
        let mut all = Vec::new();
        entries(folder.path(), |entry| all.push(entry.n)).unwrap();
        assert_eq!(all, [1, 2]);
    }

    #[test]
    fn only_one_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let _journal = Journal::open(folder.path(), |_, _| {}).unwrap();
        let second = Journal::open(folder.path(), |_, _| {});
        assert!(matches!(second, Err(Error::Taken(_))));
    }
}
