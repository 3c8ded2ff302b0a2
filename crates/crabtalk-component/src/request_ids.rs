//! The ids of requests that a gateway has forwarded, persisted over restarts.
//!
//! Each line has an expiry time and an id. [`RequestIds::remember`] returns after the line is on
//! disk. A gateway remembers a request after the daemon has accepted it and before it
//! answers the sender; after a crash in between, the sender retries.

use anyhow::{Context, ensure};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Maximum number of ids: a week at five hundred an hour, about ten megabytes.
const MAX_SEEN: usize = 100_000;

/// Request ids with expiry times in seconds since 1970, and their file.
#[derive(Debug)]
pub struct RequestIds {
    path: PathBuf,
    file: File,
    known: HashMap<String, u64>,
}

impl RequestIds {
    /// Reads the ids that have not expired at `now`. Creates the file if it is missing, but
    /// not its folder.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(path: &Path, now: u64) -> anyhow::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        // A crash may have cut off the last line.
        let known = text.lines().filter_map(|line| {
            let (until, id) = line.split_once(' ')?;
            Some((id.to_owned(), until.parse().ok()?))
        });
        let mut known = known.collect();
        Ok(Self {
            path: path.to_owned(),
            file: written(path, &mut known, now)?,
            known,
        })
    }

    /// Whether an id is known.
    #[must_use]
    pub fn knows(&self, id: &str) -> bool {
        self.known.contains_key(id)
    }

    /// Makes room for one more id by removing expired ones.
    ///
    /// # Errors
    /// Too many ids have not expired, or the file cannot be rewritten.
    pub fn make_room(&mut self, now: u64) -> anyhow::Result<()> {
        if self.known.len() >= MAX_SEEN {
            self.file = written(&self.path, &mut self.known, now)?;
        }
        ensure!(
            self.known.len() < MAX_SEEN,
            "too many request ids are stored"
        );
        Ok(())
    }

    /// Remembers an id until a time; returns once it is on
    /// disk.
    ///
    /// # Errors
    /// The id has white space, or the file cannot be written.
    pub fn remember(&mut self, id: &str, until: u64) -> anyhow::Result<()> {
        ensure!(!id.contains(char::is_whitespace), "an id is one word");
        self.file.write_all(format!("{until} {id}\n").as_bytes())?;
        self.file.sync_data()?;
        self.known.insert(id.to_owned(), until);
        Ok(())
    }
}

/// Rewrites the file without expired ids.
fn written(path: &Path, known: &mut HashMap<String, u64>, now: u64) -> anyhow::Result<File> {
    known.retain(|_, until| *until >= now);
    let mut text = String::new();
    for (id, until) in known {
        writeln!(text, "{until} {id}")?;
    }
    let folder = path.parent().context("a file lies in a folder")?;
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    fresh.as_file().sync_all()?;
    Ok(fresh.persist(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_a_restart_until_they_expire() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen");
        let mut seen = RequestIds::open(&path, 100).expect("made");
        seen.remember("a/1", 150).expect("written");
        seen.remember("b/2", 300).expect("written");
        assert!(seen.remember("two words", 1).is_err());
        drop(seen);
        // A crash may cut off the last line.
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.append(true).open(&path).expect("there");
        file.write_all(b"40").expect("written");
        let seen = RequestIds::open(&path, 150).expect("read");
        assert!(seen.knows("a/1") && seen.knows("b/2") && !seen.knows("c"));
        drop(seen);
        let seen = RequestIds::open(&path, 151).expect("read");
        assert!(!seen.knows("a/1") && seen.knows("b/2"));
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "300 b/2\n");
        assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 1);
    }
}
