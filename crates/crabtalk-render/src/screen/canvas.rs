//! Rows redrawn at the bottom of the terminal, below final lines.
//!
//! Invariants: final lines are ordinary terminal text that scrolls and can be selected;
//! the cursor stays in the drawn rows; a frame is one synchronized write; rows never
//! wrap, final lines wrap if the terminal became narrower.

use crate::Line;
use crate::theme::Ground;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// Begins a frame: synchronized, without cursor and wrapping.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l\x1b[?7l";

/// Ends a frame.
const END: &str = "\x1b[?7h\x1b[?2026l";

/// Wraps a final line wider than the terminal.
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
    /// Rows of the last frame.
    shown: Vec<String>,
    /// Widths of the rows, which tell how a resized terminal wraps them.
    widths: Vec<usize>,
    /// Row of the cursor.
    at: (usize, usize),
    cursor: Option<(usize, usize)>,
}

impl fmt::Debug for Canvas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canvas").field("at", &self.at).finish()
    }
}

impl Canvas {
    /// A canvas that has drawn nothing.
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

    /// Redraws after a change of width, which wraps wide rows.
    pub fn resize(&mut self, columns: usize) {
        self.columns = columns.max(1);
        self.redraw();
    }

    /// Terminal rows above the cursor, and all of them.
    fn rows_there(&self) -> (usize, usize) {
        let rows = |width: &usize| rows_of(*width, self.columns);
        let (row, column) = self.at;
        let above: usize = self.widths.iter().take(row).map(rows).sum();
        let all = self.widths.iter().map(rows).sum();
        (above + column / self.columns, all)
    }

    /// Sets the background.
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

    /// Writes final lines and draws the rows below.
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
        // Line by line, since some terminals save a cleared screen to the scrollback.
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

    /// Removes the rows.
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

    /// Moves everything on a screen of this height into the scrollback.
    pub fn scroll_away(&mut self, height: usize) -> io::Result<()> {
        self.clear()?;
        self.send(&format!("{}\x1b[H", "\n".repeat(height)))
    }

    /// Sends an invisible sequence, such as a bell.
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

/// Rows of wrapped text.
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
    fn unchanged_rows_are_not_redrawn() {
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
    fn final_lines_are_written_once() {
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
    fn wide_final_line_wraps() {
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
    fn wrapped_rows_are_counted() {
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
    fn unwrapped_rows_are_counted() {
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
