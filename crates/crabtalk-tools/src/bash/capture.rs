//! Keeps the beginning and the end of a command's output in memory, and the
//! whole of it in a file once it is more than that.
//!
//! Invariant: memory is bounded whatever comes; the file too.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// Largest file of whole output; beyond it output is still drained, so that
/// the command goes on, and dropped.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Whole outputs kept per conversation; the oldest go first.
const MAX_FILES: usize = 64;

/// Where whole outputs of one conversation go, and what to call this one.
#[derive(Debug, Clone)]
pub(super) struct Shelf {
    pub(super) folder: PathBuf,
    pub(super) prefix: String,
}

/// The output of one command, as it comes.
pub(super) struct Capture {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    shelf: Shelf,
    file: Kept,
}

enum Kept {
    /// All of it is still in `head` and `tail`.
    InMemory,
    File {
        file: File,
        path: PathBuf,
        written: u64,
    },
    /// It could not be kept whole.
    Lost { why: String },
}

impl Capture {
    /// Shows at most `cap` bytes.
    pub(super) fn new(cap: usize, shelf: Shelf) -> Self {
        Self {
            half: cap / 2,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            shelf,
            file: Kept::InMemory,
        }
    }

    pub(super) async fn take(&mut self, chunk: &[u8]) {
        if matches!(self.file, Kept::InMemory) && self.total + chunk.len() as u64 > self.cap() {
            self.start_file().await;
        }
        self.total += chunk.len() as u64;
        if let Kept::File {
            file,
            path,
            written,
        } = &mut self.file
        {
            let room = usize::try_from(MAX_FILE_BYTES - *written).unwrap_or(usize::MAX);
            let part = &chunk[..chunk.len().min(room)];
            *written += part.len() as u64;
            if let Err(e) = file.write_all(part).await {
                self.file = Kept::Lost {
                    why: format!("{}: {e}", path.display()),
                };
            }
        }
        let into_head = chunk.len().min(self.half - self.head.len());
        self.head.extend_from_slice(&chunk[..into_head]);
        let rest = &chunk[into_head..];
        self.tail
            .extend(&rest[rest.len().saturating_sub(self.half)..]);
        let excess = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..excess);
    }

    fn cap(&self) -> u64 {
        self.half as u64 * 2
    }

    async fn start_file(&mut self) {
        let shelf = self.shelf.clone();
        let made = tokio::task::spawn_blocking(move || make_file(&shelf)).await;
        self.file = match made.unwrap_or_else(|e| Err(io::Error::other(e))) {
            Ok((file, path)) => {
                let mut file = File::from_std(file);
                let (front, back) = self.tail.as_slices();
                let mut kept = file.write_all(&self.head).await;
                for part in [front, back] {
                    if kept.is_ok() {
                        kept = file.write_all(part).await;
                    }
                }
                match kept {
                    Ok(()) => Kept::File {
                        file,
                        path,
                        written: self.total,
                    },
                    Err(e) => Kept::Lost {
                        why: format!("{}: {e}", path.display()),
                    },
                }
            }
            Err(e) => Kept::Lost {
                why: format!("{}: {e}", self.shelf.folder.display()),
            },
        };
    }

    /// What a model reads of it.
    pub(super) async fn finish(mut self) -> String {
        if let Kept::File { file, path, .. } = &mut self.file
            && let Err(e) = file.flush().await
        {
            self.file = Kept::Lost {
                why: format!("{}: {e}", path.display()),
            };
        }
        let tail: Vec<u8> = std::mem::take(&mut self.tail).into();
        if self.total <= self.cap() {
            self.head.extend_from_slice(&tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let hidden = self.total - self.head.len() as u64 - tail.len() as u64;
        let whole = match &self.file {
            Kept::File { path, written, .. } if *written < self.total => {
                format!(
                    "the first {} MiB are in {}",
                    MAX_FILE_BYTES >> 20,
                    path.display()
                )
            }
            Kept::File { path, .. } => format!("the whole output is in {}", path.display()),
            Kept::Lost { why } => format!("the whole output could not be kept: {why}"),
            Kept::InMemory => unreachable!("output above the cap has left memory"),
        };
        format!(
            "{}\n[... {hidden} of {} bytes are not shown; {whole}]\n{}",
            String::from_utf8_lossy(without_cut_end(&self.head)),
            self.total,
            String::from_utf8_lossy(without_cut_start(&tail)),
        )
    }
}

/// Drops a character that the cut left without its end.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
    let from = bytes.len().saturating_sub(3);
    for at in (from..bytes.len()).rev() {
        let needs = match bytes[at] {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => continue,
        };
        return if at + needs > bytes.len() {
            &bytes[..at]
        } else {
            bytes
        };
    }
    bytes
}

