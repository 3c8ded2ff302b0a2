//! Captures a command's output: its beginning and end in memory, and long output
//! in a file.
//!
//! Invariants: memory and file are bounded; a file that cannot be completed is
//! removed.

use super::Tail;
use super::shelf::Shelves;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;

/// Largest output file. Output beyond it is read and dropped, so that
/// the command does not block.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The folder for output files of one conversation, and the name of this one.
#[derive(Debug, Clone)]
pub(super) struct Shelf {
    pub(super) shelves: Arc<Shelves>,
    pub(super) folder: PathBuf,
    pub(super) prefix: String,
}

/// The output of one command.
pub(super) struct Capture {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    shelf: Shelf,
    file: OutputFile,
    said: Option<watch::Sender<Tail>>,
}

enum OutputFile {
    /// The output is still in `head` and `tail`.
    InMemory,
    File {
        file: File,
        path: PathBuf,
        written: u64,
    },
    /// The output file was given up.
    Lost { why: String },
}

impl Capture {
    /// Creates a capture that shows at most `cap` bytes.
    pub(super) fn new(cap: usize, shelf: Shelf) -> Self {
        Self {
            half: cap / 2,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            shelf,
            file: OutputFile::InMemory,
            said: None,
        }
    }

    /// Sends the end of the output to `said` as well.
    pub(super) fn heard_by(mut self, said: Option<watch::Sender<Tail>>) -> Self {
        self.said = said;
        self
    }

    pub(super) async fn take(&mut self, chunk: &[u8]) {
        if let Some(said) = &self.said {
            said.send_modify(|tail| tail.push(chunk));
        }
        if matches!(self.file, OutputFile::InMemory) && self.total + chunk.len() as u64 > self.cap()
        {
            self.start_file().await;
        }
        self.total += chunk.len() as u64;
        if let Err(why) = self.write(chunk).await {
            self.lose(why).await;
        }
        let into_head = chunk.len().min(self.half - self.head.len());
        self.head.extend_from_slice(&chunk[..into_head]);
        let rest = &chunk[into_head..];
        self.tail
            .extend(&rest[rest.len().saturating_sub(self.half)..]);
        let excess = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..excess);
    }

    /// Writes to the file, if it exists, up to its limit.
    async fn write(&mut self, chunk: &[u8]) -> Result<(), String> {
        let OutputFile::File {
            file,
            path,
            written,
        } = &mut self.file
        else {
            return Ok(());
        };
        let left = usize::try_from(MAX_FILE_BYTES - *written).unwrap_or(usize::MAX);
        let part = &chunk[..chunk.len().min(left)];
        let kept = file.write_all(part).await;
        kept.map_err(|e| format!("{}: {e}", path.display()))?;
        *written += part.len() as u64;
        Ok(())
    }

    /// Gives up the output file and removes it.
    async fn lose(&mut self, why: String) {
        if let OutputFile::File { path, .. } =
            std::mem::replace(&mut self.file, OutputFile::Lost { why })
        {
            // Only the first error is reported.
            let _ = tokio::fs::remove_file(path).await;
        }
    }

    fn cap(&self) -> u64 {
        self.half as u64 * 2
    }

    async fn start_file(&mut self) {
        let Shelf {
            shelves,
            folder,
            prefix,
        } = self.shelf.clone();
        let made = tokio::task::spawn_blocking(move || shelves.start(&folder, &prefix)).await;
        match made.unwrap_or_else(|e| Err(e.to_string())) {
            Ok((file, path)) => {
                self.file = OutputFile::File {
                    file: File::from_std(file),
                    path,
                    written: 0,
                };
                let tail: Vec<u8> = self.tail.iter().copied().collect();
                for part in [self.head.clone(), tail] {
                    if let Err(why) = self.write(&part).await {
                        return self.lose(why).await;
                    }
                }
            }
            Err(why) => self.file = OutputFile::Lost { why },
        }
    }

    /// The text for the model.
    pub(super) async fn finish(mut self) -> String {
        if let OutputFile::File { file, path, .. } = &mut self.file
            && let Err(e) = file.flush().await
        {
            let why = format!("{}: {e}", path.display());
            self.lose(why).await;
        }
        if let OutputFile::File { written, .. } = &self.file {
            self.shelf.shelves.finish(*written);
        }
        let tail: Vec<u8> = std::mem::take(&mut self.tail).into();
        if self.total <= self.cap() {
            self.head.extend_from_slice(&tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let hidden = self.total - self.head.len() as u64 - tail.len() as u64;
        let whole = match &self.file {
            OutputFile::File { path, written, .. } if *written < self.total => {
                let mib = MAX_FILE_BYTES >> 20;
                format!("the first {mib} MiB are in {}", path.display())
            }
            OutputFile::File { path, .. } => format!("the whole output is in {}", path.display()),
            OutputFile::Lost { why } => format!("the whole output could not be kept: {why}"),
            OutputFile::InMemory => unreachable!("output above the cap has left memory"),
        };
        format!(
            "{}\n[... {hidden} of {} bytes are not shown; {whole}]\n{}",
            String::from_utf8_lossy(without_cut_end(&self.head)),
            self.total,
            String::from_utf8_lossy(without_cut_start(&tail)),
        )
    }
}

/// Drops an incomplete character at the end.
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

/// Drops an incomplete character at the beginning.
fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let start = bytes
        .iter()
        .take(3)
        .take_while(|b| (0x80..0xc0).contains(*b))
        .count();
    &bytes[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelves(dir: &tempfile::TempDir) -> Shelves {
        Shelves::new(dir.path().to_path_buf())
    }

    async fn captured(cap: usize, chunks: &[&[u8]]) -> (String, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("creates");
        let shelf = Shelf {
            shelves: Arc::new(shelves(&dir)),
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
            shelves: Arc::new(Shelves::new(file.path().to_path_buf())),
            folder: file.path().join("below-a-file"),
            prefix: "bash-".into(),
        };
        let mut capture = Capture::new(4, shelf);
        capture.take(b"abcdefgh").await;
        assert!(capture.finish().await.contains("could not be kept"));
    }
}
