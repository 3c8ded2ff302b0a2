//! The file that is written.

use crate::entry::{AuditEntry, Line, NONE, hash};
use crate::files::{
    ANCHOR, Anchor, Error, FILE, failed, files, first_number, last_line, read_anchor,
};
use crabtalk_files::Existing;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file of this size is closed: a person opens it, a check reads it at a time.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// Moves all files to a folder beside them, which this answers, and begins a new chain
/// with an entry. For a record that was lost or cut.
///
/// # Errors
/// Where a file cannot be moved or written. What was moved by then stays where it is.
pub fn begin_anew(folder: &Path, entry: AuditEntry) -> Result<PathBuf, Error> {
    let beside = |number: u32| folder.join(format!("audit.before.{number}"));
    let free = (1..).map(beside).find(|path| !path.exists());
    let aside = free.expect("a folder holds fewer files than there are numbers");
    crabtalk_files::create_folder(&aside).map_err(failed(&aside))?;
    let mut all = files(folder).map_err(failed(folder))?;
    all.push(folder.join(ANCHOR));
    for path in all {
        let name = path.file_name().unwrap_or_default();
        match std::fs::rename(&path, aside.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            moved => moved.map_err(failed(&path))?,
        }
    }
    let kept = aside.to_string_lossy().into_owned();
    Log::new(folder).append(entry.with("before", kept))?;
    Ok(aside)
}

/// The log, open for more. One process writes it.
#[derive(Debug)]
pub struct Log {
    folder: PathBuf,
    max_bytes: u64,
    open: Option<Open>,
}

#[derive(Debug)]
pub(crate) struct Open {
    file: File,
    bytes: u64,
    /// The number of the first line of this file.
    first: u64,
    last: Anchor,
}

impl Open {
    /// Whether the file at the path is as the last entry left it. Another program may
    /// have cut, moved or removed it.
    fn is_at(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|file| file.len() == self.bytes)
    }
}

impl Log {
    /// Of a folder. Nothing is read or made before the first entry.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            max_bytes: MAX_FILE_BYTES,
            open: None,
        }
    }

    /// With files of another size.
    #[cfg(test)]
    pub(crate) fn with_files_of(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Writes an entry, which is on the disk when this returns, and gives its
    /// number. After an error nothing is known of the file, and the next entry
    /// looks again.
    pub fn append(&mut self, entry: AuditEntry) -> Result<u64, Error> {
        let path = self.folder.join(FILE);
        let mut open = match self.open.take() {
            Some(open) if !open.is_at(&path) => self.look()?,
            Some(open) if open.bytes < self.max_bytes => open,
            Some(full) => self.close(full)?,
            None => self.look()?,
        };
        let n = open.last.n + 1;
        let mut text = Line::of(entry, n, &open.last.hash).text();
        let last = Anchor {
            n,
            hash: hash(text.as_bytes()),
        };
        text.push('\n');
        let before = open.bytes;
        let written = open
            .file
            .write_all(text.as_bytes())
            .and_then(|()| open.file.sync_data());
        if let Err(source) = written {
            // Part of a line would make the next one wrong.
            let _ = open.file.set_len(before);
            return Err(Error::Io { path, source });
        }
        if let Err(error) = self.anchor(&last) {
            // What is refused now shall not stand there as done.
            let _ = open.file.set_len(before);
            return Err(error);
        }
        open.bytes += text.len() as u64;
        open.last = last;
        self.open = Some(open);
        Ok(n)
    }

    fn anchor(&self, last: &Anchor) -> Result<(), Error> {
        let path = self.folder.join(ANCHOR);
        let text = serde_json::to_string(last).expect("a number and a text are JSON");
        let written = crabtalk_files::write(&path, text.as_bytes(), Existing::Replace);
        written.map_err(failed(&path))
    }

    /// Finds where the log ends, and cuts off what a crash left half written.
    pub(crate) fn look(&self) -> Result<Open, Error> {
        let path = self.folder.join(FILE);
        let failed = failed(&path);
        crabtalk_files::create_folder(&self.folder).map_err(failed)?;
        let broken = |why: String| Error::Broken {
            path: path.clone(),
            why,
        };
        let file = crabtalk_files::open_to_append(&path).map_err(|e| failed(e.into()))?;
        let reader = File::open(&path).map_err(failed)?;
        let ends = last_line(&reader).map_err(failed)?;
        if ends.torn > 0 {
            file.set_len(ends.whole).map_err(failed)?;
        }
        let first = first_number(&reader).map_err(failed)?;
        let last = match ends.last {
            Some(line) => {
                let parsed: Line = serde_json::from_slice(&line)
                    .map_err(|e| broken(format!("its last line is no entry: {e}")))?;
                Anchor {
                    n: parsed.n,
                    hash: hash(&line),
                }
            }
            None => self.end_of_older()?,
        };
        let anchor = read_anchor(&self.folder)?;
        let anchored = anchor.as_ref().map_or(0, |anchor| anchor.n);
        if anchored > last.n {
            return Err(broken(format!(
                "it ends with entry {}, and there were {anchored}: lines were removed",
                last.n
            )));
        }
        if anchored < last.n {
            // After another crash it would be further behind than one crash leaves it.
            self.anchor(&last)?;
        }
        Ok(Open {
            file,
            bytes: ends.whole,
            first: first.unwrap_or(last.n + 1),
            last,
        })
    }

    /// The last line of the file that was closed last.
    fn end_of_older(&self) -> Result<Anchor, Error> {
        let none = Anchor {
            n: 0,
            hash: NONE.to_owned(),
        };
        let older = files(&self.folder).map_err(failed(&self.folder))?;
        let Some(path) = older.into_iter().rfind(|path| !path.ends_with(FILE)) else {
            return Ok(none);
        };
        let failed = failed(&path);
        let file = File::open(&path).map_err(failed)?;
        let ends = last_line(&file).map_err(failed)?;
        let line = ends.last.unwrap_or_default();
        let parsed: Line = serde_json::from_slice(&line).map_err(|e| Error::Broken {
            path: path.clone(),
            why: format!("its last line is no entry: {e}"),
        })?;
        Ok(Anchor {
            n: parsed.n,
            hash: hash(&line),
        })
    }

    /// Closes a file that is full, and begins the next one.
    fn close(&self, full: Open) -> Result<Open, Error> {
        let path = self.folder.join(FILE);
        let closed = self.folder.join(format!("audit.{:012}.log", full.first));
        let failed = failed(&path);
        std::fs::rename(&path, &closed).map_err(failed)?;
        drop(full.file);
        let file = crabtalk_files::open_to_append(&path).map_err(|e| failed(e.into()))?;
        Ok(Open {
            file,
            bytes: 0,
            first: full.last.n + 1,
            last: full.last,
        })
    }
}
