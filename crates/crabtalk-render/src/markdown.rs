//! Markdown that arrives in pieces.
//!
//! Invariants: final lines depend on complete input lines, not on the chunks; a final
//! line equals that of a render of the whole text. Open text may be
//! changed by a later line: the last block, the last item of a list, nothing of a code block.
//!
//! Link definitions apply only within their block, since earlier blocks
//! are final.

use crate::blocks::{Writer, options};
use crate::clean::clean;
use crate::code::Code;
use crate::line::Line;
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
use std::borrow::Cow;

/// Bytes after which a line is treated as ended, so that an endless line causes bounded
/// work.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// Bytes of a block after which it is treated as ended, since a block is parsed again
/// with each of its lines.
const MAX_BLOCK_BYTES: usize = 32 * 1024;

/// Columns between Markdown tab stops.
const TAB: usize = 4;

/// Minimum columns for text on a narrow terminal.
const MIN_WIDTH: usize = 16;

/// A renderer of streamed Markdown.
pub struct Markdown {
    width: usize,
    /// A line without its end.
    partial: String,
    /// Lines of blocks that may still change.
    pending: String,
    /// The open code block, if any; then `pending` is empty.
    fence: Option<Fence>,
    /// Whether an empty line must precede the next block.
    gap: bool,
    /// The number of the pending item of an open ordered list.
    goes_on: Option<u64>,
}

/// An open fenced code block.
struct Fence {
    mark: u8,
    length: usize,
    indent: usize,
    code: Code,
}

/// A top-level block of the source.
struct Block {
    start: usize,
    kind: Kind,
}

enum Kind {
    /// The block ends with its line.
    Line,
    /// An empty line ends the block.
    Text,
    /// Only another block ends the block.
    Open,
    /// A fenced code block: its language, and the offset of its text.
    Fenced(String),
    /// A list: its first number, and the offsets of its items.
    List(Option<u64>, Vec<usize>),
}

impl Markdown {
    /// Creates a renderer for lines of a width in columns.
    pub fn new(width: usize) -> Self {
        Self {
            width: width.max(MIN_WIDTH),
            partial: String::new(),
            pending: String::new(),
            fence: None,
            gap: false,
            goes_on: None,
        }
    }

    /// Sets the width of open and later lines.
    pub fn set_width(&mut self, width: usize) {
        self.width = width.max(MIN_WIDTH);
    }

    /// Adds a piece of text; returns the lines that become final.
    pub fn push(&mut self, piece: &str) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rest = piece;
        while !rest.is_empty() {
            let room = MAX_LINE_BYTES - self.partial.len();
            let (end, whole) = match rest.find('\n') {
                Some(end) if end < room => (end + 1, true),
                Some(_) | None if rest.len() >= room => (rest.ceil_char_boundary(room), true),
                Some(_) | None => (rest.len(), false),
            };
            self.partial.push_str(&rest[..end]);
            rest = &rest[end..];
            if whole {
                let mut line = std::mem::take(&mut self.partial);
                if !line.ends_with('\n') {
                    line.push('\n');
                }
                self.whole_line(&clean(&line), &mut lines);
            }
        }
        lines
    }

    /// The lines that may still change.
    pub fn open(&self) -> Vec<Line> {
        let partial = clean(&self.partial);
        let mut writer = Writer::new("", self.width, self.gap, None);
        if let Some(fence) = &self.fence {
            if !partial.is_empty() && !fence.may_end(&partial) {
                writer.code_line(&Line::plain(&*partial));
            }
            return writer.into_written().lines;
        }
        let source = self.pending.clone() + &partial;
        let writer = Writer::new(&source, self.width, self.gap, self.goes_on);
        writer.write().lines
    }

    /// Returns the open lines and starts a new text.
    pub fn finish(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        if !self.partial.is_empty() {
            let line = std::mem::take(&mut self.partial) + "\n";
            self.whole_line(&clean(&line), &mut lines);
        }
        let all = self.pending.len();
        self.emit(all, false, &mut lines);
        self.fence = None;
        self.goes_on = None;
        lines
    }

    /// Whether no text is open.
    pub fn is_empty(&self) -> bool {
        self.partial.is_empty() && self.pending.is_empty()
    }

    fn whole_line(&mut self, line: &str, lines: &mut Vec<Line>) {
        if let Some(fence) = &mut self.fence {
            if fence.ends(line) {
                self.fence = None;
                self.gap = true;
                return;
            }
            let line = fence.code.line(&fence.unindented(line));
            let mut writer = Writer::new("", self.width, std::mem::take(&mut self.gap), None);
            writer.code_line(&line);
            let written = writer.into_written();
            self.gap = written.gap;
            lines.extend(written.lines);
            return;
        }
        let blank = line.trim().is_empty();
        if blank && self.pending.is_empty() {
            return;
        }
        let begins = self.pending.len();
        self.pending.push_str(line);
        let follows_blank = ends_blank(&self.pending[..begins]);
        if blank || follows_blank || begins == 0 || may_begin_block(line) {
            self.settle(begins, blank, lines);
        }
        if self.pending.len() > MAX_BLOCK_BYTES {
            let all = self.pending.len();
            self.emit(all, false, lines);
            self.goes_on = None;
        }
    }

    /// Makes final what the line at offset `begins` completes.
    fn settle(&mut self, begins: usize, blank: bool, lines: &mut Vec<Line>) {
        let blocks = top_level(&self.pending);
        let Some(last) = blocks.last() else {
            return;
        };
        if let Kind::Fenced(language) = &last.kind
            && last.start == begins
            && let Some(fence) = Fence::open(&self.pending[begins..], language)
        {
            self.emit(begins, false, lines);
            self.pending.clear();
            self.goes_on = None;
            self.fence = Some(fence);
            return;
        }
        let closed = match last.kind {
            Kind::Line => true,
            Kind::Text => blank,
            Kind::Open | Kind::Fenced(_) | Kind::List(..) => false,
        };
        if closed {
            let all = self.pending.len();
            self.emit(all, false, lines);
            self.goes_on = None;
            return;
        }
        let first = blocks.len() == 1;
        if let Kind::List(number, items) = &last.kind
            && let [_, .., item] = items[..]
        {
            let number = match (first, self.goes_on) {
                (true, Some(number)) => Some(number),
                _ => *number,
            };
            let done = items.len() as u64 - 1;
            self.emit(item, true, lines);
            self.goes_on = number.map(|number| number.saturating_add(done));
            return;
        }
        if !first {
            let start = last.start;
            self.emit(start, false, lines);
            self.goes_on = None;
        }
    }

    /// Makes the first bytes of the pending text final; `within` a list that
    /// continues.
    fn emit(&mut self, until: usize, within: bool, lines: &mut Vec<Line>) {
        let rest = self.pending.split_off(until);
        let source = std::mem::replace(&mut self.pending, rest);
        let written = Writer::new(&source, self.width, self.gap, self.goes_on).write();
        lines.extend(written.lines);
        // In a list, the source decides about empty lines.
        self.gap = match within {
            true => ends_blank(&source),
            false => written.gap,
        };
    }
}

