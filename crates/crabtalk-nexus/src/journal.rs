//! The log of events, which is also what a restart begins from.
//!
//! ```text
//! pages   the files of the log: the one that grows, and those before it
//! ```
//!
//! Invariants: append-only; what is appended together counts together or not
//! at all, and is on disk before anything is done about it; what could not be
//! appended leaves no trace; a page that is not the first one begins with the
//! whole state, so that a restart reads the last page alone; of pages there are
//! so many at most, each of about the same size; nothing is appended to a page
//! that somebody took away or changed, nor once the lock is another's.

mod pages;

use crate::clock::Ms;
pub use crate::config::Bounds;
use crate::world::{Entry, Patch};
use pages::Pages;
use serde_json::Value;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use pages::EVENTS;

const LOCK: &str = "lock";

/// How often a lock that somebody holds is tried again.
const LOCK_TRIES: u32 = 50;

/// Between two tries: together nobody notices them.
const LOCK_AGAIN: Duration = Duration::from_millis(10);

/// Longest line of the log that is written or read: far above the whole state of a
/// team, whose mail and tasks are bounded.
const MAX_LINE: u64 = if cfg!(test) {
    64 * 1024
} else {
    256 * 1024 * 1024
};

/// Why the log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("another NEXUS runs in {}", .0.display())]
    Taken(PathBuf),
    #[error("somebody removed {}, so that another NEXUS may run: this one ends", .0.display())]
    Unlocked(PathBuf),
    #[error("cannot {what} {path}: {source}")]
    Io {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{path}: a line of {bytes} bytes, and {MAX_LINE} can be read")]
    TooLong { path: PathBuf, bytes: usize },
    #[error(
        "{path}: {why}; mend that line, run the NEXUS that wrote it, or move the file away and \
         begin anew without what it holds"
    )]
    Broken { path: PathBuf, why: String },
}

impl Error {
    /// Whether it may pass by itself, or by what a person does: a disk that is
    /// full.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Taken(_) | Self::Unlocked(_) | Self::TooLong { .. } | Self::Broken { .. } => {
                false
            }
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::ReadOnlyFilesystem
                    | io::ErrorKind::FileTooLarge
            ),
        }
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { what, path, source }
}

/// The log, open for appending. Only one can have it.
#[derive(Debug)]
pub struct Journal {
    pages: Pages,
    file: File,
    bounds: Bounds,
    length: u64,
    /// How long the page has to be for the next one to begin.
    full_at: u64,
    /// Whether something behind `length` is left of what failed.
    is_torn: bool,
    /// Whether its page was put away and the next one could not begin.
    is_between: bool,
    /// Half of what is written arrives, and an error.
    #[cfg(test)]
    pub(crate) disk_is_full: std::sync::Arc<std::sync::atomic::AtomicBool>,
    lock: (PathBuf, File),
}

impl Journal {
    /// Opens the log of a folder, and gives each patch in it, with its entry's
    /// number and time, to `take`.
    pub fn open(
        folder: &Path,
        bounds: Bounds,
        mut take: impl FnMut(u64, Ms, Patch),
    ) -> Result<Self, Error> {
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(folder).map_err(failed("create", folder))?;
        let lock = lock(folder)?;
        crabtalk_files::sweep(folder);
        let pages = Pages::new(folder);
        pages.mend()?;
        // An earlier version kept the whole state there; the log has all of it.
        let _ = fs::remove_file(folder.join("snapshot.json"));
        let path = pages.current();
        let file = open(&path)?;
        let length = file.metadata().map_err(failed("look at", &path))?.len();
        if let (0, Some(n)) = (length, pages.last()?) {
            // Somebody took the page that grew away: numbers go on behind the others.
            take(n, 0, Patch::default());
        }
        let read = read(&file, &path, &mut take)?;
        if read.whole < length {
            cut(&file, &path, read.whole)?;
        }
        Ok(Self {
            pages,
            file,
            bounds,
            length: read.whole,
            full_at: read.state.saturating_add(bounds.page_bytes),
            is_torn: false,
            is_between: false,
            #[cfg(test)]
            disk_is_full: std::sync::Arc::default(),
            lock: (folder.join(LOCK), lock),
        })
    }

