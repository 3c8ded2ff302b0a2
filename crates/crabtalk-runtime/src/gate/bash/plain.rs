//! Reads the commands that a narrow rule may allow, and prints them anew.
//!
//! What runs under a narrow rule is not the text of a model but the print of
//! the words that were judged. So it does not matter whether this reader and a
//! shell agree on the text: they only have to agree on the print, which holds
//! quoted words, globs and a few operators.
//!
//! Invariants: what is not listed here is refused, never skipped; a print read
//! again yields the same words; no file name that a glob yields is an option.

use crate::gate::pattern::{HOLE, INNER};
use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

/// Longest text that is read: what is longer nobody wants run unseen.
const MAX_BYTES: usize = 64 * 1024;

/// Words with which the shell's own grammar begins.
const RESERVED: [&str; 21] = [
    "if", "then", "elif", "else", "fi", "while", "until", "for", "in", "do", "done", "case",
    "esac", "select", "function", "time", "coproc", "!", "[[", "]]", "{",
];

/// Why a text is not plain; continues "it".
pub(crate) type NotPlain = &'static str;

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

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) joint: Joint,
    pub(crate) words: Vec<Word>,
    /// Duplications of descriptors, and `/dev/null`: printed as they are.
    pub(crate) redirects: Vec<String>,
}

/// One word.
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
        let mut reader = Reader {
            chars: text.chars().peekable(),
            home: home.and_then(Path::to_str),
            done: Vec::new(),
            now: Simple::after(Joint::First),
        };
        reader.commands()?;
        if reader.done.is_empty() {
            return Err("is empty");
        }
        Ok(Self {
            commands: reader.done,
        })
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
    format!("'{}'", text.replace('\'', r"'\''"))
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

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    home: Option<&'a str>,
    done: Vec<Simple>,
    now: Simple,
}

