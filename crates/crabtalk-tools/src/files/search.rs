//! `grep` and `glob`: search the files below a judged folder.
//!
//! Invariants: links are not followed; `.git` and CrabTalk's home are not entered;
//! ignore files above the folder do not apply; a search is bounded in files, matches and
//! bytes.

use super::open::{Opened, open_to_read};
use super::{Error, is_below};
use globset::{GlobBuilder, GlobMatcher};
use grep_regex::RegexMatcherBuilder;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkError, SinkMatch,
};
use ignore::{DirEntry, WalkBuilder};
use serde::Deserialize;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum entries that a search visits: a large monorepo.
const MAX_ENTRIES: usize = 200_000;

/// Default and maximum number of matches or paths.
const DEFAULT_LIMIT: usize = 200;
const MAX_LIMIT: usize = 2_000;

/// Maximum bytes of a result, to limit its share of the context.
const MAX_BYTES: usize = 48 << 10;

/// Maximum characters shown of a line.
const MAX_LINE_CHARS: usize = 400;

/// Maximum context lines around a match.
const MAX_CONTEXT: usize = 20;

/// Maximum memory for one line in the searcher.
const MAX_LINE_BYTES: usize = 4 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrepArguments {
    pattern: String,
    pub(crate) path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    context: usize,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    files_only: bool,
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GlobArguments {
    pattern: String,
    pub(crate) path: Option<String>,
    limit: Option<usize>,
}

/// The scope of a search.
pub(crate) struct Searched<'a> {
    /// The judged file or folder, without links.
    pub(crate) root: &'a Path,
    /// The run's folder; results are relative to it.
    pub(crate) cwd: &'a Path,
    /// The home, `$CRABTALK_HOME`.
    pub(crate) home: &'a Path,
    /// Set if the caller is gone.
    pub(crate) cancelled: &'a AtomicBool,
}

/// Searches contents by a regular expression.
pub(crate) fn grep(of: &Searched<'_>, arguments: &GrepArguments) -> Result<String, Error> {
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(arguments.ignore_case)
        .line_terminator(Some(b'\n'))
        .build(&arguments.pattern)
        .map_err(|e| {
            Error::Content(format!(
                "the pattern is not a valid regular expression: {e}"
            ))
        })?;
    let glob = arguments.glob.as_deref().map(matcher_of).transpose()?;
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .before_context(arguments.context.min(MAX_CONTEXT))
        .after_context(arguments.context.min(MAX_CONTEXT))
        .heap_limit(Some(MAX_LINE_BYTES))
        .build();
    let mut found = ResultLines::new(arguments.limit);
    of.walk(&mut found, &mut |path, found| {
        if !glob.as_ref().is_none_or(|glob| of.matches(glob, path)) {
            return;
        }
        // A missing or unreadable file has no matches.
        let Ok(Opened::File(file)) = open_to_read(path) else {
            return;
        };
        let mut lines = Lines {
            path: of.shown(path),
            files_only: arguments.files_only,
            found,
        };
        let _ = searcher.search_file(&matcher, &file, &mut lines);
    });
    Ok(found.finish())
}

/// Lists files whose path matches a glob.
pub(crate) fn glob(of: &Searched<'_>, arguments: &GlobArguments) -> Result<String, Error> {
    let glob = matcher_of(&arguments.pattern)?;
    let mut found = ResultLines::new(arguments.limit);
    of.walk(&mut found, &mut |path, found| {
        if of.matches(&glob, path) {
            found.add(&of.shown(path));
        }
    });
    Ok(found.finish())
}

/// Compiles a glob. A pattern without `/` matches names at any depth.
fn matcher_of(pattern: &str) -> Result<GlobMatcher, Error> {
    let anywhere = match pattern.contains('/') {
        true => pattern.trim_start_matches("./").to_owned(),
        false => format!("**/{pattern}"),
    };
    let glob = GlobBuilder::new(&anywhere).literal_separator(true).build();
    let glob = glob.map_err(|e| Error::Content(format!("the glob is not valid: {e}")))?;
    Ok(glob.compile_matcher())
}

