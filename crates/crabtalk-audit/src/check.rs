//! Whether everything fits, and the latest lines.

use crate::entry::{Line, NONE, hash};
use crate::log::{Error, FILE, read_anchor};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Longest line that is read: a few texts of the most that one may have, escaped.
const MAX_LINE_BYTES: u64 = 4 * 1024 * 1024;

/// Bytes read at a time from the end.
const BLOCK: u64 = 64 * 1024;

/// What a check came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// Lines that fit.
    pub lines: u64,
    /// The first that does not, where it is, and why.
    pub problem: Option<String>,
}

/// The latest lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// As they are in the files, oldest first.
    pub lines: Vec<String>,
    /// Whether there are older ones.
    pub more: bool,
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

/// Reads all of it: each line has to name the hash of the one before, and the
/// anchor the last one.
pub fn check(folder: &Path) -> Result<Check, Error> {
    let mut chain = Chain {
        n: 0,
        hash: NONE.to_owned(),
        before: None,
    };
    for path in files(folder).map_err(|e| io_error(folder, e))? {
        let file = File::open(&path).map_err(|e| io_error(&path, e))?;
        let mut reader = BufReader::new(file);
        let mut number = 0_u64;
        loop {
            let mut line = Vec::new();
            let read = reader
                .by_ref()
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line);
            if read.map_err(|e| io_error(&path, e))? == 0 {
                break;
            }
            number += 1;
            if let Err(why) = chain.take(&line) {
                return Ok(Check {
                    lines: chain.n,
                    problem: Some(format!("{}:{number}: {why}", path.display())),
                });
            }
        }
    }
    let problem = match read_anchor(folder)? {
        // A crash behind the very first line leaves none.
        None if chain.n > 1 => Some("the anchor is gone".to_owned()),
        None => None,
        Some(anchor) => chain.holds(&anchor.hash, anchor.n),
    };
    Ok(Check {
        lines: chain.n,
        problem,
    })
}

struct Chain {
    n: u64,
    hash: String,
    /// The one before the last, which an anchor may still be at.
    before: Option<(u64, String)>,
}

impl Chain {
    /// Goes on by one line; says what does not fit.
    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let Some(text) = line.strip_suffix(b"\n") else {
            return Err("the line is not whole".to_owned());
        };
        let parsed: Line =
            serde_json::from_slice(text).map_err(|e| format!("the line is no entry: {e}"))?;
        if parsed.n != self.n + 1 {
            return Err(format!(
                "entry {} stands where entry {} belongs",
                parsed.n,
                self.n + 1
            ));
        }
        if parsed.prev != self.hash {
            return Err(match self.n {
                0 => "the first entry names one before it".to_owned(),
                n => format!("it does not fit the one before: entry {n} or this one was changed"),
            });
        }
        if parsed.text().as_bytes() != text {
            return Err("it is not written as entries are".to_owned());
        }
        self.before = Some((self.n, std::mem::replace(&mut self.hash, hash(text))));
        self.n = parsed.n;
        Ok(())
    }

    /// Whether an anchor is at the end. A crash may have left it at the one before.
    fn holds(&self, anchor: &str, n: u64) -> Option<String> {
        if n == self.n && anchor == self.hash {
            return None;
        }
        if self
            .before
            .as_ref()
            .is_some_and(|(m, h)| *m == n && h == anchor)
        {
            return None;
        }
        Some(if n > self.n {
            format!(
                "it ends with entry {}, and there were {n}: lines were removed",
                self.n
            )
        } else {
            format!("the anchor is at entry {n}, and it is not that of this log")
        })
    }
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io {
        path: path.to_owned(),
        source,
    }
}

/// The latest lines before a number, at most `limit`.
pub fn latest(folder: &Path, before: Option<u64>, limit: usize) -> Result<Page, Error> {
    let mut lines: Vec<String> = Vec::new();
    for path in files(folder).map_err(|e| io_error(folder, e))?.iter().rev() {
        let file = File::open(path).map_err(|e| io_error(path, e))?;
        let mut reader = BufReader::new(file);
        let mut own = std::collections::VecDeque::new();
        loop {
            let mut line = Vec::new();
            let read = reader
                .by_ref()
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line);
            if read.map_err(|e| io_error(path, e))? == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            let n = serde_json::from_str::<Line>(&text).map(|line| line.n).ok();
            if before.is_none_or(|before| n.is_some_and(|n| n < before)) {
                own.push_back(text);
            }
            // One more than wanted says whether there are older ones.
            if own.len() > limit + 1 {
                own.pop_front();
            }
        }
        own.extend(lines);
        lines = own.into();
        if lines.len() > limit {
            break;
        }
    }
    let more = lines.len() > limit;
    if more {
        lines.drain(..lines.len() - limit);
    }
    Ok(Page { lines, more })
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

#[cfg(test)]
mod tests;
