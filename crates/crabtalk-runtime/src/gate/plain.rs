//! Reads the commands that a narrow rule may allow, and prints them anew.
//!
//! What runs under a narrow rule is not the text of a model but the print of
//! the words that were judged. So it does not matter whether this reader and a
//! shell agree on the text: they only have to agree on the print, which holds
//! quoted words, globs and a few operators.
//!
//! Invariants: what is not listed here is refused, never skipped; a print read
//! again yields the same words; no file name that a glob yields is an option.

mod read;

use crate::gate::pattern::{HOLE, INNER};
use std::path::Path;

/// Longest text that is read: what is longer nobody wants run unseen.
const MAX_BYTES: usize = 64 * 1024;

/// Why a text is not plain; continues "it".
pub(crate) type NotPlain = &'static str;

/// A program's name without its folder.
pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit('/')
        .find(|part| !part.is_empty())
        .unwrap_or(name)
}

/// A text that is made of simple commands alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) commands: Vec<Simple>,
}

/// What stands between a command and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joint {
    First,
    Pipe,
    And,
    Or,
    Then,
    Line,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) joint: Joint,
    pub(crate) words: Vec<Word>,
    /// Duplications of descriptors, and `/dev/null`: printed as they are.
    pub(crate) redirects: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Word {
    pub(crate) pieces: Vec<Piece>,
}

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Stands for itself.
    Text(String),
    /// `*`, `?` or a set in brackets: the shell replaces it by names.
    Glob(String),
}

impl Plain {
    /// Reads a text. `home` is what `~` stands for.
    pub(crate) fn read(text: &str, home: Option<&Path>) -> Result<Self, NotPlain> {
        if text.len() > MAX_BYTES {
            return Err("is too long");
        }
        if text.chars().any(is_odd) {
            return Err("holds control characters or unusual blanks");
        }
        let home = home.and_then(Path::to_str);
        let commands = read::commands(text, home)?;
        if commands.is_empty() {
            return Err("is empty");
        }
        Ok(Self { commands })
    }

    /// The text that runs.
    pub(crate) fn printed(&self) -> String {
        let mut out = String::new();
        for command in &self.commands {
            out.push_str(match command.joint {
                Joint::First => "",
                Joint::Pipe => " | ",
                Joint::And => " && ",
                Joint::Or => " || ",
                Joint::Then => "; ",
                Joint::Line => "\n",
            });
            out.push_str(&command.printed());
        }
        out
    }
}

impl Simple {
    fn after(joint: Joint) -> Self {
        Self {
            joint,
            words: Vec::new(),
            redirects: Vec::new(),
        }
    }

    pub(crate) fn printed(&self) -> String {
        let words = self.words.iter().map(Word::printed);
        let all: Vec<String> = words.chain(self.redirects.iter().cloned()).collect();
        all.join(" ")
    }

    /// What patterns are matched against: globs are holes, and what stands
    /// between words differs from blanks within one.
    pub(crate) fn matched(&self) -> String {
        let words: Vec<String> = self.words.iter().map(Word::matched).collect();
        words.join(" ")
    }

    /// Its name, if it has any that a table could hold.
    pub(crate) fn name(&self) -> String {
        self.words.first().map(Word::text).unwrap_or_default()
    }
}

impl Word {
    pub(crate) fn of(text: &str) -> Self {
        Self {
            pieces: vec![Piece::Text(text.to_owned())],
        }
    }

    /// Its text, globs as they are written.
    pub(crate) fn text(&self) -> String {
        self.pieces.iter().map(Piece::as_str).collect()
    }

    pub(crate) fn has_glob(&self) -> bool {
        self.pieces.iter().any(|p| matches!(p, Piece::Glob(_)))
    }

    /// What surely stands before anything that a glob yields.
    pub(crate) fn sure_start(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(text)) => text,
            Some(Piece::Glob(_)) | None => "",
        }
    }

    fn matched(&self) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => {
                    let inner = |c: char| if c.is_whitespace() { INNER } else { c };
                    out.extend(text.chars().map(inner));
                }
                Piece::Glob(_) => out.push(HOLE),
            }
        }
        out
    }

    fn printed(&self) -> String {
        if let [Piece::Text(text)] = self.pieces.as_slice() {
            return quoted(text);
        }
        let print = |piece: &Piece| match piece {
            Piece::Text(text) => quoted(text),
            Piece::Glob(glob) => glob.clone(),
        };
        self.pieces.iter().map(print).collect()
    }

    fn push(&mut self, c: char) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(c),
            Some(Piece::Glob(_)) | None => self.pieces.push(Piece::Text(c.to_string())),
        }
    }

    /// Adds a glob. One at the front gets `./` before it, so that no name that
    /// it yields begins with a dash.
    fn glob(&mut self, glob: String) {
        if self.pieces.is_empty() {
            self.pieces.push(Piece::Text("./".into()));
        }
        self.pieces.push(Piece::Glob(glob));
    }
}

impl Piece {
    fn as_str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Glob(text) => text,
        }
    }
}

/// Quotes a text unless it plainly needs no quotes.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:@%+=".contains(c);
    if matches!(text, "[" | "]") || (!text.is_empty() && text.chars().all(plain)) {
        return text.to_owned();
    }
    // A quote stands in double quotes, since a backslash outside of quotes is
    // not plain, and a print has to be.
    format!("'{}'", text.replace('\'', r#"'"'"'"#))
}

/// What is not seen, or not seen as what it is; and blanks that only some
/// programs take for such.
fn is_odd(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}'
        | '\u{e0000}'..='\u{e0fff}')
        || (c.is_control() && c != '\n' && c != '\t')
        || (c.is_whitespace() && !c.is_ascii())
        || (u32::from(c) & 0xfffe) == 0xfffe
}
