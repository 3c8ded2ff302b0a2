//! The strict reader: one character after the other, and whatever is not
//! listed ends it.

use super::{Joint, NotPlain, Simple, Word};
use std::iter::Peekable;
use std::str::Chars;

/// Words with which the shell's own grammar begins.
const RESERVED: [&str; 21] = [
    "if", "then", "elif", "else", "fi", "while", "until", "for", "in", "do", "done", "case",
    "esac", "select", "function", "time", "coproc", "!", "[[", "]]", "{",
];

/// Reads the commands of a text.
pub(super) fn commands(text: &str, home: Option<&str>) -> Result<Vec<Simple>, NotPlain> {
    let mut reader = Reader {
        chars: text.chars().peekable(),
        home,
        done: Vec::new(),
        now: Simple::after(Joint::First),
    };
    reader.commands()?;
    Ok(reader.done)
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
            word.pieces.push(super::Piece::Text(String::new()));
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
        if first && self.chars.peek().is_none_or(|c| " \t\n;|&".contains(*c)) {
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
