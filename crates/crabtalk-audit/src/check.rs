//! Whether everything fits, and the latest lines.

use crate::entry::{Line, NONE, hash};
use crate::files::{Error, MAX_LINE_BYTES, failed, files, read_anchor};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

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

/// Reads all of it: each line has to name the hash of the one before, and the
/// anchor the last one.
pub fn check(folder: &Path) -> Result<Check, Error> {
    let mut chain = Chain {
        n: 0,
        hash: NONE.to_owned(),
        before: None,
    };
    for path in files(folder).map_err(failed(folder))? {
        let file = File::open(&path).map_err(failed(&path))?;
        let mut reader = BufReader::new(file);
        let mut number = 0_u64;
        loop {
            let mut line = Vec::new();
            let read = reader
                .by_ref()
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line);
            if read.map_err(failed(&path))? == 0 {
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

/// The latest lines before a number, at most `limit`.
pub fn latest(folder: &Path, before: Option<u64>, limit: usize) -> Result<Page, Error> {
    let mut lines: Vec<String> = Vec::new();
    for path in files(folder).map_err(failed(folder))?.iter().rev() {
        let file = File::open(path).map_err(failed(path))?;
        let mut reader = BufReader::new(file);
        let mut own = std::collections::VecDeque::new();
        loop {
            let mut line = Vec::new();
            let read = reader
                .by_ref()
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line);
            if read.map_err(failed(path))? == 0 {
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

#[cfg(test)]
mod tests;
