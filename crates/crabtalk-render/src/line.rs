//! A line of styled text with its width.
//!
//! Invariant: a line has no control characters, bidirectional marks, line ends or frame
//! characters.

use crate::clean::{PLAIN_TAB, clean};
use crate::theme::{self, Ground};
use anstyle::Style;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// A text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    text: String,
    style: Style,
}

impl Span {
    /// Cleans a text.
    pub fn new(text: impl AsRef<str>, style: Style) -> Self {
        Self {
            text: clean(text.as_ref()).replace(['\n', '\t'], PLAIN_TAB),
            style,
        }
    }

    /// Creates a part of a frame, whose characters foreign text cannot contain.
    pub fn frame(text: &'static str, style: Style) -> Self {
        Self::known(text, style)
    }

    /// Creates a span from a cleaned text.
    pub(crate) fn known(text: &str, style: Style) -> Self {
        Self {
            text: text.to_owned(),
            style,
        }
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its style.
    pub fn style(&self) -> Style {
        self.style
    }

    /// Its width.
    pub fn width(&self) -> usize {
        self.text.width()
    }
}

/// A sequence of spans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<Span>,
}

impl Line {
    /// A line in one style.
    pub fn styled(text: impl AsRef<str>, style: Style) -> Self {
        Self::from(vec![Span::new(text, style)])
    }

    /// A line without style.
    pub fn plain(text: impl AsRef<str>) -> Self {
        Self::styled(text, Style::new())
    }

    /// Its spans.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Appends a span.
    pub fn push(&mut self, span: Span) {
        self.spans.push(span);
    }

    /// Appends a cleaned text to the last span if that has its style, else as a new span.
    pub(crate) fn extend(&mut self, text: &str, style: Style) {
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.push(Span::known(text, style)),
        }
    }

    /// Appends text.
    #[must_use]
    pub fn with(mut self, text: impl AsRef<str>, style: Style) -> Self {
        self.push(Span::new(text, style));
        self
    }

    /// The width in columns.
    pub fn width(&self) -> usize {
        self.spans.iter().map(Span::width).sum()
    }

    /// The text without styles.
    pub fn text(&self) -> String {
        self.spans.iter().map(Span::text).collect()
    }

    /// The line with spans in front of it.
    #[must_use]
    pub fn behind(mut self, spans: &[Span]) -> Self {
        self.spans.splice(0..0, spans.iter().cloned());
        self
    }

    /// Appends the text to `out`, with escape sequences if `styles`.
    pub fn write_on(&self, out: &mut String, styles: bool, ground: Ground) {
        for span in &self.spans {
            if styles && span.style != Style::new() {
                let style = theme::on(span.style, ground);
                // Writing to a string does not fail.
                let _ = write!(out, "{style}{}{style:#}", span.text);
            } else {
                out.push_str(&span.text);
            }
        }
    }
}

impl From<Vec<Span>> for Line {
    fn from(spans: Vec<Span>) -> Self {
        Self { spans }
    }
}
