//! sed: scripts that are made of the usual short commands.
//!
//! Invariant: where two implementations may see the end of a pattern in
//! different places, the script is not harmless.

use super::Checked;
use crate::gate::pattern::HOLE;
use crate::gate::plain::Word;
use crate::gate::programs::Program;

/// A set in brackets may hold these words; some take what is in them for the end of
/// the set, others do not.
const CLASSES: &str = "[:alpha:] [:digit:] [:alnum:] [:space:] [:blank:] [:upper:] [:lower:] \
    [:punct:] [:cntrl:] [:graph:] [:print:] [:xdigit:]";

/// Only the options of its row, and a script of known commands.
pub(super) fn check(program: &Program, args: &[Word], spelled: usize) -> Checked {
    let rest = program.listed(args, spelled)?;
    let mut scripts: Vec<String> = rest.values("-e").map(str::to_owned).collect();
    if scripts.is_empty() {
        scripts.extend(rest.words().next().map(|(_, word)| word.text()));
    }
    let may_differ = |word: &Word| word.has_glob() && scripts.contains(&word.text());
    let globs = args.iter().any(may_differ);
    match scripts.iter().find(|script| globs || !is_plain(script)) {
        Some(script) => Err(script.clone()),
        None => Ok(()),
    }
}

/// `10,20p`, `$d`, `/text/p`, `s/a/b/g`, and lists of these.
fn is_plain(script: &str) -> bool {
    let mut rest = script.trim();
    if rest.contains(HOLE) {
        return false;
    }
    while !rest.is_empty() {
        rest = rest.trim_start_matches([' ', ';', '\n']);
        for _ in 0..2 {
            let Some(tail) = after_address(rest) else {
                return false;
            };
            rest = tail.trim_start_matches([' ', ',', '!', '~', '+']);
        }
        let mut chars = rest.chars();
        rest = match chars.next() {
            None => return true,
            Some('p' | 'd' | 'q' | '=') => chars.as_str(),
            Some('y') => match after_swap(chars.as_str()) {
                Some(tail) => tail,
                None => return false,
            },
            Some('s') => match after_swap(chars.as_str()) {
                Some(tail) => {
                    tail.trim_start_matches(|c: char| "gpiIM".contains(c) || c.is_ascii_digit())
                }
                None => return false,
            },
            Some(_) => return false,
        };
        if !rest.is_empty() && !rest.starts_with([';', '\n']) {
            return rest.trim().is_empty();
        }
    }
    true
}

/// What follows an address, if there is one that is understood.
fn after_address(text: &str) -> Option<&str> {
    match text.strip_prefix('/') {
        Some(rest) => after_pattern(rest, '/'),
        None => Some(text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '$')),
    }
}

/// What follows the two parts of `s/a/b/`.
fn after_swap(text: &str) -> Option<&str> {
    let mark = text.chars().next()?;
    if !"/|,#:@!%_+=~".contains(mark) {
        return None;
    }
    let mut rest = after_pattern(&text[1..], mark)?.chars();
    loop {
        let c = rest.next()?;
        if c == mark {
            return Some(rest.as_str());
        }
        let escaped = if c == '\\' { rest.next()? } else { c };
        if escaped == '\n' {
            return None;
        }
    }
}

/// What follows the `mark` that ends a pattern. A set in brackets that holds
/// the mark, a backslash before something odd, or a bracket, is not understood.
fn after_pattern(text: &str, mark: char) -> Option<&str> {
    let mut rest = text;
    loop {
        let c = rest.chars().next()?;
        let tail = &rest[c.len_utf8()..];
        rest = match c {
            '\n' => return None,
            '\\' => {
                let next = tail.chars().next()?;
                if next == '\n' {
                    return None;
                }
                &tail[next.len_utf8()..]
            }
            '[' => after_set(tail, mark)?,
            c if c == mark => return Some(tail),
            _ => tail,
        };
    }
}

/// What follows a set whose opening bracket is gone.
fn after_set(text: &str, mark: char) -> Option<&str> {
    let mut rest = text.strip_prefix('^').unwrap_or(text);
    // A bracket at the front is one of the set, to all that follow POSIX.
    if rest.starts_with(']') {
        return None;
    }
    loop {
        if let Some(class) = CLASSES.split(' ').find(|class| rest.starts_with(class)) {
            rest = &rest[class.len()..];
            continue;
        }
        let c = rest.chars().next()?;
        rest = &rest[c.len_utf8()..];
        match c {
            ']' => return Some(rest),
            '[' | '\n' => return None,
            // `[\n\t]` is common; what a backslash means elsewhere is not agreed on.
            '\\' if !rest.starts_with(['n', 't', '.', 's', 'w', 'd']) => return None,
            c if c == mark => return None,
            _ => {}
        }
    }
}
