//! Reads one word as the shell would after removing its quotes.
//!
//! Invariant: what only the shell will know becomes a hole, and quoting that
//! does not add up makes the whole word one.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not listed is unknown, also in a later version of the parser"
)]

use crate::gate::pattern::HOLE;
use rable::{Node, NodeKind};

/// What a word holds beside its text.
pub(super) enum Found<'a> {
    /// A command whose output stands in it, which is judged as well.
    Command(&'a Node),
    /// Something that only the shell will know, and why.
    Unknown(&'static str),
}

/// A word without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// Its text, with holes.
    pub(super) text: String,
    /// Whether it begins with an unquoted `~` that means the home.
    pub(super) tilde: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

struct Reader<'a> {
    text: String,
    quote: Quote,
    tilde: bool,
    /// An unquoted `{` was seen; with a `,` or `..` after it the shell makes
    /// several words of this one.
    brace: bool,
    /// Several words, or none that can be told.
    unclear: bool,
    started: bool,
    found: Vec<Found<'a>>,
}

/// Reads a word, and yields what it holds beside its text in the order in which it stands there.
pub(super) fn read(node: &Node) -> (Word, Vec<Found<'_>>) {
    let NodeKind::Word { value, parts, .. } = &node.kind else {
        return (unclear(), vec![Found::Unknown("a word is not understood")]);
    };
    // The command, not the beginning of a set of characters.
    if value == "[" {
        let word = Word {
            text: value.clone(),
            tilde: false,
        };
        return (word, Vec::new());
    }
    let mut reader = Reader {
        text: String::new(),
        quote: Quote::None,
        tilde: false,
        brace: false,
        unclear: parts.is_empty() && !value.is_empty(),
        started: false,
        found: Vec::new(),
    };
    for (i, part) in parts.iter().enumerate() {
        reader.part(part, i + 1 == parts.len());
    }
    if reader.unclear || reader.quote != Quote::None {
        reader.unknown("quotes or expansions of a word are not understood");
        return (unclear(), reader.found);
    }
    let word = Word {
        text: reader.text,
        tilde: reader.tilde,
    };
    (word, reader.found)
}

/// A word of which nothing is known.
fn unclear() -> Word {
    Word {
        text: HOLE.to_string(),
        tilde: false,
    }
}

/// Whether `$` before this character begins an expansion.
fn expands(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_{([@*#?!$-'\"".contains(c)
}

/// Whether a parameter expansion does nothing but yield a value.
fn is_plain(param: &str) -> bool {
    let name = param.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    !param.is_empty() && (name || (param.len() == 1 && "@*#?!$-".contains(param)))
}

impl<'a> Reader<'a> {
    fn unknown(&mut self, reason: &'static str) {
        self.found.push(Found::Unknown(reason));
    }

    fn part(&mut self, part: &'a Node, last: bool) {
        match &part.kind {
            NodeKind::WordLiteral { value } => return self.literal(value, last),
            NodeKind::ParamExpansion {
                param,
                op: None,
                arg: None,
            } if is_plain(param) => {}
            NodeKind::ParamLength { param } if is_plain(param) => {}
            NodeKind::CommandSubstitution { command, .. } => {
                self.found.push(Found::Command(command));
            }
            NodeKind::ProcessSubstitution { command, .. } => {
                self.unknown("a process substitution runs beside the command");
                self.found.push(Found::Command(command));
            }
            NodeKind::BraceExpansion { .. } => self.brace = false,
            NodeKind::AnsiCQuote { .. } => {}
            NodeKind::ArithmeticExpansion {
                expression: Some(e),
            } if is_number(e) => {}
            _ => self.unknown("an expansion may run or change something"),
        }
        // A part within single quotes would mean that both readings differ.
        self.unclear |= self.quote == Quote::Single;
        self.started = true;
        self.text.push(HOLE);
    }

    fn literal(&mut self, value: &str, last: bool) {
        let mut chars = value.chars().peekable();
        while let Some(c) = chars.next() {
            let first = !self.started;
            self.started = true;
            match (self.quote, c) {
                (Quote::Single, '\'') => self.quote = Quote::None,
                (Quote::Single, c) => self.text.push(c),
                (Quote::Double, '"') => self.quote = Quote::None,
                (Quote::None, '"') => self.quote = Quote::Double,
                (Quote::None, '\'') => self.quote = Quote::Single,
                (_, '`') => self.unclear = true,
                (_, '$') => {
                    self.unclear |= chars.peek().map_or(!last, |next| expands(*next));
                    self.text.push('$');
                }
                (Quote::None, '\\') => match chars.next() {
                    Some('\n') => {}
                    Some(next) => self.text.push(next),
                    None => self.text.push('\\'),
                },
                (Quote::Double, '\\') => match chars.peek().copied() {
                    Some('\n') => {
                        chars.next();
                    }
                    Some(next) if "$`\"\\".contains(next) => {
                        chars.next();
                        self.text.push(next);
                    }
                    _ => self.text.push('\\'),
                },
                (Quote::Double, c) => self.text.push(c),
                (Quote::None, c) => {
                    let next = chars.peek().copied();
                    self.unquoted(c, next, first && value.starts_with('~'));
                }
            }
        }
    }

    fn unquoted(&mut self, c: char, next: Option<char>, first: bool) {
        match c {
            '~' if first && next.is_none_or(|n| n == '/') => {
                self.tilde = true;
                self.text.push('~');
            }
            '~' if first => self.text.push(HOLE),
            '*' | '?' | '[' => self.text.push(HOLE),
            '(' | ')' | '<' | '>' | '&' | ';' | '|' | '\n' => self.unclear = true,
            '{' => {
                self.brace = true;
                self.text.push('{');
            }
            ',' if self.brace => self.unclear = true,
            '.' if self.brace && next == Some('.') => self.unclear = true,
            c => self.text.push(c),
        }
    }
}

/// Whether an arithmetic expression is made of numbers alone: names in it may
/// hold text that is evaluated in turn.
fn is_number(node: &Node) -> bool {
    if let NodeKind::ArithBinaryOp { left, right, .. } = &node.kind {
        return is_number(left) && is_number(right);
    }
    matches!(&node.kind, NodeKind::ArithNumber { value } if value.bytes().all(|b| b.is_ascii_digit()))
}

/// Joins words as they are shown and matched.
pub(super) fn join(words: &[String]) -> String {
    words.join(" ")
}

/// Joins words so that no two different lists look the same.
pub(super) fn join_quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-^~{}".contains(c) || c == HOLE;
    let quoted: Vec<String> = words
        .iter()
        .map(|word| {
            if !word.is_empty() && word.chars().all(plain) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        })
        .collect();
    quoted.join(" ")
}
