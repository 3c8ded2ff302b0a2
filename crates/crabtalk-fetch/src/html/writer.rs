//! Writes Markdown: white space as a browser shows it, lists, quotes, code.
//!
//! Invariant: no two empty lines follow each other, and nothing is indented deeper
//! than a person would follow.

/// Lists and quotes deeper than this are written as if they were this deep.
const MAX_DEPTH: usize = 8;

/// What a new line begins with.
#[derive(Debug)]
enum Level {
    Quote,
    /// A list; the next number of one that counts.
    List(Option<u64>),
}

/// A text that grows.
#[derive(Debug, Default)]
pub(super) struct Writer {
    out: String,
    levels: Vec<Level>,
    /// Line ends that are due before the next word: one, or two for a paragraph.
    breaks: u8,
    /// Whether a blank is due before the next word.
    space: bool,
    /// What is due before the next word, such as the mark of a heading.
    marks: String,
    /// Whether the text is shown as it is; how often that was begun.
    pre: usize,
}

impl Writer {
    /// How much is written, which is where a part begins or ends.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// A line ends here, if one has begun.
    pub(super) fn line(&mut self) {
        self.space = false;
        if self.pre > 0 {
            self.out.push('\n');
        } else if !self.out.is_empty() {
            self.breaks = self.breaks.max(1);
        }
    }

    /// A paragraph ends here, if one has begun.
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
        // A break that is due swallows what stands before the first word.
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

    /// A mark before the next word.
    pub(super) fn mark(&mut self, mark: &str) {
        if self.pre == 0 {
            self.marks.push_str(mark);
        }
    }

    /// A mark behind the last word; if there was none since its beginning, both
    /// go.
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
            // Behind a word it closes, else it is due before the next one.
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
        // One within another goes on with it.
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

    /// Writes what is due before a word.
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

    /// What the line begins with: the outer lists as blanks, quotes as marks.
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
