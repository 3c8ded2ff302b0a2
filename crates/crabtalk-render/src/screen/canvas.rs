//! Rows redrawn at the bottom of the terminal, below final lines.
//!
//! Invariants: final lines are ordinary terminal text that scrolls and can be selected;
//! the cursor stays in the drawn rows; a frame is one synchronized write; rows never
//! wrap, final lines wrap if the terminal became narrower.
//!
//! A terminal that shrinks wraps the rows and moves the top rows into the
//! scrollback; most terminals return them when they grow. Such rows are tracked as
//! hidden and overwritten once they are back, unless final lines follow them. If the
//! number of hidden rows is uncertain, the smaller one is used: a stale row is
//! better than a lost line.

use crate::theme::Ground;
use crate::{Line, Span, cut};
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// Begins a frame: synchronized, without cursor.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";

/// Ends a frame.
const END: &str = "\x1b[?7h\x1b[?2026l";

/// Disables wrapping, for rows.
const NO_WRAP: &str = "\x1b[?7l";

/// Clears the line from the cursor on.
const CLEAR_LINE: &str = "\x1b[K";

/// Clears the line and all below. From the second column, since some terminals save a
/// screen that is cleared from its first cell to the scrollback.
const CLEAR_BELOW: &str = "\x1b[K\x1b[C\x1b[J\r";

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
    /// Columns and rows of the terminal.
    size: (usize, usize),
    /// Rows of the last frame.
    shown: Vec<String>,
    /// Hidden rows, and those of the last frame.
    there: Vec<Line>,
    /// Row and column of the cursor in `there`.
    at: (usize, usize),
    cursor: Option<(usize, usize)>,
    /// Rows known to be below the cursor.
    below: usize,
    /// Whether the screen is unknown.
    is_stale: bool,
}

impl fmt::Debug for Canvas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canvas").field("at", &self.at).finish()
    }
}

impl Canvas {
    /// Creates an empty canvas on a terminal with this many columns and rows.
    pub fn new(out: Box<dyn Write + Send>, styles: bool, size: (usize, usize)) -> Self {
        Self {
            out,
            styles,
            ground: Ground::Unknown,
            size: (size.0.max(1), size.1.max(1)),
            shown: Vec::new(),
            there: Vec::new(),
            at: (0, 0),
            cursor: None,
            below: 0,
            is_stale: false,
        }
    }

    /// Columns and rows of the terminal.
    pub fn size(&self) -> (usize, usize) {
        self.size
    }

    /// Redraws after a change of the size, which wraps and hides rows.
    pub fn resize(&mut self, (columns, rows): (usize, usize)) {
        let rows = rows.max(1);
        let columns = columns.max(1);
        self.below = match self.size {
            // A terminal that becomes lower first drops rows below the cursor.
            (same, height) if same == columns => {
                self.below.saturating_sub(height.saturating_sub(rows))
            }
            // The rows were wrapped again.
            _ => 0,
        };
        self.size = (columns, rows);
        self.redraw();
    }

    /// Number of rows that are in the scrollback.
    fn hidden(&self) -> usize {
        let reach = (self.size.1 - 1).saturating_sub(self.below);
        self.rows_there().0.saturating_sub(reach)
    }

    /// Whether rows are in the scrollback, where final lines would follow them.
    pub fn hides_rows(&self) -> bool {
        self.hidden() > 0
    }

    /// Records that the last frame was drawn for a former size: its rows may have been
    /// cut rather than wrapped.
    pub fn doubt(&mut self) {
        for line in &mut self.there {
            *line = Line::default();
        }
        self.at.1 = 0;
    }

    /// Terminal rows above the cursor, and all of them.
    fn rows_there(&self) -> (usize, usize) {
        let (row, column) = self.at;
        let columns = self.size.0;
        let above: usize = self
            .there
            .iter()
            .take(row)
            .map(|l| rows_of(l, columns))
            .sum();
        let all = self.there.iter().map(|l| rows_of(l, columns)).sum();
        (above + column / columns, all)
    }

    /// Replaces the rows of the last frame, of which `hidden` are out of reach.
    fn place(&mut self, hidden: usize, mut lines: Vec<Line>, (row, column): (usize, usize)) {
        let old = std::mem::take(&mut self.there);
        self.at = (row, column);
        let mut left = hidden;
        for line in old {
            let mut parts = cut(&line, self.size.0);
            if left == 0 {
                break;
            }
            if left >= parts.len() {
                left -= parts.len();
                self.there.push(line);
                self.at.0 += 1;
                continue;
            }
            // The terminal treats the first row as the continuation of this line.
            parts.truncate(left);
            let spans = parts.iter().flat_map(Line::spans).cloned();
            let part: Vec<Span> = spans.collect();
            if row == 0 {
                self.at.1 += part.iter().map(Span::width).sum::<usize>();
            }
            match lines.first_mut() {
                Some(first) => *first = std::mem::take(first).behind(&part),
                None => lines.push(Line::from(part)),
            }
            break;
        }
        self.there.extend(lines);
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
        self.is_stale = true;
    }

