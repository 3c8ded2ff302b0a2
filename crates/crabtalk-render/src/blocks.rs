//! Lays out Markdown blocks as lines of a given width.
//!
//! Invariants: the lines of a block depend only on its source, on whether a block
//! precedes it and on the number of a continued list; an empty line separates blocks,
//! and items of a list if its source has one.

use crate::code::Code;
use crate::line::{Line, Span};
use crate::table::Table;
use crate::theme::{BOLD, CODE, DIM, HEADING, LINK, PLAIN};
use crate::wrap::{cut, words};
use anstyle::{Effects, Style};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// Minimum columns for text at any nesting depth.
const MIN_TEXT: usize = 10;

/// Columns of a horizontal rule.
const RULE: usize = 40;

/// Indentation of code.
const CODE_INDENT: &str = "  ";

/// The enabled extensions of CommonMark.
pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// The prefix of the lines of a nested block.
struct Prefix {
    first: Option<Span>,
    rest: Span,
}

/// An open list.
struct List {
    /// Whether it already has an item.
    begun: bool,
    /// The next number of an ordered list.
    number: Option<u64>,
}

#[derive(Default)]
pub(crate) struct Writer<'a> {
    source: &'a str,
    width: usize,
    lines: Vec<Line>,
    prefixes: Vec<Prefix>,
    lists: Vec<List>,
    /// Whether an empty line precedes the next block.
    gap: bool,
    /// How many of the prefixes the empty line has.
    gap_depth: usize,
    inline: Vec<Option<Span>>,
    styles: Vec<Style>,
    /// Addresses of open links, with their text so far.
    links: Vec<(String, String)>,
    code: Option<(Code, String)>,
    html: bool,
    table: Option<Table>,
    /// The number with which the first ordered list continues.
    goes_on: Option<u64>,
}

/// The result of laying out blocks.
pub(crate) struct Written {
    pub(crate) lines: Vec<Line>,
    /// Whether an empty line is due before the next block.
    pub(crate) gap: bool,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(source: &'a str, width: usize, gap: bool, goes_on: Option<u64>) -> Self {
        Self {
            source,
            width,
            gap,
            goes_on,
            ..Self::default()
        }
    }

    pub(crate) fn write(mut self) -> Written {
        for (event, range) in Parser::new_ext(self.source, options()).into_offset_iter() {
            self.event(event, &range);
        }
        self.into_written()
    }

