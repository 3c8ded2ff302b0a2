//! `edit`: replaces text in a file, unambiguously.

use super::Error;
use super::open::Spot;
use serde::Deserialize;
use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

/// Largest file that is edited: it is held in memory, twice.
const MAX_EDIT_BYTES: u64 = 16 << 20;

/// Places named in an error about text that is not unique.
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

/// Replaces text at a judged path; tells where.
pub(crate) fn edit(path: &Path, arguments: &EditArguments) -> Result<String, Error> {
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
    let spot = Spot::reach(path, false)?;
    let mut old = spot
        .existing()?
        .ok_or_else(|| Error::NotFound(path.to_path_buf()))?;
    let mut bytes = Vec::new();
    (&mut old)
        .take(MAX_EDIT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::io("read", path, e))?;
    if bytes.len() as u64 > MAX_EDIT_BYTES {
        return Err(Error::Content(format!(
            "{} is larger than {} MiB; change it with bash",
            path.display(),
            MAX_EDIT_BYTES >> 20
        )));
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        Error::Content(format!(
            "{} is not UTF-8 (byte {} is the first that is not); change it with bash",
            path.display(),
            e.utf8_error().valid_up_to()
        ))
    })?;
    let (new, told) = replace(&text, arguments)
        .map_err(|why| Error::Content(format!("{}: {why}; nothing was changed", path.display())))?;
    spot.replace(new.as_bytes(), Some(&old))?;
    Ok(format!("edited {}: {told}", path.display()))
}

/// The new text and what was done, or why it cannot be done.
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

/// Models write `\n`; a file that ends its lines with CRLF keeps doing so.
fn with_line_ends<'a>(part: &'a str, text: &str) -> Cow<'a, str> {
    let crlf = text.matches("\r\n").count();
    let lines = text.matches('\n').count();
    if crlf * 2 > lines && !part.contains('\r') && part.contains('\n') {
        Cow::Owned(part.replace('\n', "\r\n"))
    } else {
        Cow::Borrowed(part)
    }
}

/// Where `old` begins, overlapping places included: `aa` in `aaa` is as
/// ambiguous as two separate ones.
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

/// Where something alike is, so that the next attempt can be right.
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
