//! Reads a growing file line by line.
//!
//! Invariants: a step reads at most [`STEP_BYTES`]; a line is returned when its end
//! is written; a line longer than [`MAX_LINE_BYTES`] is skipped; a truncated file
//! is read again from its beginning.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Maximum bytes per step.
pub(crate) const STEP_BYTES: usize = 1 << 20;

/// Longest line that is read: a message of 64 KiB with the program's additional data,
/// and tool outputs.
const MAX_LINE_BYTES: usize = 16 << 20;

/// A position in a growing file.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    pub(crate) path: PathBuf,
    /// The offset of the next read.
    at: u64,
    /// The beginning of an incomplete line.
    torn: Vec<u8>,
    /// Whether the current line is too long and is skipped.
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

    /// The offset of the line that is read next.
    pub(crate) fn at(&self) -> u64 {
        self.at.saturating_sub(self.torn.len() as u64)
    }

    /// The lines completed since the last step, and whether there may be
    /// more.
    pub(crate) fn step(&mut self) -> (Vec<Vec<u8>>, bool) {
        let Ok(bytes) = self.read() else {
            // A missing file has no lines.
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
            // After a read error, the bytes read so far are used.
            let _ = file.take(STEP_BYTES as u64).read_to_end(&mut bytes);
            self.at += bytes.len() as u64;
        }
        Ok(bytes)
    }
}

/// The length of a file; 0 if it is missing.
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
