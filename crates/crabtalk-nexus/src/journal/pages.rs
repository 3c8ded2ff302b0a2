//! The files of the log: the page that grows, and those before it.
//!
//! Invariants: a page before carries the number of its last entry in its name,
//! so that nothing is renamed twice; the next page is whole on disk before the
//! one that grew is put away; between any two steps of that, [`Pages::mend`]
//! finds the way on.

use super::{Error, failed};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The page that grows.
pub const EVENTS: &str = "events.jsonl";

/// The page that is about to follow it.
const NEXT: &str = "events.next";

/// What the names of pages before begin and end with.
const BEFORE: (&str, &str) = ("events-", ".jsonl");

#[derive(Debug)]
pub(super) struct Pages(PathBuf);

impl Pages {
    pub(super) fn new(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    pub(super) fn current(&self) -> PathBuf {
        self.0.join(EVENTS)
    }

    fn next(&self) -> PathBuf {
        self.0.join(NEXT)
    }

    /// Goes on where a crash came between two pages.
    pub(super) fn mend(&self) -> Result<(), Error> {
        // It was put away, so the next one is whole.
        if !self.current().exists() && self.next().exists() {
            return self.begin_next();
        }
        match fs::remove_file(self.next()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &self.next())(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Writes the next page, under a name that is not its own yet.
    pub(super) fn write_next(&self, bytes: &[u8]) -> Result<(), Error> {
        let path = self.next();
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&path);
        let written = file.and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.map_err(|error| {
            // Half of it would take room from what is appended.
            let _ = fs::remove_file(&path);
            failed("write", &path)(error)
        })?;
        self.sync()
    }

    /// Puts the page away whose last entry is `n`.
    pub(super) fn put_away(&self, n: u64) -> Result<(), Error> {
        let (begin, end) = BEFORE;
        let path = self.0.join(format!("{begin}{n:012}{end}"));
        match fs::rename(self.current(), &path) {
            // Somebody took it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => {
                let _ = fs::remove_file(self.next());
                Err(failed("rename", &self.current())(error))
            }
            Ok(()) => Ok(()),
        }
    }

    /// Gives the next page its name, once the one before has its own for good.
    pub(super) fn begin_next(&self) -> Result<(), Error> {
        self.sync()?;
        let renamed = fs::rename(self.next(), self.current());
        renamed.map_err(failed("rename", &self.next()))?;
        self.sync()
    }

    /// Removes the oldest pages, so that so many are left before the one that grows.
    pub(super) fn prune(&self, keep: usize) -> Result<(), Error> {
        let before = self.before()?;
        let too_many = before.len().saturating_sub(keep);
        for path in &before[..too_many] {
            fs::remove_file(path).map_err(failed("remove", path))?;
        }
        Ok(())
    }

    /// All pages, open, the oldest first.
    pub(super) fn all(&self) -> Result<Vec<(PathBuf, File)>, Error> {
        // The last one first: what is put away meanwhile is listed then.
        let current = opened(self.current())?;
        let mut all = Vec::new();
        for path in self.before()? {
            // One that cannot be read is in nobody's way.
            all.extend(opened(path).unwrap_or_default());
        }
        // It was put away, and its follower has no name yet, or by now.
        let current = match current {
            None => opened(self.current())?,
            found => found,
        };
        all.extend(current);
        Ok(all)
    }

    /// The number of the last entry before the page that grows.
    pub(super) fn last(&self) -> Result<Option<u64>, Error> {
        let before = self.before()?;
        let name = before.last().and_then(|path| path.file_name()?.to_str());
        Ok(name.and_then(number))
    }

    /// The pages before, the oldest first.
    fn before(&self) -> Result<Vec<PathBuf>, Error> {
        let items = match fs::read_dir(&self.0) {
            Ok(items) => items,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("list", &self.0)(error)),
        };
        let mut found = Vec::new();
        for item in items {
            let item = item.map_err(failed("list", &self.0))?;
            if let Some(n) = item.file_name().to_str().and_then(number) {
                found.push((n, item.path()));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, path)| path).collect())
    }

    fn sync(&self) -> Result<(), Error> {
        let folder = File::open(&self.0).and_then(|folder| folder.sync_all());
        folder.map_err(failed("sync", &self.0))
    }
}

/// The number in the name of a page before.
fn number(name: &str) -> Option<u64> {
    let (begin, end) = BEFORE;
    name.strip_prefix(begin)?.strip_suffix(end)?.parse().ok()
}

fn opened(path: PathBuf) -> Result<Option<(PathBuf, File)>, Error> {
    let file = crabtalk_files::if_there(crabtalk_files::open(&path));
    let file = file.map_err(|error| failed("open", &path)(io::Error::other(error)))?;
    // One that is not there was too many.
    Ok(file.map(|file| (path, file)))
}