    /// Appends what belongs together, and waits until it is on disk. What fails
    /// may be tried again.
    pub fn append(&mut self, entries: &[Entry], patch: &Patch) -> Result<(), Error> {
        let Some((last, rest)) = entries.split_last() else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        for entry in rest {
            line(&mut bytes, entry, None);
        }
        line(&mut bytes, last, Some(patch));
        let path = self.pages.current();
        fits(&bytes, &path)?;
        if self.is_torn {
            let cut = self.file.set_len(self.length);
            cut.map_err(failed("append to", &path))?;
        }
        self.is_torn = true;
        self.write(&bytes).map_err(failed("append to", &path))?;
        self.is_torn = false;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        if self.disk_is_full.load(std::sync::atomic::Ordering::SeqCst) {
            self.file.write_all(&bytes[..bytes.len() / 2])?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write_all(bytes)?;
        self.file.sync_data()
    }

    /// Whether the page is as this left it. Somebody may have taken it away, or written
    /// into it, and what is appended then is lost with the next start.
    pub fn is_as_left(&self) -> Result<bool, Error> {
        let (lock, held) = &self.lock;
        if !is_at(lock, held) {
            return Err(Error::Unlocked(lock.clone()));
        }
        let length = self.file.metadata().map_or(0, |page| page.len());
        let is_whole = length == self.length || self.is_torn && length > self.length;
        Ok(is_whole && is_at(&self.pages.current(), &self.file))
    }

    /// Whether the next page is due.
    pub fn is_full(&self) -> bool {
        self.length >= self.full_at
    }

    /// Whether nothing can be appended any more: one page is put away and the
    /// next one has no name. The next start finds the way on.
    pub fn is_between(&self) -> bool {
        self.is_between
    }

    /// Begins the next page, for this reason, with the whole state as of entry `n`. If
    /// it fails this one goes on, and the next try is some way off, unless it
    /// [is between](Self::is_between) the two.
    pub fn turn(&mut self, why: &str, n: u64, at: Ms, state: &Patch) -> Result<(), Error> {
        self.full_at = self
            .length
            .saturating_add(self.bounds.page_bytes / 8)
            .max(1);
        let entry = Entry {
            n,
            at,
            why: why.into(),
            ..Entry::default()
        };
        let mut bytes = Vec::new();
        line(&mut bytes, &entry, Some(state));
        fits(&bytes, &self.pages.current())?;
        self.pages.write_next(&bytes)?;
        self.pages.put_away(n)?;
        self.is_between = true;
        self.pages.begin_next()?;
        self.file = open(&self.pages.current())?;
        self.is_between = false;
        self.is_torn = false;
        self.length = bytes.len() as u64;
        self.full_at = self.length.saturating_add(self.bounds.page_bytes);
        // Those that are too many are in nobody's way until the next time.
        let _ = self.pages.prune(self.bounds.pages);
        Ok(())
    }
}

/// Whether this file is what lies there.
fn is_at(path: &Path, file: &File) -> bool {
    let id = |of: fs::Metadata| (of.dev(), of.ino());
    match (fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(open)) => id(there) == id(open),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

fn open(path: &Path) -> Result<File, Error> {
    regular(path, File::options().append(true))
}

/// Opens a file of ours to read and to write, made where nothing lies.
fn regular(path: &Path, options: &mut fs::OpenOptions) -> Result<File, Error> {
    // Both ways, since a pipe that is opened for one waits for the other.
    let options = options.read(true).create(true).mode(0o600);
    let file = options.open(path).map_err(failed("open", path))?;
    crabtalk_files::regular(file).map_err(|error| failed("open", path)(io::Error::other(error)))
}

/// Takes the lock. One that was just let go may be held for a moment yet: a program
/// that NEXUS was about to start has a copy of it until it begins.
fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let file = regular(&path, File::options().write(true).truncate(false))?;
    let mut tries = 1..=LOCK_TRIES;
    loop {
        match (file.try_lock(), tries.next()) {
            (Ok(()), _) => return Ok(file),
            (Err(TryLockError::WouldBlock), Some(_)) => std::thread::sleep(LOCK_AGAIN),
            (Err(TryLockError::WouldBlock), None) => return Err(Error::Taken(folder.to_owned())),
            (Err(TryLockError::Error(error)), _) => return Err(failed("lock", &path)(error)),
        }
    }
}

/// How far a page was read.
#[derive(Default)]
struct Extent {
    /// How far whole batches reach.
    whole: u64,
    /// Bytes of the first of them.
    state: u64,
}

/// Reads the batches of a page.
fn read(file: &File, path: &Path, take: &mut impl FnMut(u64, Ms, Patch)) -> Result<Extent, Error> {
    let mut reader = BufReader::new(file);
    let seek = reader.seek(SeekFrom::Start(0));
    seek.map_err(failed("read", path))?;
    let (mut at, mut done) = (0, Extent::default());
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut bytes);
        let read = read.map_err(failed("read", path))?;
        at += read as u64;
        let broken = |why: String| Error::Broken {
            path: path.to_owned(),
            why: format!("the line that ends at byte {at}: {why}"),
        };
        if bytes.last() != Some(&b'\n') {
            // What a crash cut short was as long as what is written at most.
            let is_ours = (read as u64) < MAX_LINE;
            let why = || broken(format!("it is longer than {MAX_LINE} bytes"));
            return if is_ours { Ok(done) } else { Err(why()) };
        }
        let mut value: Value = serde_json::from_slice(&bytes).map_err(|e| broken(e.to_string()))?;
        let Some(set) = value.get_mut("set").map(Value::take) else {
            continue;
        };
        let patch = serde_json::from_value(set).map_err(|e| broken(e.to_string()))?;
        let number = |key: &str| value[key].as_u64().unwrap_or_default();
        take(number("n"), number("at"), patch);
        done.whole = at;
        if done.state == 0 {
            done.state = at;
        }
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
    // It was never acknowledged: where there is no room for it, it goes.
    let _ = crabtalk_files::write(&torn, &rest, crabtalk_files::Existing::Replace);
    file.set_len(whole)
        .and_then(|()| file.sync_all())
        .map_err(failed("cut", path))
}

/// Whether each line of what is appended can be read again.
fn fits(bytes: &[u8], path: &Path) -> Result<(), Error> {
    let lengths = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::len);
    match lengths.max() {
        Some(bytes) if bytes as u64 > MAX_LINE => Err(Error::TooLong {
            path: path.to_owned(),
            bytes,
        }),
        _ => Ok(()),
    }
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

/// Reads the entries of a log, over all its pages, whoever writes it meanwhile.
/// What cannot be read is passed over: it is for people.
pub fn entries(folder: &Path, mut take: impl FnMut(Entry)) -> Result<(), Error> {
    // A page that is put away meanwhile comes twice, the beginning of each says
    // again what stands at the end of the one before.
    let mut last = 0;
    for (path, file) in Pages::new(folder).all()? {
        let mut reader = BufReader::new(file);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut bytes);
            if read.map_err(failed("read", &path))? == 0 {
                break;
            }
            if let Ok(entry) = serde_json::from_slice::<Entry>(&bytes)
                && entry.n > last
            {
                last = entry.n;
                take(entry);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
