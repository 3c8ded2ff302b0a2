//! The terminal below what was said: a few rows that are drawn again and
//! again, and lines that are written above them once and stay.
//!
//! Invariants: a line that was written above is ordinary text of the terminal,
//! which it scrolls, selects and keeps; the cursor never leaves the rows that
//! are drawn; a drawing is one write, which the terminal shows at once; no row
//! is wider than the terminal, and one that is does not wrap; a line above that is
//! wider, since it was laid out for another width, does, so that nothing of it is lost.

use crate::Line;
use crate::theme::Ground;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// Begins a drawing: shown when it is whole, without cursor, without wrapping.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l\x1b[?7l";

/// Ends a drawing.
const END: &str = "\x1b[?7h\x1b[?2026l";

/// Around a line above that is wider than the terminal.
const WRAP: &str = "\x1b[?7h";
const NO_WRAP: &str = "\x1b[?7l";

/// Clears the line from the cursor on.
const CLEAR_LINE: &str = "\x1b[K";

/// The current drawing.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Drawing {
    /// Its rows.
    pub rows: Vec<Line>,
    /// Row and column of the cursor; `None` hides it.
    pub cursor: Option<(usize, usize)>,
}

/// Draws on a terminal.
pub struct Canvas {
    out: Box<dyn Write + Send>,
    styles: bool,
    ground: Ground,
    columns: usize,
    /// Rows as they were drawn last.
    shown: Vec<String>,
    /// Their widths. A terminal breaks those that are wider than it became, and makes
    /// them whole again where it is wide enough.
    widths: Vec<usize>,
    /// Where the cursor stands among them.
    at: (usize, usize),
    cursor: Option<(usize, usize)>,
}

impl fmt::Debug for Canvas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canvas").field("at", &self.at).finish()
    }
}

impl Canvas {
    /// A canvas of a terminal that shows nothing of ours yet.
    pub fn new(out: Box<dyn Write + Send>, styles: bool, columns: usize) -> Self {
        Self {
            out,
            styles,
            ground: Ground::Unknown,
            columns: columns.max(1),
            shown: Vec::new(),
            widths: Vec::new(),
            at: (0, 0),
            cursor: None,
        }
    }

    /// The terminal has another width: it broke the rows that are wider, and
    /// all is drawn again.
    pub fn resize(&mut self, columns: usize) {
        self.columns = columns.max(1);
        self.redraw();
    }

    /// Rows of the terminal above the cursor that are drawn, and all of them.
    fn rows_there(&self) -> (usize, usize) {
        let rows = |width: &usize| rows_of(*width, self.columns);
        let (row, column) = self.at;
        let above: usize = self.widths.iter().take(row).map(rows).sum();
        let all = self.widths.iter().map(rows).sum();
        (above + column / self.columns, all)
    }

    /// The terminal's ground is known from now on.
    pub fn set_ground(&mut self, ground: Ground) {
        if self.ground != ground {
            self.ground = ground;
            self.redraw();
        }
    }

    /// Redraws everything, since the screen is unknown.
    pub fn redraw(&mut self) {
        self.shown = vec![String::from("\0"); self.shown.len()];
    }

    /// Draws below output of other programs.
    pub fn begin_anew(&mut self) {
        self.shown.clear();
        self.widths.clear();
        self.at = (0, 0);
        self.cursor = None;
    }

    /// Writes lines above, and draws the rows below them.
    pub fn draw(&mut self, above: &[Line], drawing: &Drawing) -> io::Result<()> {
        let rows: Vec<String> = drawing.rows.iter().map(|row| self.text(row)).collect();
        if above.is_empty() && rows == self.shown && drawing.cursor == self.cursor {
            return Ok(());
        }
        let mut out = String::from(BEGIN);
        let (over, before) = self.rows_there();
        up(&mut out, over);
        out.push('\r');
        let mut kept = std::mem::take(&mut self.shown);
        if !above.is_empty() {
            kept.clear();
        }
        // Line by line: some terminals take clearing all of the screen for a
        // wish to keep what it showed.
        for line in above {
            self.push_above(&mut out, line);
        }
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                out.push_str("\r\n");
            }
            if kept.get(index) != Some(row) {
                out.push_str(CLEAR_LINE);
                out.push_str(row);
            }
        }
        if rows.is_empty() {
            out.push_str(CLEAR_LINE);
        }
        let above = above.iter().map(|line| rows_of(line.width(), self.columns));
        let written = above.sum::<usize>() + rows.len().max(1);
        if before > written {
            // There are rows below the last one.
            out.push_str("\r\n\x1b[J\x1b[A");
        }
        let last = rows.len().saturating_sub(1);
        let (row, column) = drawing.cursor.unwrap_or((last, 0));
        let row = row.min(last);
        up(&mut out, last - row);
        out.push('\r');
        if column > 0 {
            let _ = write!(out, "\x1b[{column}C");
        }
        if drawing.cursor.is_some() {
            out.push_str("\x1b[?25h");
        }
        out.push_str(END);
        let widths = drawing.rows.iter().map(Line::width);
        // Wider rows are cut.
        self.widths = widths.map(|width| width.min(self.columns)).collect();
        self.shown = rows;
        self.at = (row, column);
        self.cursor = drawing.cursor;
        self.out.write_all(out.as_bytes())?;
        self.out.flush()
    }

    /// Takes the rows away, with the cursor behind what was written.
    pub fn clear(&mut self) -> io::Result<()> {
        let mut out = String::new();
        up(&mut out, self.rows_there().0);
        out.push_str("\r\x1b[J\x1b[?25h");
        self.shown.clear();
        self.widths.clear();
        self.at = (0, 0);
        self.cursor = None;
        self.out.write_all(out.as_bytes())?;
        self.out.flush()
    }

    /// Sends something that shows nothing, such as a bell.
    pub fn send(&mut self, sequence: &str) -> io::Result<()> {
        self.out.write_all(sequence.as_bytes())?;
        self.out.flush()
    }

    fn push_above(&self, out: &mut String, line: &Line) {
        let width = line.width();
        let is_wide = width > self.columns;
        out.push_str(CLEAR_LINE);
        if is_wide {
            out.push_str(WRAP);
        }
        out.push_str(&self.text(line));
        // After a full row the cursor stays on the last column.
        if is_wide && !width.is_multiple_of(self.columns) {
            out.push_str(CLEAR_LINE);
        }
        if is_wide {
            out.push_str(NO_WRAP);
        }
        out.push_str("\r\n");
    }

    fn text(&self, line: &Line) -> String {
        let mut text = String::new();
        line.write_on(&mut text, self.styles, self.ground);
        debug_assert!(line.text().width() < 10_000, "a row is bounded");
        text
    }
}

