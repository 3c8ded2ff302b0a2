//! Writes Markdown: collapses white space like a browser; lists, quotes, code.
//!
//! Invariant: there are never two consecutive empty lines, and indentation is bounded.

/// Maximum depth of lists and quotes; deeper ones are written at this depth.
const MAX_DEPTH: usize = 8;

/// A level of indentation.
#[derive(Debug)]
enum Level {
    Quote,
    /// A list, with the next number if it is ordered.
    List(Option<u64>),
}

/// A writer and its text.
#[derive(Debug, Default)]
pub(super) struct Writer {
    out: String,
    levels: Vec<Level>,
    /// Line breaks before the next word: one, or two for a paragraph.
    breaks: u8,
    /// Whether a space precedes the next word.
    space: bool,
    /// Marks before the next word, such as that of a heading.
    marks: String,
    /// Depth of preformatted elements.
    pre: usize,
}

impl Writer {
    /// Length of the text so far.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Ends the current line.
    pub(super) fn line(&mut self) {
        self.space = false;
        if self.pre > 0 {
            self.out.push('\n');
        } else if !self.out.is_empty() {
            self.breaks = self.breaks.max(1);
        }
    }

    /// Ends the current paragraph.
    pub(super) fn block(&mut self) {
        self.space = false;
        self.marks.clear();
        if self.pre == 0 && !self.out.is_empty() {
            self.breaks = 2;
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        if self.pre > 0 {
            self.out.push_str(text);
            return;
        }
        // A pending line break replaces white space.
        let blank = |c: char| c.is_whitespace() && c != '\u{a0}';
        self.space |= text.starts_with(blank) && !self.out.is_empty();
        let mut words = text.split(blank).filter(|word| !word.is_empty());
        if let Some(first) = words.next() {
            self.due();
            self.out.push_str(first);
            for word in words {
                self.out.push(' ');
                self.out.push_str(word);
            }
            self.space = text.ends_with(blank);
        }
    }

    /// Adds a mark before the next word.
    pub(super) fn mark(&mut self, mark: &str) {
        if self.pre == 0 {
            self.marks.push_str(mark);
        }
    }

    /// Adds a mark after the last word, or removes the opening mark if no word followed.
    pub(super) fn close(&mut self, mark: &str) {
        if self.pre > 0 {
            return;
        }
        match self.marks.strip_suffix(mark) {
            Some(rest) => self.marks.truncate(rest.len()),
            None => self.out.push_str(mark),
        }
    }

    pub(super) fn close_link(&mut self, target: &str) {
        if self.pre > 0 {
            return;
        }
        match self.marks.strip_suffix('[') {
            Some(rest) => self.marks.truncate(rest.len()),
            None => {
                self.out.push_str("](");
                self.out.push_str(target);
                self.out.push(')');
            }
        }
    }

    /// Begins or ends code within a line.
    pub(super) fn code(&mut self) {
        if self.pre == 0 {
            self.due();
            self.out.push('`');
        }
    }

    pub(super) fn begin_pre(&mut self) {
        if self.pre == 0 {
            self.block();
            self.due();
            self.out.push_str("```\n");
        }
        self.pre += 1;
    }

    pub(super) fn end_pre(&mut self) {
        if self.pre == 1 {
            let end = match self.out.ends_with('\n') {
                true => "```",
                false => "\n```",
            };
            self.out.push_str(end);
        }
        self.pre = self.pre.saturating_sub(1);
        self.block();
    }

    pub(super) fn begin_quote(&mut self) {
        self.block();
        self.push(Level::Quote);
    }

    pub(super) fn end_quote(&mut self) {
        self.block();
        if matches!(self.levels.last(), Some(Level::Quote)) {
            self.levels.pop();
        }
    }

    pub(super) fn begin_list(&mut self, from: Option<u64>) {
        // A list inside a list needs no empty line.
        match self.levels.last() {
            Some(Level::List(_)) => self.line(),
            Some(Level::Quote) | None => self.block(),
        }
        self.push(Level::List(from));
    }

    pub(super) fn end_list(&mut self) {
        if matches!(self.levels.last(), Some(Level::List(_))) {
            self.levels.pop();
        }
        match self.levels.last() {
            Some(Level::List(_)) => self.line(),
            Some(Level::Quote) | None => self.block(),
        }
    }

    pub(super) fn item(&mut self) {
        self.line();
        let mark = match self.levels.last_mut() {
            Some(Level::List(Some(number))) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            Some(Level::List(None) | Level::Quote) | None => "- ".to_owned(),
        };
        self.marks.clear();
        self.marks.push_str(&mark);
    }

    fn push(&mut self, level: Level) {
        if self.levels.len() < MAX_DEPTH {
            self.levels.push(level);
        }
    }

    /// Writes pending breaks, spaces and marks.
    fn due(&mut self) {
        if self.breaks > 0 {
            for _ in 0..self.breaks {
                self.out.push('\n');
            }
            self.breaks = 0;
            self.indent();
        } else if self.out.is_empty() {
            self.indent();
        } else if self.space {
            self.out.push(' ');
        }
        self.space = false;
        self.out.push_str(&self.marks);
        self.marks.clear();
    }

    /// Writes the indentation: outer lists as spaces, quotes as marks.
    fn indent(&mut self) {
        let lists = self.levels.iter();
        let lists = lists
            .filter(|level| matches!(level, Level::List(_)))
            .count();
        let item =
            self.marks.starts_with("- ") || self.marks.starts_with(|c: char| c.is_ascii_digit());
        let depth = lists.saturating_sub(usize::from(item));
        for level in &self.levels {
            if matches!(level, Level::Quote) {
                self.out.push_str("> ");
            }
        }
        self.out.push_str(&"  ".repeat(depth));
    }
}
