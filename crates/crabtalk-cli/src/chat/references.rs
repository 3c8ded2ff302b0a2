//! References in a message: `@path`, `@"a path"` and `@agent`.
//!
//! Invariants: a reference begins a word, so that an address like `a@b.c` does not count; text in
//! code spans and code blocks has no references.

use std::ops::Range;
use std::path::Path;

/// Characters that may precede a reference.
const OPENING: [char; 3] = ['(', '[', '{'];

/// Punctuation after a reference, unless a known name ends with it.
const CLOSING: [char; 9] = [',', ';', ':', '.', ')', ']', '}', '?', '!'];

/// A reference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reference<'a> {
    /// Its byte range, including the `@`.
    pub(super) range: Range<usize>,
    pub(super) name: &'a str,
    pub(super) is_known: bool,
}

/// Whether a name is a file or folder, or one of the agents.
pub(super) fn is_known(name: &str, agents: &[String], cwd: &Path) -> bool {
    agents.iter().any(|agent| agent == name) || cwd.join(name).exists()
}

/// The references of a text in order.
pub(super) fn references(text: &str, is_known: impl Fn(&str) -> bool) -> Vec<Reference<'_>> {
    let code = code(text);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find('@').map(|at| from + at) {
        from = at + 1;
        if !begins(&text[..at]) || code.iter().any(|code| code.contains(&at)) {
            continue;
        }
        let rest = &text[at + 1..];
        if let Some((name, _)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            from = at + name.len() + 3;
            found.push(Reference {
                range: at..from,
                name,
                is_known: is_known(name),
            });
            continue;
        }
        let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
        let (name, is_known) = named(word, &is_known);
        if !name.is_empty() && !name.starts_with(['@', '"']) {
            let range = at..at + 1 + name.len();
            found.push(Reference {
                range,
                name,
                is_known,
            });
        }
        from = at + 1 + word.len();
    }
    found.retain(|reference| !reference.name.is_empty());
    found
}

/// Whether a reference may begin after this text.
pub(super) fn begins(before: &str) -> bool {
    let last = before.chars().next_back();
    last.is_none_or(|c| c.is_whitespace() || OPENING.contains(&c))
}

/// Whether a byte offset is in a code span or block.
pub(super) fn is_code(text: &str, at: usize) -> bool {
    code(text).iter().any(|code| code.contains(&at))
}

/// The longest known name at the beginning of a word, cut only at punctuation; otherwise
/// the word without trailing punctuation.
fn named(word: &str, is_known: impl Fn(&str) -> bool) -> (&str, bool) {
    let mut name = word;
    loop {
        if !name.is_empty() && is_known(name) {
            return (name, true);
        }
        match name.strip_suffix(CLOSING) {
            Some(shorter) => name = shorter,
            None => return (name, false),
        }
    }
}

/// The ranges of code spans and blocks: from a run of backticks to the next one of equal length.
fn code(text: &str) -> Vec<Range<usize>> {
    const BLOCK: usize = 3;
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(begin) = text[from..].find('`').map(|at| from + at) {
        let ticks = ticks(&text[begin..]);
        from = begin + ticks;
        let mut to = from;
        let end = loop {
            let Some(at) = text[to..].find('`').map(|at| to + at) else {
                break None;
            };
            let closing = self::ticks(&text[at..]);
            to = at + closing;
            if closing == ticks {
                break Some(to);
            }
        };
        // An open block is still being written.
        let end = end.or((ticks >= BLOCK).then_some(text.len()));
        if let Some(end) = end {
            found.push(begin..end);
            from = end;
        }
    }
    found
}

fn ticks(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of references; unknown ones with a question mark.
    fn found(text: &str) -> String {
        let known = ["a.txt", "my notes/to do.md", "dir/", "odd.", "rev", "[id]"];
        let found = references(text, |name| known.contains(&name));
        let names = found.iter().map(|reference| {
            let mark = if reference.is_known { "" } else { "?" };
            assert!(text[reference.range.clone()].starts_with('@'));
            format!("{}{mark}", reference.name)
        });
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn scan_finds_files_and_agents() {
        for (text, want) in [
            ("@rev is @a.txt right?", "rev a.txt"),
            ("see (@a.txt), @a.txt. and @odd.", "a.txt a.txt odd."),
            ("@\"my notes/to do.md\" and @dir/", "my notes/to do.md dir/"),
            ("line one\n@foo?! @[id]", "foo? [id]"),
            ("write to a@b.c or me@a.txt", ""),
            ("@ alone, @@twice, @, and @\"\"", ""),
            ("@\"open", ""),
            ("`@foo` and ``x ` @foo`` @bar", "bar?"),
            ("```\n@Override\n``` @foo", "foo?"),
            ("```\n@Override", ""),
            ("don`t @foo", "foo?"),
            ("\u{e9} @\u{e9}t\u{e9}\u{2026}", "\u{e9}t\u{e9}\u{2026}?"),
        ] {
            assert_eq!(found(text), want, "{text}");
        }
    }
}