/// Renders a whole text.
pub fn render(text: &str, width: usize) -> Vec<Line> {
    let mut markdown = Markdown::new(width);
    let mut lines = markdown.push(text);
    lines.extend(markdown.finish());
    lines
}

impl Fence {
    /// Parses the opening line of a fence.
    fn open(line: &str, language: &str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let mark = *text.as_bytes().first()?;
        let length = text.bytes().take_while(|byte| *byte == mark).count();
        (matches!(mark, b'`' | b'~') && length >= 3).then(|| Self {
            mark,
            length,
            indent: line.len() - text.len(),
            code: Code::new(language),
        })
    }

    fn ends(&self, line: &str) -> bool {
        let text = line.trim_start_matches(' ');
        let marks = text.bytes().take_while(|byte| *byte == self.mark).count();
        line.len() - text.len() < 4
            && marks >= self.length
            && text[marks..].trim_matches([' ', '\n']).is_empty()
    }

    /// Whether an incomplete line may become the end of the block.
    fn may_end(&self, partial: &str) -> bool {
        let text = partial.trim();
        text.bytes().all(|byte| byte == self.mark)
    }

    /// Removes the indentation of the fence from a line.
    fn unindented<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let line = line.strip_suffix('\n').unwrap_or(line);
        for (at, byte) in line.bytes().enumerate() {
            if at >= self.indent {
                return Cow::Borrowed(&line[at..]);
            }
            if byte == b'\t' {
                let spaces = at / TAB * TAB + TAB - self.indent;
                return Cow::Owned(" ".repeat(spaces) + &line[at + 1..]);
            }
            if byte != b' ' {
                return Cow::Borrowed(&line[at..]);
            }
        }
        Cow::Borrowed("")
    }
}

/// The top-level blocks of a text.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "only what begins and ends counts"
)]
fn top_level(source: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut depth = 0;
    for (event, range) in Parser::new_ext(source, options()).into_offset_iter() {
        let start = source[..range.start].rfind('\n').map_or(0, |end| end + 1);
        match event {
            Event::Start(tag) => {
                match (depth, &tag) {
                    (0, _) => blocks.push(Block {
                        start,
                        kind: kind(&tag),
                    }),
                    (1, Tag::Item) => {
                        if let Some(Kind::List(_, items)) = blocks.last_mut().map(|b| &mut b.kind) {
                            items.push(start);
                        }
                    }
                    _ => {}
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            Event::Rule if depth == 0 => blocks.push(Block {
                start,
                kind: Kind::Line,
            }),
            _ => {}
        }
    }
    blocks
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not named ends with the next block"
)]
fn kind(tag: &Tag<'_>) -> Kind {
    match tag {
        // The underline of a heading ends it.
        Tag::Heading { .. } => Kind::Line,
        Tag::Paragraph | Tag::Table(_) | Tag::BlockQuote(_) => Kind::Text,
        Tag::CodeBlock(CodeBlockKind::Fenced(language)) => Kind::Fenced(language.to_string()),
        Tag::List(number) => Kind::List(*number, Vec::new()),
        _ => Kind::Open,
    }
}

fn ends_blank(text: &str) -> bool {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.rsplit('\n')
        .next()
        .is_some_and(|line| line.trim().is_empty())
}

/// Whether a line may end the block before it.
fn may_begin_block(line: &str) -> bool {
    let text = line.trim_start_matches(' ');
    text.starts_with(|c: char| "#-*+>`~|<=_:".contains(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests;