/// Rows that something so wide takes where it wraps.
fn rows_of(width: usize, columns: usize) -> usize {
    width.div_ceil(columns).max(1)
}

fn up(out: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(out, "\x1b[{rows}A");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_testkit::Buffer;

    fn drawing(rows: &[&str], cursor: Option<(usize, usize)>) -> Drawing {
        Drawing {
            rows: rows.iter().map(Line::plain).collect(),
            cursor,
        }
    }

    #[test]
    fn what_did_not_change_is_not_drawn_again() {
        let out = Buffer::default();
        let mut canvas = Canvas::new(Box::new(out.clone()), true, 80);
        let first = drawing(&["one", "two"], Some((1, 2)));
        canvas.draw(&[], &first).unwrap();
        let drawn = out.text();
        assert!(drawn.contains("\x1b[Kone\r\n\x1b[Ktwo"), "{drawn:?}");
        canvas.draw(&[], &first).unwrap();
        assert_eq!(out.text(), drawn);
        canvas
            .draw(&[], &drawing(&["one", "2"], Some((1, 1))))
            .unwrap();
        let more = out.text()[drawn.len()..].to_owned();
        assert!(more.contains("\x1b[1A\r\r\n\x1b[K2"), "{more:?}");
        assert!(!more.contains("one"), "{more:?}");
    }

    #[test]
    fn lines_above_are_written_once_and_the_rows_follow_them() {
        let out = Buffer::default();
        let mut canvas = Canvas::new(Box::new(out.clone()), false, 80);
        canvas.draw(&[], &drawing(&["a", "b", "c"], None)).unwrap();
        let before = out.text().len();
        canvas
            .draw(&[Line::plain("said")], &drawing(&["a"], None))
            .unwrap();
        let more = out.text()[before..].to_owned();
        assert!(
            more.contains("\x1b[2A\r\x1b[Ksaid\r\n\x1b[Ka\r\n\x1b[J\x1b[A"),
            "{more:?}"
        );
    }

    #[test]
    fn a_line_above_that_is_too_wide_is_whole() {
        let out = Buffer::default();
        let mut canvas = Canvas::new(Box::new(out.clone()), false, 40);
        canvas
            .draw(&[], &drawing(&["a", "b", "c", "d"], None))
            .unwrap();
        let before = out.text().len();
        let above = [60, 80, 40].map(|width| Line::plain("x".repeat(width)));
        canvas.draw(&above, &drawing(&["a"], None)).unwrap();
        let more = out.text()[before..].to_owned();
        let [some, two, one] = [60, 80, 40].map(|width| "x".repeat(width));
        assert!(
            more.contains(&format!(
                "\x1b[K\x1b[?7h{some}\x1b[K\x1b[?7l\r\n\x1b[K\x1b[?7h{two}\x1b[?7l\r\n\x1b[K{one}\r\n"
            )),
            "{more:?}"
        );
        // Five rows and one below them are more than there were.
        assert!(!more.contains("\x1b[J"), "{more:?}");
    }

    #[test]
    fn rows_that_a_narrow_terminal_broke_are_counted() {
        let out = Buffer::default();
        let mut canvas = Canvas::new(Box::new(out.clone()), false, 80);
        let wide = "x".repeat(60);
        canvas
            .draw(&[], &drawing(&[&wide, "b"], Some((1, 1))))
            .unwrap();
        canvas.resize(40);
        let before = out.text().len();
        canvas.draw(&[], &drawing(&["a", "b"], None)).unwrap();
        let more = out.text()[before..].to_owned();
        assert!(
            more.contains("\x1b[2A\r"),
            "the wide row takes two: {more:?}"
        );
    }

    #[test]
    fn rows_that_a_terminal_broke_and_made_whole_are_as_many_as_before() {
        let out = Buffer::default();
        let mut canvas = Canvas::new(Box::new(out.clone()), false, 80);
        let wide = "x".repeat(60);
        canvas
            .draw(&[], &drawing(&[&wide, &wide, "c"], Some((2, 1))))
            .unwrap();
        for columns in [40, 20, 80] {
            canvas.resize(columns);
        }
        let before = out.text().len();
        canvas.draw(&[], &drawing(&["a", "b", "c"], None)).unwrap();
        let more = out.text()[before..].to_owned();
        assert!(more.contains("\x1b[2A\r"), "{more:?}");
        assert!(!more.contains("\x1b[J"), "no row is below them: {more:?}");
    }
}