impl Searched<'_> {
    /// Visits the files below the root, ordered by name.
    fn walk(&self, found: &mut ResultLines, visit: &mut dyn FnMut(&Path, &mut ResultLines)) {
        let home = self.home.to_owned();
        let enters = move |entry: &DirEntry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.file_name() != ".git" && !(is_folder && is_below(entry.path(), &home))
        };
        let entries = WalkBuilder::new(self.root)
            .follow_links(false)
            .hidden(false)
            .parents(false)
            .git_global(false)
            .require_git(false)
            .filter_entry(enters)
            .sort_by_file_name(Ord::cmp)
            .build();
        for (visited, entry) in entries.flatten().enumerate() {
            if self.cancelled.load(Ordering::Relaxed) || found.is_full() {
                return;
            }
            if visited == MAX_ENTRIES {
                found.note = Some(format!(
                    "the search stopped after {MAX_ENTRIES} files; name a folder below"
                ));
                return;
            }
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                visit(entry.path(), found);
            }
        }
    }

    fn matches(&self, glob: &GlobMatcher, path: &Path) -> bool {
        let below = path.strip_prefix(self.root).ok();
        let below = below.filter(|below| !below.as_os_str().is_empty());
        glob.is_match(below.unwrap_or_else(|| path.file_name().map_or(path, Path::new)))
    }

    fn shown(&self, path: &Path) -> String {
        let shown: PathBuf = path.strip_prefix(self.cwd).unwrap_or(path).to_owned();
        shown.to_string_lossy().into_owned()
    }
}

/// The bounded lines of a result.
struct ResultLines {
    text: String,
    count: usize,
    limit: usize,
    note: Option<String>,
}

impl ResultLines {
    fn new(limit: Option<usize>) -> Self {
        Self {
            text: String::new(),
            count: 0,
            limit: limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
            note: None,
        }
    }

    fn is_full(&self) -> bool {
        self.count >= self.limit || self.text.len() >= MAX_BYTES
    }

    /// Adds a line that counts as a result.
    fn add(&mut self, line: &str) {
        self.push(line);
        self.count += 1;
        if self.is_full() {
            let count = self.count;
            let note = format!("only the first {count} results; narrow the search for the rest");
            self.note = Some(note);
        }
    }

    fn push(&mut self, line: &str) {
        let _ = writeln!(self.text, "{line}");
    }

    fn finish(self) -> String {
        match (self.text.is_empty(), self.note) {
            (true, None) => "No matches".into(),
            (_, None) => self.text,
            (_, Some(note)) => format!("{}[{note}]\n", self.text),
        }
    }
}

/// Collects the matches of one file.
struct Lines<'a> {
    path: String,
    files_only: bool,
    found: &'a mut ResultLines,
}

impl Lines<'_> {
    fn line(&self, mark: char, number: Option<u64>, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let mut shown: String = text.chars().take(MAX_LINE_CHARS).collect();
        if text.chars().nth(MAX_LINE_CHARS).is_some() {
            shown.push('…');
        }
        let number = number.unwrap_or_default();
        format!("{}{mark}{number}{mark}{shown}", self.path)
    }
}

impl Sink for Lines<'_> {
    type Error = StopSearch;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, StopSearch> {
        if self.files_only {
            self.found.add(&self.path);
            return Ok(false);
        }
        let line = self.line(':', found.line_number(), found.bytes());
        self.found.add(&line);
        Ok(!self.found.is_full())
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> Result<bool, StopSearch> {
        if !self.files_only {
            let line = self.line('-', around.line_number(), around.bytes());
            self.found.push(&line);
        }
        Ok(!self.found.is_full())
    }
}

/// Ends the search of a file that cannot be read or has an overlong line.
#[derive(Debug)]
struct StopSearch;

impl SinkError for StopSearch {
    fn error_message<T: std::fmt::Display>(_: T) -> Self {
        Self
    }

    fn error_io(_: io::Error) -> Self {
        Self
    }
}