impl Reader<'_> {
    fn commands(&mut self) -> Result<(), NotPlain> {
        while let Some(&c) = self.chars.peek() {
            match c {
                ' ' | '\t' => self.skip(),
                '\n' => {
                    self.skip();
                    if !self.is_empty() {
                        self.end(Joint::Line)?;
                    }
                }
                ';' => {
                    self.skip();
                    self.end(Joint::Then)?;
                }
                '|' => {
                    self.skip();
                    let joint = if self.took('|') {
                        Joint::Or
                    } else {
                        Joint::Pipe
                    };
                    self.end(joint)?;
                }
                '&' => {
                    self.skip();
                    if self.took('>') {
                        self.redirect("&>")?;
                    } else if self.took('&') {
                        self.end(Joint::And)?;
                    } else {
                        return Err("runs something in the background");
                    }
                }
                '<' | '>' => self.redirect("")?,
                '#' => return Err("holds a comment"),
                _ => self.word()?,
            }
        }
        match (self.is_empty(), self.now.joint) {
            (true, Joint::First | Joint::Then | Joint::Line) => Ok(()),
            (true, Joint::Pipe | Joint::And | Joint::Or) => Err("ends in the middle"),
            (false, _) => self.end(Joint::Line),
        }
    }

    fn skip(&mut self) {
        self.chars.next();
    }

    fn took(&mut self, c: char) -> bool {
        self.chars.next_if_eq(&c).is_some()
    }

    fn is_empty(&self) -> bool {
        self.now.words.is_empty() && self.now.redirects.is_empty()
    }

    /// Ends the command, and begins another one.
    fn end(&mut self, next: Joint) -> Result<(), NotPlain> {
        let done = std::mem::replace(&mut self.now, Simple::after(next));
        let Some(first) = done.words.first() else {
            return Err("lacks a command where one belongs");
        };
        let name = first.text();
        if first.has_glob() || name.is_empty() || name.contains(char::is_whitespace) {
            return Err("runs a program whose name is not plain");
        }
        if RESERVED.contains(&name.as_str()) {
            return Err("holds more than simple commands");
        }
        if name.starts_with(['-', '+']) {
            return Err("begins with an option");
        }
        if name.contains('=') {
            return Err("sets variables, which can change what commands do");
        }
        self.done.push(done);
        Ok(())
    }

    /// Reads a redirection of what is before it, a descriptor or nothing.
    fn redirect(&mut self, before: &str) -> Result<(), NotPlain> {
        const ODD: NotPlain = "redirects to or from a file";
        let mut text = before.to_owned();
        if before != "&>" {
            text.extend(self.chars.next());
        }
        if text.ends_with('<') && self.chars.peek() == Some(&'<') {
            return Err("holds a here-document");
        }
        if self.took('&') {
            let to = self.chars.next().filter(|c| ('0'..='2').contains(c));
            let to = to.ok_or(ODD)?;
            let ends = self.chars.peek().is_none_or(|c| " \t\n;|&".contains(*c));
            if !ends || before == "&>" {
                return Err(ODD);
            }
            self.now.redirects.push(format!("{text}&{to}"));
            return Ok(());
        }
        if text.ends_with('>') && self.took('>') {
            text.push('>');
        }
        while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        let file = self.read_word()?;
        if file != Read::Word(Word::of("/dev/null")) {
            return Err(ODD);
        }
        // Not every shell knows `&>`.
        self.now.redirects.push(match text.as_str() {
            "&>" | "&>>" => ">/dev/null 2>&1".to_owned(),
            text => format!("{text}/dev/null"),
        });
        Ok(())
    }

    fn word(&mut self) -> Result<(), NotPlain> {
        match self.read_word()? {
            Read::Word(word) => self.now.words.push(word),
            Read::Descriptor(digit) => self.redirect(&digit.to_string())?,
            Read::Nothing => {}
        }
        Ok(())
    }

    fn read_word(&mut self) -> Result<Read, NotPlain> {
        let mut word = Word::default();
        let (mut began, mut quoted, mut before) = (false, false, None);
        while let Some(&c) = self.chars.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '|' | '&' => break,
                '<' | '>' => {
                    let text = word.text();
                    let mut digits = text.chars();
                    return match (digits.next(), digits.next()) {
                        (Some(digit @ '0'..='2'), None) if !quoted => Ok(Read::Descriptor(digit)),
                        // `a2>b` writes nothing but `b` to some, `2>b` to others.
                        (Some(_), _) if text.ends_with(|c: char| c.is_ascii_digit()) => {
                            Err("redirects to or from a file")
                        }
                        (None, _) if !quoted => Ok(Read::Nothing),
                        _ => Ok(Read::Word(word)),
                    };
                }
                _ => {}
            }
            self.skip();
            if c == '\\' && self.took('\n') {
                continue;
            }
            let first = !began;
            began = true;
            match c {
                '\'' => {
                    quoted = true;
                    self.single(&mut word)?;
                }
                '"' => {
                    quoted = true;
                    self.double(&mut word)?;
                }
                '*' | '?' => word.glob(c.to_string()),
                '[' => self.set(&mut word, first)?,
                '~' if first => self.tilde(&mut word)?,
                '~' if matches!(before, Some('=' | ':')) => {
                    return Err("holds a `~` inside a word");
                }
                c => word.push(unquoted(c)?),
            }
            before = Some(c);
        }
        if quoted && word.pieces.is_empty() {
            word.pieces.push(Piece::Text(String::new()));
        }
        Ok(if began {
            Read::Word(word)
        } else {
            Read::Nothing
        })
    }

    fn single(&mut self, word: &mut Word) -> Result<(), NotPlain> {
        loop {
            match self.chars.next() {
                Some('\'') => return Ok(()),
                Some(c) => word.push(c),
                None => return Err("has a quote that does not end"),
            }
        }
    }

    fn double(&mut self, word: &mut Word) -> Result<(), NotPlain> {
        loop {
            match self.chars.next() {
                Some('"') => return Ok(()),
                Some('$' | '`') => return Err("holds an expansion"),
                Some('\\') => match self.chars.next() {
                    Some('\n') => {}
                    Some(c @ ('"' | '\\' | '$')) => word.push(c),
                    Some(c) if c.is_ascii() && c != '`' && c != '!' => {
                        word.push('\\');
                        word.push(c);
                    }
                    _ => return Err("holds a backslash that shells read differently"),
                },
                Some(c) => word.push(c),
                None => return Err("has a quote that does not end"),
            }
        }
    }

    /// Reads a set in brackets. `[` alone is a command.
    fn set(&mut self, word: &mut Word, first: bool) -> Result<(), NotPlain> {
        if first && self.chars.peek().is_none_or(|c| " \t\n".contains(*c)) {
            word.push('[');
            return Ok(());
        }
        let mut set = String::from("[");
        if let Some(not) = self.chars.next_if(|c| matches!(c, '!' | '^')) {
            set.push(not);
        }
        let inner = set.len();
        loop {
            match self.chars.next() {
                Some(']') if set.len() > inner => break,
                Some(c) if c.is_ascii_alphanumeric() || "_-.".contains(c) => set.push(c),
                _ => return Err("holds brackets that are no plain set"),
            }
        }
        set.push(']');
        word.glob(set);
        Ok(())
    }

    fn tilde(&mut self, word: &mut Word) -> Result<(), NotPlain> {
        let ends = self.chars.peek().is_none_or(|c| "/ \t\n;|&".contains(*c));
        let home = self.home.filter(|home| ends && home.starts_with('/'));
        let home = home.ok_or("holds a `~` of which this cannot tell what it stands for")?;
        home.trim_end_matches('/')
            .chars()
            .for_each(|c| word.push(c));
        Ok(())
    }
}

/// What stands where a word may.
#[derive(PartialEq, Eq)]
enum Read {
    Word(Word),
    /// A digit right before a redirection.
    Descriptor(char),
    Nothing,
}

/// A character that stands for itself outside of quotes.
fn unquoted(c: char) -> Result<char, NotPlain> {
    match c {
        '$' | '`' => Err("holds an expansion"),
        '(' | ')' => Err("holds more than simple commands"),
        '{' | '}' => Err("holds braces"),
        '\\' => Err("holds a backslash outside of quotes"),
        '!' => Err("holds a `!`"),
        c => Ok(c),
    }
}