    /// Draws below the output of other programs.
    pub fn begin_anew(&mut self) {
        self.shown.clear();
        self.there.clear();
        self.at = (0, 0);
        self.cursor = None;
        self.below = 0;
    }

    /// The rows and the cursor, cut to the terminal.
    fn fitted(&self, drawing: &Drawing) -> (Vec<Line>, Option<(usize, usize)>) {
        let (columns, most) = self.size;
        let excess = drawing.rows.len().saturating_sub(most);
        let rows = drawing.rows.iter().skip(excess);
        let rows = rows.map(|row| cut(row, columns).swap_remove(0));
        let cursor = drawing
            .cursor
            .and_then(|(row, column)| Some((row.checked_sub(excess)?, column.min(columns - 1))));
        (rows.collect(), cursor)
    }

    /// Writes final lines and draws the rows below.
    pub fn draw(&mut self, above: &[Line], drawing: &Drawing) -> io::Result<()> {
        let (lines, cursor) = self.fitted(drawing);
        let rows: Vec<String> = lines.iter().map(|row| self.text(row)).collect();
        let is_same = !self.is_stale && rows == self.shown && cursor == self.cursor;
        if above.is_empty() && is_same {
            return Ok(());
        }
        let mut out = String::from(BEGIN);
        let (over, before) = self.rows_there();
        up(&mut out, over);
        out.push('\r');
        let mut kept = std::mem::take(&mut self.shown);
        if !above.is_empty() || self.is_stale {
            kept.clear();
        }
        // Line by line, since some terminals save a cleared screen to the scrollback.
        for line in above {
            self.push_above(&mut out, line);
        }
        let written = above.iter().map(|line| rows_of(line, self.size.0));
        let written = written.sum::<usize>() + rows.len().max(1);
        let is_longer = self.is_stale || before > written;
        out.push_str(NO_WRAP);
        push_rows(&mut out, &rows, &kept, is_longer);
        let last = rows.len().saturating_sub(1);
        let (row, column) = cursor.unwrap_or((last, 0));
        let row = row.min(last);
        up(&mut out, last - row);
        out.push('\r');
        if column > 0 {
            let _ = write!(out, "\x1b[{column}C");
        }
        if cursor.is_some() {
            out.push_str("\x1b[?25h");
        }
        out.push_str(END);
        let hidden = match above {
            [] => self.hidden(),
            // They precede final lines now.
            _ => 0,
        };
        // A drawing below hidden rows begins in the first row.
        self.below = match hidden {
            0 => 0,
            _ => (self.size.1 - 1).saturating_sub(row),
        };
        self.place(hidden, lines, (row, column));
        self.shown = rows;
        self.cursor = cursor;
        self.is_stale = false;
        self.out.write_all(out.as_bytes())?;
        self.out.flush()
    }

    /// Removes the rows.
    pub fn clear(&mut self) -> io::Result<()> {
        let mut out = String::new();
        up(&mut out, self.rows_there().0);
        let _ = write!(out, "\r{CLEAR_BELOW}\x1b[?25h");
        self.begin_anew();
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

    /// Writes a final line, which wraps.
    fn push_above(&self, out: &mut String, line: &Line) {
        let (width, columns) = (line.width(), self.size.0);
        out.push_str(CLEAR_LINE);
        out.push_str(&self.text(line));
        // After a full row the cursor stays on the last column.
        if width > columns && !width.is_multiple_of(columns) {
            out.push_str(CLEAR_LINE);
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

/// Writes rows, except those that the terminal already shows; `clear_below` removes what follows.
fn push_rows(out: &mut String, rows: &[String], kept: &[String], clear_below: bool) {
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            out.push_str("\r\n");
        }
        if clear_below && index + 1 == rows.len() {
            out.push_str(CLEAR_BELOW);
            out.push_str(row);
        } else if kept.get(index) != Some(row) {
            out.push_str(CLEAR_LINE);
            out.push_str(row);
        }
    }
    if rows.is_empty() {
        out.push_str(if clear_below { CLEAR_BELOW } else { CLEAR_LINE });
    }
}

/// The number of rows of a wrapped line.
fn rows_of(line: &Line, columns: usize) -> usize {
    match line.width() <= columns {
        true => 1,
        // A terminal breaks at any character.
        false => cut(line, columns).len(),
    }
}

fn up(out: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(out, "\x1b[{rows}A");
    }
}

#[cfg(test)]
mod tests;
