//! A file that grows, read line by line.
//!
//! Invariants: a step reads [`STEP_BYTES`] at most; a line is given when its end
//! is written; one longer than [`MAX_LINE_BYTES`] is passed over; a file that was
//! cut is read from its beginning.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// What one step reads at most.
pub(crate) const STEP_BYTES: usize = 1 << 20;

/// Longest line that is read: a message of 64 KiB among what programs write
/// around it, and outputs of tools, which are skipped here.
const MAX_LINE_BYTES: usize = 16 << 20;

/// A place in a file that grows.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    pub(crate) path: PathBuf,
    /// Where the next read begins.
    at: u64,
    /// A line whose end is not written yet.
    torn: Vec<u8>,
    /// Whether the line is too long to be kept.
    skips: bool,
}

impl Tail {
    pub(crate) fn new(path: &Path, at: u64) -> Self {
        Self {
            path: path.to_owned(),
            at,
            torn: Vec::new(),
            skips: false,
        }
    }

    /// Where the line begins that is read next.
    pub(crate) fn at(&self) -> u64 {
        self.at.saturating_sub(self.torn.len() as u64)
    }

    /// The lines that were ended since the last step, and whether there may be
    /// more.
    pub(crate) fn step(&mut self) -> (Vec<Vec<u8>>, bool) {
        let Ok(bytes) = self.read() else {
            // A file that is not there yet, or not any more, says nothing.
            return (Vec::new(), false);
        };
        let more = bytes.len() == STEP_BYTES;
        let mut lines = Vec::new();
        let mut rest = bytes.as_slice();
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.keep(&rest[..end]);
            let line = std::mem::take(&mut self.torn);
            if !std::mem::take(&mut self.skips) && !line.is_empty() {
                lines.push(line);
            }
            rest = &rest[end + 1..];
        }
        self.keep(rest);
        (lines, more)
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.torn.len() + bytes.len() > MAX_LINE_BYTES {
            self.skips = true;
        }
        if !self.skips {
            self.torn.extend_from_slice(bytes);
        }
    }

    fn read(&mut self) -> Result<Vec<u8>, crabtalk_files::Error> {
        let mut file = crabtalk_files::open(&self.path)?;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        if length < self.at {
            *self = Self::new(&self.path, 0);
        }
        let mut bytes = Vec::new();
        if length > self.at && file.seek(SeekFrom::Start(self.at)).is_ok() {
            // What could be read until it failed is what there is.
            let _ = file.take(STEP_BYTES as u64).read_to_end(&mut bytes);
            self.at += bytes.len() as u64;
        }
        Ok(bytes)
    }
}

/// How long a file is; nothing where it is not there.
pub(crate) fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        (folder, path)
    }

    fn append(path: &Path, bytes: &[u8]) {
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.create(true).append(true).open(path).unwrap();
        file.write_all(bytes).unwrap();
    }

    #[test]
    fn torn_line_is_read_when_complete() {
        let (_folder, path) = file();
        let mut tail = Tail::new(&path, 0);
        assert_eq!(tail.step(), (vec![], false));
        append(&path, b"one\ntw");
        assert_eq!(tail.step().0, [b"one"]);
        assert_eq!(tail.at(), 4);
        append(&path, b"o\n\nthree\n");
        assert_eq!(tail.step().0, [b"two".to_vec(), b"three".to_vec()]);
        assert_eq!(tail.step().0.len(), 0);
    }

    #[test]
    fn every_cut_gives_the_same_lines() {
        let text = "ä\nbc\n\n{\"x\":1}\n";
        for cut in 0..text.len() {
            let (_folder, path) = file();
            let mut tail = Tail::new(&path, 0);
            append(&path, &text.as_bytes()[..cut]);
            let mut lines = tail.step().0;
            append(&path, &text.as_bytes()[cut..]);
            lines.extend(tail.step().0);
            assert_eq!(
                lines,
                ["ä", "bc", "{\"x\":1}"].map(|l| l.as_bytes().to_vec())
            );
        }
    }

    #[test]
    fn truncated_file_is_read_again() {
        let (_folder, path) = file();
        append(&path, b"one\ntwo\n");
        let mut tail = Tail::new(&path, 0);
        assert_eq!(tail.step().0.len(), 2);
        std::fs::write(&path, b"new\n").unwrap();
        assert_eq!(tail.step().0, [b"new"]);
    }

    #[test]
    fn an_endless_line_costs_no_memory_and_hides_no_other() {
        let (_folder, path) = file();
        append(&path, &vec![b'x'; MAX_LINE_BYTES + 10]);
        append(&path, b"\nnext\n");
        let mut tail = Tail::new(&path, 0);
        let mut lines = Vec::new();
        loop {
            let (step, more) = tail.step();
            assert!(tail.torn.len() <= MAX_LINE_BYTES);
            lines.extend(step);
            if !more {
                break;
            }
        }
        assert_eq!(lines, [b"next"]);
    }
}
