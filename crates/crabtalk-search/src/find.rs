//! Search hits with their lines, and lines of files.

use crate::index::{Error, Index};
use crate::open;
use crate::rules::{looks_secret, text};
use crate::settings::Settings;
use crate::words::Question;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Number of parts read per requested hit; those of one file are merged.
const PARTS_PER_HIT: usize = 4;

/// Maximum number of hits.
const MAX_HITS: usize = 50;

/// Lines shown around the best line of a hit.
const HIT_LINES: usize = 3;

/// Maximum characters shown of a line.
const MAX_LINE_CHARS: usize = 300;

/// Maximum characters shown of a file at a time.
const MAX_SHOWN_CHARS: usize = 40_000;

/// A hit.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Hit {
    /// The file.
    pub path: PathBuf,
    /// The best line, from 1.
    pub line: usize,
    /// The best line with its neighbours.
    pub text: String,
    /// The score among hits of the same query.
    pub score: f64,
}

/// Lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// The first line, from 1.
    pub first: usize,
    /// The text of the lines.
    pub lines: Vec<String>,
    /// Number of lines of the file.
    pub total: usize,
}

impl Index {
    /// The best hits with all words, or with any word if there are none.
    pub fn search(&self, settings: &Settings, words: &str, most: usize) -> Result<Vec<Hit>, Error> {
        let question = Question::new(words).ok_or_else(|| Error::NoWords(words.to_owned()))?;
        let most = most.clamp(1, MAX_HITS);
        let mut parts = self.parts(&question.all(), most * PARTS_PER_HIT)?;
        if parts.is_empty() {
            parts = self.parts(&question.any(), most * PARTS_PER_HIT)?;
        }
        let mut hits: Vec<Hit> = Vec::new();
        for part in parts {
            let path = PathBuf::from(OsStr::from_bytes(&part.path));
            if hits.len() >= most {
                break;
            }
            if hits.iter().any(|hit| hit.path == path) {
                continue;
            }
            // The file changed; the next update will notice.
            let Ok(said) = read(&path, settings) else {
                continue;
            };
            let (line, text) = best(&said, &question, part.line, part.lines);
            hits.push(Hit {
                path,
                line,
                text,
                score: part.score,
            });
        }
        Ok(hits)
    }

    /// Lines of a file that is in the index.
    pub fn show(
        &self,
        settings: &Settings,
        path: &Path,
        first: usize,
        count: usize,
    ) -> Result<Lines, Error> {
        if !self.has(path)? {
            return Err(Error::Unknown(path.display().to_string()));
        }
        let said = read(path, settings)?;
        let first = first.max(1);
        let mut room = MAX_SHOWN_CHARS;
        let mut lines = Vec::new();
        for line in said.lines().skip(first - 1).take(count) {
            if room == 0 {
                break;
            }
            let line: String = line.chars().take(room).collect();
            room = room.saturating_sub(line.chars().count() + 1);
            lines.push(line);
        }
        Ok(Lines {
            first,
            lines,
            total: said.lines().count(),
        })
    }
}

/// A file of a named folder, read by the same rules as for the index.
fn read(path: &Path, settings: &Settings) -> Result<String, Error> {
    let failed = |source| Error::Read {
        path: path.display().to_string(),
        source,
    };
    if !settings
        .folders
        .iter()
        .any(|folder| path.starts_with(folder))
    {
        return Err(Error::Unknown(path.display().to_string()));
    }
    let bytes = open::file(path).and_then(|file| file.read(settings.max_file_bytes));
    let bytes = bytes.map_err(failed)?;
    let unknown = || Error::Unknown(path.display().to_string());
    let text = bytes.and_then(text);
    text.filter(|text| settings.secrets || !looks_secret(text))
        .ok_or_else(unknown)
}

/// The best line of a part and its neighbours.
fn best(said: &str, question: &Question, first: usize, count: usize) -> (usize, String) {
    let lines: Vec<&str> = said.lines().skip(first - 1).take(count).collect();
    let fits = lines.iter().map(|line| question.fits(line));
    // Of equal lines, the first is used.
    let at = fits.enumerate().rev().max_by_key(|(_, fits)| *fits);
    let at = at.map_or(0, |(at, _)| at);
    let from = at.saturating_sub(HIT_LINES / 2);
    let shown: Vec<String> = lines
        .iter()
        .skip(from)
        .take(HIT_LINES)
        .map(|line| around(line, question))
        .collect();
    (first + at, shown.join("\n"))
}

/// Shortens a long line around its first matching word.
fn around(line: &str, question: &Question) -> String {
    let chars: Vec<char> = line.trim_end().chars().collect();
    if chars.len() <= MAX_LINE_CHARS {
        return chars.into_iter().collect();
    }
    let lower = line.to_lowercase();
    let at = question
        .plain
        .iter()
        .filter_map(|term| lower.find(term.as_str()))
        .min();
    let at = at.map_or(0, |at| lower[..at].chars().count());
    let from = at
        .saturating_sub(MAX_LINE_CHARS / 3)
        .min(chars.len() - MAX_LINE_CHARS);
    let shown: String = chars[from..from + MAX_LINE_CHARS].iter().collect();
    format!("{}{shown}…", if from > 0 { "…" } else { "" })
}