/// Drops the continuation bytes of a character whose start was cut off.
fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let start = bytes
        .iter()
        .take(3)
        .take_while(|b| (0x80..0xc0).contains(*b))
        .count();
    &bytes[start..]
}

fn make_file(shelf: &Shelf) -> io::Result<(std::fs::File, PathBuf)> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&shelf.folder)?;
    make_room(&shelf.folder);
    // Created with mode 0600.
    let made = tempfile::Builder::new()
        .prefix(&shelf.prefix)
        .suffix(".txt")
        .tempfile_in(&shelf.folder)?;
    made.keep().map_err(|e| e.error)
}

/// Removes the oldest outputs; what cannot be removed only takes room.
fn make_room(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut files: Vec<_> = entries
        .flatten()
        .filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path())))
        .collect();
    files.sort();
    let excess = (files.len() + 1).saturating_sub(MAX_FILES);
    for (_, path) in files.into_iter().take(excess) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn captured(cap: usize, chunks: &[&[u8]]) -> (String, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("creates");
        let shelf = Shelf {
            folder: dir.path().join("a"),
            prefix: "bash-".into(),
        };
        let mut capture = Capture::new(cap, shelf);
        for chunk in chunks {
            capture.take(chunk).await;
        }
        (capture.finish().await, dir)
    }

    fn only_file(dir: &tempfile::TempDir) -> Vec<u8> {
        let mut files = std::fs::read_dir(dir.path().join("a")).expect("listed");
        let path = files.next().expect("one").expect("readable").path();
        assert!(files.next().is_none());
        std::fs::read(path).expect("readable")
    }

    #[tokio::test]
    async fn what_fits_is_shown_whole_and_makes_no_file() {
        let (shown, dir) = captured(8, &[b"abc", b"", b"defgh"]).await;
        assert_eq!(shown, "abcdefgh");
        assert!(!dir.path().join("a").exists());
    }

    #[tokio::test]
    async fn beyond_the_cap_head_and_tail_are_shown_and_the_whole_is_kept() {
        let (shown, dir) = captured(8, &[b"abc", b"defg", b"hij", b"klmnop"]).await;
        assert!(shown.starts_with("abcd\n[... 8 of 16 bytes"), "{shown}");
        assert!(shown.ends_with("]\nmnop"), "{shown}");
        assert_eq!(only_file(&dir), b"abcdefghijklmnop");
    }

    #[tokio::test]
    async fn a_cut_never_halves_a_character() {
        let text = "é".repeat(20);
        let (shown, _dir) = captured(10, &[text.as_bytes()]).await;
        assert!(!shown.contains('\u{fffd}'), "{shown}");
    }

    #[tokio::test]
    async fn output_that_cannot_be_kept_says_so() {
        let file = tempfile::NamedTempFile::new().expect("creates");
        let shelf = Shelf {
            folder: file.path().join("below-a-file"),
            prefix: "bash-".into(),
        };
        let mut capture = Capture::new(4, shelf);
        capture.take(b"abcdefgh").await;
        assert!(capture.finish().await.contains("could not be kept"));
    }

    #[test]
    fn old_outputs_make_room() {
        let dir = tempfile::tempdir().expect("creates");
        let shelf = Shelf {
            folder: dir.path().to_path_buf(),
            prefix: "bash-".into(),
        };
        for _ in 0..MAX_FILES + 5 {
            make_file(&shelf).expect("made");
        }
        assert_eq!(
            std::fs::read_dir(dir.path()).expect("listed").count(),
            MAX_FILES
        );
    }
}