    fn event(&mut self, event: Event<'_>, range: &Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => {
                let style = self.style().fg_color(CODE.get_fg_color());
                self.inline_text(&text, style);
            }
            Event::InlineHtml(text) | Event::Html(text) if self.html => self.html_text(&text),
            Event::InlineHtml(text) | Event::Html(text) => self.inline_text(&text, DIM),
            // Line ends of the source are preserved.
            Event::SoftBreak | Event::HardBreak => self.inline.push(None),
            Event::Rule => {
                let width = RULE.min(self.room());
                self.line(Line::styled("\u{2500}".repeat(width), DIM));
                self.end_block();
            }
            Event::TaskListMarker(done) => {
                let mark = if done { "[x] " } else { "[ ] " };
                self.inline_text(mark, PLAIN);
            }
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.inline_text(&text, PLAIN);
            }
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what is not switched on does not come, and what comes is text"
    )]
    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Heading { level, .. } => self.styles.push(match level {
                HeadingLevel::H1 => HEADING | Effects::UNDERLINE,
                HeadingLevel::H2 => HEADING,
                HeadingLevel::H3 | HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => BOLD,
            }),
            Tag::BlockQuote(_) => {
                self.flush();
                let bar = Span::known("\u{2502} ", DIM);
                self.prefixes.push(Prefix {
                    first: None,
                    rest: bar,
                });
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language,
                    CodeBlockKind::Indented => CowStr::Borrowed(""),
                };
                self.code = Some((Code::new(&language), String::new()));
            }
            Tag::HtmlBlock => {
                self.flush();
                self.html = true;
            }
            Tag::List(number) => {
                self.flush();
                let nested = !self.lists.is_empty();
                let number = match (number, nested) {
                    (Some(_), false) if self.goes_on.is_some() => self.goes_on.take(),
                    (number, _) => number,
                };
                // A list in an item directly follows the item's text.
                if nested && self.prefixes.iter().all(|prefix| prefix.first.is_none()) {
                    self.gap &= self.blank_before(range.start);
                }
                self.lists.push(List {
                    begun: false,
                    number,
                });
            }
            Tag::Item => self.item(range),
            Tag::Table(alignments) => {
                self.flush();
                self.table = Some(Table {
                    alignments,
                    rows: Vec::new(),
                });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.styles.push(self.style() | Effects::ITALIC),
            Tag::Strong => self.styles.push(self.style() | Effects::BOLD),
            Tag::Strikethrough => self.styles.push(self.style() | Effects::STRIKETHROUGH),
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.to_string(), String::new()));
                self.styles.push(self.style() | LINK.get_effects());
            }
            Tag::Image { dest_url, .. } => {
                self.inline_text("[image: ", DIM);
                self.links.push((dest_url.to_string(), String::new()));
            }
            _ => {}
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what is not switched on does not come, and what comes is text"
    )]
    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                self.end_block();
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.prefixes.pop();
                self.end_block();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::HtmlBlock => {
                self.html = false;
                self.end_block();
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.end_block();
            }
            TagEnd::Item => {
                self.flush();
                // An item without text still shows its marker.
                if self.prefixes.last().is_some_and(|p| p.first.is_some()) {
                    self.line(Line::default());
                }
                self.prefixes.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.table.as_mut().and_then(|t| t.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    for line in table.lines(self.room()) {
                        self.line(line);
                    }
                }
                self.end_block();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link => {
                self.styles.pop();
                self.end_link(false);
            }
            TagEnd::Image => self.end_link(true),
            _ => {}
        }
    }

    fn item(&mut self, range: &Range<usize>) {
        self.flush();
        // The first item uses the prefix of its list.
        if self.lists.last().is_some_and(|list| list.begun) {
            self.gap = self.blank_before(range.start);
        }
        let marker = match self.lists.last_mut() {
            Some(List {
                number: Some(number),
                ..
            }) => {
                let marker = format!("{number}. ");
                *number += 1;
                marker
            }
            _ => "\u{2022} ".to_owned(),
        };
        if let Some(list) = self.lists.last_mut() {
            list.begun = true;
        }
        let rest = " ".repeat(Span::known(&marker, PLAIN).width());
        self.prefixes.push(Prefix {
            first: Some(Span::known(&marker, DIM)),
            rest: Span::known(&rest, PLAIN),
        });
    }

    /// Whether the line before an offset of the source is empty.
    fn blank_before(&self, at: usize) -> bool {
        let before = &self.source[..at];
        let line = before.rfind('\n').map_or("", |end| &before[..end]);
        let last = line.rsplit('\n').next().unwrap_or_default();
        before.contains('\n') && last.trim_matches(['>', ' ', '\t']).is_empty()
    }

    fn text(&mut self, text: &str) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
        } else if self.html {
            self.html_text(text);
        } else {
            self.inline_text(text, self.style());
        }
    }

    fn inline_text(&mut self, text: &str, style: Style) {
        if let Some((_, said)) = self.links.last_mut() {
            said.push_str(text);
        }
        self.inline.push(Some(Span::new(text, style)));
    }

    /// Adds the real address, unless it equals the text.
    fn end_link(&mut self, image: bool) {
        let Some((address, said)) = self.links.pop() else {
            return;
        };
        if image {
            self.inline_text("]", DIM);
        }
        if said != address && !address.is_empty() && format!("mailto:{said}") != address {
            self.inline_text(&format!(" ({address})"), DIM);
        }
    }

    fn html_text(&mut self, text: &str) {
        for line in text.lines() {
            for line in cut(&Line::styled(line, DIM), self.room()) {
                self.line(line);
            }
        }
    }

    fn end_code(&mut self) {
        let Some((mut code, text)) = self.code.take() else {
            return;
        };
        for line in text.lines() {
            self.code_line(&code.line(line));
        }
        self.end_block();
    }

    pub(crate) fn code_line(&mut self, line: &Line) {
        for line in cut(line, self.room().saturating_sub(CODE_INDENT.len())) {
            self.line(line.behind(&[Span::known(CODE_INDENT, PLAIN)]));
        }
    }

    pub(crate) fn into_written(self) -> Written {
        Written {
            lines: self.lines,
            gap: self.gap,
        }
    }

    /// Writes the pending text.
    fn flush(&mut self) {
        if self.inline.is_empty() || self.table.is_some() {
            return;
        }
        let inline = std::mem::take(&mut self.inline);
        for line in words(&inline, self.room()) {
            self.line(line);
        }
    }

    /// Requests an empty line before the next block.
    fn end_block(&mut self) {
        self.gap = true;
        self.gap_depth = self.prefixes.len();
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    /// The number of prefixes that fit, and the remaining columns.
    fn fitting(&self) -> (usize, usize) {
        let (mut count, mut left) = (0, self.width);
        for prefix in &self.prefixes {
            let width = prefix.rest.width();
            if left < width + MIN_TEXT {
                break;
            }
            left -= width;
            count += 1;
        }
        (count, left)
    }

    fn room(&self) -> usize {
        self.fitting().1
    }

    /// Adds a line with its prefixes.
    fn line(&mut self, line: Line) {
        let (count, _) = self.fitting();
        if std::mem::take(&mut self.gap) {
            // Empty lines have only the bars of quotes as prefixes.
            let open = self.prefixes[..count.min(self.gap_depth)]
                .iter()
                .take_while(|prefix| prefix.first.is_none());
            let mut spans: Vec<Span> = open.map(|prefix| prefix.rest.clone()).collect();
            if let Some(last) = spans
                .iter()
                .rposition(|span| !span.text().trim().is_empty())
            {
                spans.truncate(last + 1);
            } else {
                spans.clear();
            }
            self.lines.push(Line::from(spans));
        }
        let prefixes: Vec<Span> = self.prefixes[..count]
            .iter_mut()
            .map(|prefix| prefix.first.take().unwrap_or_else(|| prefix.rest.clone()))
            .collect();
        for prefix in &mut self.prefixes[count..] {
            prefix.first = None;
        }
        self.lines.push(line.behind(&prefixes));
    }
}
