//! What a gateway handed on already, kept over restarts.
//!
//! A line for each id: until when it is known, and the id. The line is on disk before
//! [`Seen::remember`] answers. A gateway remembers what the daemon has taken, and tells
//! its sender after that: a crash between lets the sender try again, and nothing is
//! lost.

use anyhow::{Context, ensure};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// So many are known at a time, in some ten megabytes: what comes in a week at five
/// hundred an hour.
const MAX_SEEN: usize = 100_000;

/// Ids that are known until a time, in seconds since 1970, and their file.
#[derive(Debug)]
pub struct Seen {
    path: PathBuf,
    file: File,
    known: HashMap<String, u64>,
}

impl Seen {
    /// Reads which ids a file remembers, without those whose time was over at `now`. It
    /// is made if there is none; its folder has to be there.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn open(path: &Path, now: u64) -> anyhow::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        // A line that a crash cut off is none.
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

    /// Whether an id is remembered.
    #[must_use]
    pub fn knows(&self, id: &str) -> bool {
        self.known.contains_key(id)
    }

    /// Sees to it that one more id can be remembered, by forgetting what is past.
    ///
    /// # Errors
    /// If there is no room all the same, or the file cannot be written anew.
    pub fn make_room(&mut self, now: u64) -> anyhow::Result<()> {
        if self.known.len() >= MAX_SEEN {
            self.file = written(&self.path, &mut self.known, now)?;
        }
        ensure!(self.known.len() < MAX_SEEN, "too many are remembered");
        Ok(())
    }

    /// Remembers an id without white space until a time; it is on disk when this
    /// returns.
    ///
    /// # Errors
    /// If it is not one word, or cannot be written.
    pub fn remember(&mut self, id: &str, until: u64) -> anyhow::Result<()> {
        ensure!(!id.contains(char::is_whitespace), "an id is one word");
        self.file.write_all(format!("{until} {id}\n").as_bytes())?;
        self.file.sync_data()?;
        self.known.insert(id.to_owned(), until);
        Ok(())
    }
}

/// Writes the file anew, with what is still to be known.
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
    fn what_is_remembered_is_known_after_a_restart_until_its_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen");
        let mut seen = Seen::open(&path, 100).expect("made");
        seen.remember("a/1", 150).expect("written");
        seen.remember("b/2", 300).expect("written");
        assert!(seen.remember("two words", 1).is_err());
        drop(seen);
        // A crash cuts the last line off.
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.append(true).open(&path).expect("there");
        file.write_all(b"40").expect("written");
        let seen = Seen::open(&path, 150).expect("read");
        assert!(seen.knows("a/1") && seen.knows("b/2") && !seen.knows("c"));
        drop(seen);
        let seen = Seen::open(&path, 151).expect("read");
        assert!(!seen.knows("a/1") && seen.knows("b/2"));
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "300 b/2\n");
        assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 1);
    }
}
