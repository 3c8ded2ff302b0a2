//! Breaks lines between words, between wide
//! characters, and within words that are longer than a line.
//!
//! Invariants: no line exceeds the width; no grapheme is split; only
//! white space at a break is dropped.

use crate::line::{Line, Span};
use anstyle::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Wide punctuation that stays with the preceding character.
const CLOSING: &str = "、。，．！？）」』】〉》：；";

/// Fits spans into lines of a width, broken between words. `None` ends a line,
/// since a span cannot contain a newline.
pub(crate) fn words(spans: &[Option<Span>], width: usize) -> Vec<Line> {
    let mut wrap = Wrap {
        width: width.max(2),
        ..Wrap::default()
    };
    for span in spans {
        let Some(span) = span else {
            wrap.end_word();
            wrap.end_line();
            continue;
        };
        for_graphemes(span.text(), |text, width| {
            wrap.take(text, width, span.style());
        });
    }
    wrap.end_word();
    if !wrap.line.spans().is_empty() || wrap.lines.is_empty() {
        wrap.end_line();
    }
    wrap.lines
}

/// Breaks a line between words.
pub fn wrapped(line: &Line, width: usize) -> Vec<Line> {
    let spans: Vec<Option<Span>> = line.spans().iter().cloned().map(Some).collect();
    words(&spans, width)
}

/// Breaks a line at the width.
pub fn cut(line: &Line, width: usize) -> Vec<Line> {
    let width = width.max(2);
    if line.width() <= width {
        return vec![line.clone()];
    }
    let (mut lines, mut row, mut used) = (Vec::new(), Line::default(), 0);
    for span in line.spans() {
        for_graphemes(span.text(), |text, columns| {
            if used + columns > width {
                lines.push(std::mem::take(&mut row));
                used = 0;
            }
            row.extend(text, span.style());
            used += columns;
        });
    }
    lines.push(row);
    lines
}

/// Shortens a line to the width, with an ellipsis if text is cut off.
pub fn shorten(line: &Line, width: usize) -> Line {
    if line.width() <= width {
        return line.clone();
    }
    let room = width.saturating_sub(1);
    let mut row = match cut(line, room).into_iter().next() {
        Some(first) if room >= 2 => first,
        Some(_) | None => Line::default(),
    };
    row.push(Span::new("\u{2026}", Style::new()));
    row
}

#[derive(Default)]
struct Wrap {
    width: usize,
    lines: Vec<Line>,
    line: Line,
    line_width: usize,
    word: Line,
    word_width: usize,
    /// Whether the word consists of wide characters.
    wide: bool,
    /// A space before the next word, which is dropped at the end of a line.
    space: Option<Style>,
}

impl Wrap {
    fn take(&mut self, text: &str, width: usize, style: Style) {
        if text == " " {
            self.end_word();
            if !self.line.spans().is_empty() {
                self.space = Some(style);
            }
            return;
        }
        let wide = width > 1;
        if (wide || self.wide) && !CLOSING.contains(text) {
            self.end_word();
        }
        if self.word_width + width > self.width {
            self.break_word();
        }
        self.wide = wide;
        self.word.extend(text, style);
        self.word_width += width;
    }

    /// Continues a word that is longer than a line in the next one.
    fn break_word(&mut self) {
        if !self.line.spans().is_empty() {
            self.end_line();
        }
        self.line = std::mem::take(&mut self.word);
        self.word_width = 0;
        self.end_line();
    }

    fn end_word(&mut self) {
        if self.word.spans().is_empty() {
            return;
        }
        let space = usize::from(self.space.is_some());
        if self.line_width + space + self.word_width > self.width {
            self.end_line();
        }
        if let Some(style) = self.space.take()
            && !self.line.spans().is_empty()
        {
            self.line.extend(" ", style);
            self.line_width += 1;
        }
        for span in std::mem::take(&mut self.word).spans() {
            self.line.extend(span.text(), span.style());
        }
        self.line_width += self.word_width;
        self.word_width = 0;
    }

    fn end_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.line));
        self.line_width = 0;
        self.space = None;
    }
}

/// Calls `take` with each grapheme and its width.
fn for_graphemes(text: &str, mut take: impl FnMut(&str, usize)) {
    if text.is_ascii() {
        for at in 0..text.len() {
            take(&text[at..=at], 1);
        }
        return;
    }
    for grapheme in text.graphemes(true) {
        take(grapheme, grapheme.width());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{BOLD, PLAIN};

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        let spans = [Some(Span::new(text, PLAIN))];
        words(&spans, width).iter().map(Line::text).collect()
    }

    #[test]
    fn words_break_only_if_longer_than_a_line() {
        assert_eq!(
            wrapped("the quick  brown fox", 10),
            ["the quick", "brown fox"]
        );
        assert_eq!(
            wrapped("a 0123456789abc b", 10),
            ["a", "0123456789", "abc b"]
        );
        assert_eq!(wrapped("", 10), [""]);
    }

    #[test]
    fn wide_characters_take_two_columns_and_break_anywhere() {
        assert_eq!(
            wrapped("漢字仮名交じり文。", 8),
            ["漢字仮名", "交じり", "文。"]
        );
        assert_eq!(wrapped("👩‍🚀👩‍🚀👩‍🚀", 4), ["👩‍🚀👩‍🚀", "👩‍🚀"]);
        assert_eq!(
            wrapped("e\u{301}e\u{301}e\u{301}", 2),
            ["e\u{301}e\u{301}", "e\u{301}"]
        );
    }

    #[test]
    fn styles_do_not_break_words() {
        let spans = ["see b", "ol", "d now"]
            .map(|t| Some(Span::new(t, if t == "ol" { BOLD } else { PLAIN })));
        let lines = words(&spans, 6);
        let lines: Vec<String> = lines.iter().map(Line::text).collect();
        assert_eq!(lines, ["see", "bold", "now"]);
    }

    #[test]
    fn a_line_is_cut_or_shortened_by_columns() {
        let line = Line::plain("ab漢字cd");
        let texts = |lines: Vec<Line>| lines.iter().map(Line::text).collect::<Vec<_>>();
        assert_eq!(texts(cut(&line, 3)), ["ab", "漢", "字c", "d"]);
        assert_eq!(shorten(&line, 5).text(), "ab漢…");
        assert_eq!(shorten(&line, 8).text(), "ab漢字cd");
    }
}
