//! `edit`: replaces text in a file, unambiguously.

use super::Error;
use serde::Deserialize;
use std::borrow::Cow;
use std::path::Path;

/// Maximum number of line numbers in an error about text that is not unique.
const MAX_PLACES: usize = 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditArguments {
    pub(crate) path: String,
    pub(crate) old_string: String,
    pub(crate) new_string: String,
    #[serde(default)]
    pub(crate) replace_all: bool,
}

/// Returns the new text of a file and a description, or the reason for the failure.
pub(super) fn edited(
    path: &Path,
    text: &str,
    arguments: &EditArguments,
) -> Result<(String, String), Error> {
    let (new, told) = replace(text, arguments)
        .map_err(|why| Error::Content(format!("{}: {why}; nothing was changed", path.display())))?;
    Ok((new, format!("edited {}: {told}", path.display())))
}

/// Refuses arguments that are invalid for every file.
pub(super) fn check(arguments: &EditArguments) -> Result<(), Error> {
    if arguments.old_string.is_empty() {
        return Err(Error::Content(
            "old_string is empty; to create or replace a whole file use `write`".into(),
        ));
    }
    if arguments.old_string == arguments.new_string {
        return Err(Error::Content(
            "old_string and new_string are the same".into(),
        ));
    }
    Ok(())
}

/// Returns the new text and a description, or the reason for the failure.
fn replace(text: &str, arguments: &EditArguments) -> Result<(String, String), String> {
    let old = with_line_ends(&arguments.old_string, text);
    let new = with_line_ends(&arguments.new_string, text);
    let places = places(text, &old);
    match (places.as_slice(), arguments.replace_all) {
        ([], _) => Err(format!("old_string was not found{}", hint(text, &old))),
        ([at], _) => {
            let replaced = [&text[..*at], &new, &text[at + old.len()..]].concat();
            Ok((
                replaced,
                format!("replaced the text at line {}", line_of(text, *at)),
            ))
        }
        (_, true) => {
            let count = text.matches(old.as_ref()).count();
            Ok((
                text.replace(old.as_ref(), &new),
                format!("replaced {count} occurrences"),
            ))
        }
        (several, false) => {
            let lines: Vec<String> = several
                .iter()
                .take(MAX_PLACES)
                .map(|at| line_of(text, *at).to_string())
                .collect();
            let more = if several.len() > MAX_PLACES {
                ", ..."
            } else {
                ""
            };
            Err(format!(
                "old_string occurs {} times (lines {}{more}); add surrounding lines to make it unique, or set replace_all",
                several.len(),
                lines.join(", ")
            ))
        }
    }
}

/// Converts `\n`, which models write, to the file's CRLF line ends.
fn with_line_ends<'a>(part: &'a str, text: &str) -> Cow<'a, str> {
    let crlf = text.matches("\r\n").count();
    let lines = text.matches('\n').count();
    if crlf * 2 > lines && !part.contains('\r') && part.contains('\n') {
        Cow::Owned(part.replace('\n', "\r\n"))
    } else {
        Cow::Borrowed(part)
    }
}

/// Finds the offsets of `old`, including overlapping ones: `aa` in `aaa` is
/// ambiguous.
fn places(text: &str, old: &str) -> Vec<usize> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(old) {
        found.push(from + at);
        from += at + step;
    }
    found
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Names the location of similar text, for the next attempt.
fn hint(text: &str, old: &str) -> String {
    let wanted: Vec<String> = old.lines().map(squeezed).collect();
    let have: Vec<String> = text.lines().map(squeezed).collect();
    let same = |at: usize| have[at..].starts_with(&wanted);
    if !wanted.is_empty()
        && let Some(at) = (0..have.len()).find(|at| same(*at))
    {
        return format!(
            "; line {} matches but for white space, which must be exact: {:?}",
            at + 1,
            text.lines().nth(at).unwrap_or_default()
        );
    }
    let Some(first) = wanted.iter().find(|l| !l.is_empty()) else {
        return String::new();
    };
    match have.iter().position(|l| l == first) {
        Some(at) => format!(
            "; line {} begins like it, but what follows differs: read the file again",
            at + 1
        ),
        None => "; no line of the file is like its first: read the file again".into(),
    }
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
