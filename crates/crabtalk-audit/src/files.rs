//! The files of the record: which there are, how one ends, and the anchor beside
//! them.

use crate::entry::Line;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The file that is written, below the folder.
pub(crate) const FILE: &str = "audit.log";

/// Says how far the log goes.
pub(crate) const ANCHOR: &str = "audit.anchor";

/// Largest anchor.
const MAX_ANCHOR_BYTES: u64 = 4096;

/// Longest line that is read: a few texts of the most that one may have, escaped.
pub(crate) const MAX_LINE_BYTES: u64 = 4 * 1024 * 1024;

/// Bytes read at a time from the end.
const BLOCK: u64 = 64 * 1024;

/// Why there is no entry.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The record cannot be read or written; what was to be recorded is then refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The record does not fit together, and nothing more is written to it.
    #[error(
        "{}: {why}; `crabtalk audit verify` says more, `crabtalk audit new-chain` moves the files \
         aside and begins a new one",
        path.display()
    )]
    Broken {
        /// Which file.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
}

/// What the system said of a file or folder, as an error.
pub(crate) fn failed(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
    move |source| Error::Io {
        path: path.to_owned(),
        source,
    }
}

/// The last line that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Anchor {
    pub(crate) n: u64,
    pub(crate) hash: String,
}

/// All files, oldest first, the one that is written last.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let items = match std::fs::read_dir(folder) {
        Ok(items) => items,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut numbered = Vec::new();
    let mut current = None;
    for item in items {
        let name = item?.file_name();
        let Some(name) = name.to_str() else { continue };
        let number = name
            .strip_prefix("audit.")
            .and_then(|rest| rest.strip_suffix(".log"))
            .and_then(|number| number.parse::<u64>().ok());
        if let Some(number) = number {
            numbered.push((number, folder.join(name)));
        } else if name == FILE {
            current = Some(folder.join(name));
        }
    }
    numbered.sort();
    let older = numbered.into_iter().map(|(_, path)| path);
    Ok(older.chain(current).collect())
}

/// How a file ends.
pub(crate) struct Ends {
    /// Its last whole line, without the newline.
    pub(crate) last: Option<Vec<u8>>,
    /// Bytes up to the end of that.
    pub(crate) whole: u64,
    /// Bytes behind it, which a crash left.
    pub(crate) torn: u64,
}

/// Reads a file's last line from its end.
pub(crate) fn last_line(mut file: &File) -> io::Result<Ends> {
    let size = file.metadata()?.len();
    let mut tail = Vec::new();
    let mut begin = size;
    loop {
        let newlines: Vec<usize> = (0..tail.len()).filter(|i| tail[*i] == b'\n').collect();
        let (first_known, enough) = (begin == 0, newlines.len() >= 2);
        if enough || first_known || tail.len() as u64 > MAX_LINE_BYTES {
            let Some(&end) = newlines.last() else {
                return Ok(Ends {
                    last: None,
                    whole: 0,
                    torn: size,
                });
            };
            let from = newlines
                .len()
                .checked_sub(2)
                .map_or(0, |before| newlines[before] + 1);
            let whole = begin + end as u64 + 1;
            return Ok(Ends {
                last: Some(tail[from..end].to_vec()),
                whole,
                torn: size - whole,
            });
        }
        let at = begin.saturating_sub(BLOCK);
        let count = usize::try_from(begin - at).expect("a block fits into memory");
        let mut block = vec![0; count];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut block)?;
        block.extend_from_slice(&tail);
        (tail, begin) = (block, at);
    }
}

/// The number of a file's first line.
pub(crate) fn first_number(mut file: &File) -> io::Result<Option<u64>> {
    file.seek(SeekFrom::Start(0))?;
    let mut line = Vec::new();
    let mut reader = BufReader::new(file).take(MAX_LINE_BYTES);
    reader.read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice::<Line>(&line)
        .map(|line| line.n)
        .ok())
}

/// How far the log says that it goes.
pub(crate) fn read_anchor(folder: &Path) -> Result<Option<Anchor>, Error> {
    let path = folder.join(ANCHOR);
    let read = crabtalk_files::if_there(crabtalk_files::read(&path, MAX_ANCHOR_BYTES));
    let text = read.map_err(|e| failed(&path)(e.into()))?;
    let Some(text) = text else { return Ok(None) };
    match serde_json::from_slice(&text) {
        Ok(anchor) => Ok(Some(anchor)),
        Err(error) => Err(Error::Broken {
            path,
            why: format!("it is no anchor: {error}"),
        }),
    }
}
