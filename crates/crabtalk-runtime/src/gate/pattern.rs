//! Matches the patterns of permission rules.
//!
//! Invariant: the cost is the product of both lengths, whatever the pattern;
//! what is unknown in a command (a [`HOLE`]) satisfies a `*` and nothing else
//! when access is granted, and everything when access is refused.

/// Stands in a command's text for what only the shell will know, such as the
/// value of a variable. A Unicode noncharacter: no command may contain it.
pub(crate) const HOLE: char = '\u{FFFF}';

/// Stands for a blank within a word, so that a blank of an allowing pattern
/// matches only what stands between words. A noncharacter as well.
pub(crate) const INNER: char = '\u{FFFE}';

/// What a hole may stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holes {
    /// The match must hold whatever the hole is: only `*` covers it.
    Sure,
    /// The match must be possible for some content of the hole.
    Maybe,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Literal(char),
    One {
        slash: bool,
    },
    Many {
        slash: bool,
    },
    /// Before a [`Token::Folders`], which it lets be skipped.
    Optional,
    /// Any text that ends with `/`.
    Folders,
}

/// Whether a command pattern matches the text of one simple command.
pub(crate) fn command(pattern: &str, text: &str, holes: Holes) -> bool {
    let tokens: Vec<Token> = pattern
        .trim()
        .chars()
        .map(|c| match c {
            '*' => Token::Many { slash: true },
            '?' => Token::One { slash: true },
            c => Token::Literal(c),
        })
        .collect();
    run(&tokens, text, holes)
}

/// Whether a command pattern holds no wildcard.
pub(crate) fn is_literal(pattern: &str) -> bool {
    !pattern.contains(['*', '?'])
}

/// Whether a command pattern covers every command, known or not.
pub(crate) fn is_everything(pattern: &str) -> bool {
    let pattern = pattern.trim();
    !pattern.is_empty() && pattern.chars().all(|c| c == '*')
}

/// Whether an absolute path pattern matches an absolute path: `*` and `?`
/// stop at `/`, `**` does not, and a whole component `**` also stands for no
/// folder at all.
pub(crate) fn path(pattern: &str, text: &str) -> bool {
    run(&path_tokens(pattern), text, Holes::Sure)
}

fn path_tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let begins = tokens.last().is_none_or(|t| *t == Token::Literal('/'));
        if begins && let Some(after) = rest.strip_prefix("**/") {
            tokens.extend([Token::Optional, Token::Folders]);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("**") {
            tokens.push(Token::Many { slash: true });
            rest = after;
        } else {
            tokens.push(match c {
                '*' => Token::Many { slash: false },
                '?' => Token::One { slash: false },
                c => Token::Literal(c),
            });
            rest = &rest[c.len_utf8()..];
        }
    }
    tokens
}

/// Runs the tokens as an automaton whose states are the positions in them.
fn run(tokens: &[Token], text: &str, holes: Holes) -> bool {
    let end = tokens.len();
    let mut now = vec![false; end + 1];
    now[0] = true;
    settle(tokens, &mut now);
    for c in text.chars() {
        let mut next = vec![false; end + 1];
        if c == HOLE && holes == Holes::Maybe {
            if let Some(first) = now.iter().position(|on| *on) {
                next[first..].fill(true);
            }
        } else {
            step(tokens, &now, c, &mut next);
        }
        settle(tokens, &mut next);
        now = next;
    }
    now[end]
}

/// Consumes one character.
fn step(tokens: &[Token], now: &[bool], c: char, next: &mut [bool]) {
    for (at, token) in tokens.iter().enumerate().filter(|(at, _)| now[*at]) {
        match token {
            Token::Literal(want) => next[at + 1] |= *want == c && c != HOLE,
            Token::One { slash } => next[at + 1] |= c != HOLE && (*slash || c != '/'),
            Token::Many { slash } => next[at] |= *slash || c != '/',
            Token::Folders => {
                next[at] = true;
                next[at + 1] |= c == '/';
            }
            Token::Optional => {}
        }
    }
}

/// Follows what costs no character.
fn settle(tokens: &[Token], states: &mut [bool]) {
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Many { .. } if states[at] => states[at + 1] = true,
            Token::Optional if states[at] => {
                states[at + 1] = true;
                states[at + 2] = true;
            }
            Token::Literal(_)
            | Token::One { .. }
            | Token::Many { .. }
            | Token::Optional
            | Token::Folders => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_a_command_matches_anything() {
        for (pattern, text, want) in [
            ("git status*", "git status", true),
            ("git status*", "git status -s", true),
            ("git status*", "git stash", false),
            ("git * --stat", "git log a/b --stat", true),
            ("*", "", true),
            ("rm ?", "rm x", true),
            ("rm ?", "rm xy", false),
        ] {
            assert_eq!(
                command(pattern, text, Holes::Sure),
                want,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn a_hole_grants_only_below_a_star_and_refuses_everywhere() {
        let text = format!("git {HOLE}");
        for (pattern, sure, maybe) in [
            ("git *", true, true),
            ("git status*", false, true),
            ("git ?", false, true),
            ("git push origin", false, true),
            ("rm *", false, false),
        ] {
            assert_eq!(command(pattern, &text, Holes::Sure), sure, "{pattern}");
            assert_eq!(command(pattern, &text, Holes::Maybe), maybe, "{pattern}");
        }
    }

    #[test]
    fn stars_in_paths_stop_at_slashes() {
        for (pattern, text, want) in [
            ("/etc/*", "/etc/passwd", true),
            ("/etc/*", "/etc/ssl/key", false),
            ("/etc/**", "/etc/ssl/key", true),
            ("/w/**/x", "/w/x", true),
            ("/w/**/x", "/w/a/b/x", true),
            ("/w/**/x", "/w/ax", false),
            ("/w/a**/x", "/w/ax", false),
            ("/w/a**/x", "/w/ab/c/x", true),
            ("/w/*.rs", "/w/a.rs", true),
            ("/w/?", "/w//", false),
            ("/**/.env", "/.env", true),
        ] {
            assert_eq!(path(pattern, text), want, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_cost_no_more_than_their_number() {
        let pattern = "*a".repeat(2000);
        assert!(!command(&pattern, &"a".repeat(1999), Holes::Sure));
    }
}
