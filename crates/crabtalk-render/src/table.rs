//! Lays out tables in a width.
//!
//! Invariant: no line exceeds the width; if columns would be too narrow, each row becomes
//! several lines.

use crate::line::{Line, Span};
use crate::theme::{BOLD, DIM, PLAIN};
use crate::wrap::words;
use anstyle::Effects;
use pulldown_cmark::Alignment;

/// Separator of columns.
const BETWEEN: &str = " \u{2502} ";

/// The width of the separator.
const BETWEEN_WIDTH: usize = 3;

/// Minimum readable width of a column.
const MIN_COLUMN: usize = 6;

/// A cell: spans without line ends.
pub(crate) type Cell = Vec<Option<Span>>;

/// A parsed table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) alignments: Vec<Alignment>,
    /// The rows; the first is the head.
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn lines(&self, width: usize) -> Vec<Line> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        if count == 0 {
            return Vec::new();
        }
        match self.widths(count, width) {
            Some(widths) => self.grid(&widths),
            None => self.records(width),
        }
    }

    /// Widths of the columns; `None` if some would be too narrow.
    fn widths(&self, count: usize, width: usize) -> Option<Vec<usize>> {
        let mut natural = vec![1; count];
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                natural[column] = cell_width(cell).max(natural[column]);
            }
        }
        let room = width.checked_sub(BETWEEN_WIDTH * (count - 1))?;
        if natural.iter().sum::<usize>() <= room {
            return Some(natural);
        }
        // Narrow columns get their full width; wide ones share the rest.
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|column| natural[*column]);
        let (mut left, mut widths) = (room, vec![0; count]);
        for (done, column) in order.into_iter().enumerate() {
            let share = left / (count - done);
            widths[column] = natural[column].min(share);
            left -= widths[column];
        }
        let narrow = |(width, natural): (&usize, &usize)| width < natural && *width < MIN_COLUMN;
        (!widths.iter().zip(&natural).any(narrow)).then_some(widths)
    }

    fn grid(&self, widths: &[usize]) -> Vec<Line> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Line>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| row.get(column).map_or_else(Vec::new, |c| words(c, *width)))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for at in 0..height {
                lines.push(self.grid_line(widths, &cells, at, index == 0));
            }
            if index == 0 {
                let rule = widths.iter().map(|width| "\u{2500}".repeat(*width));
                let rule: Vec<String> = rule.collect();
                lines.push(Line::styled(rule.join("\u{2500}\u{253c}\u{2500}"), DIM));
            }
        }
        lines
    }

    fn grid_line(&self, widths: &[usize], cells: &[Vec<Line>], at: usize, head: bool) -> Line {
        let mut line = Line::default();
        for (column, width) in widths.iter().enumerate() {
            if column > 0 {
                line.push(Span::known(BETWEEN, DIM));
            }
            let empty = Line::default();
            let text = cells[column].get(at).unwrap_or(&empty);
            let spare = width.saturating_sub(text.width());
            let before = match self.alignments.get(column) {
                Some(Alignment::Right) => spare,
                Some(Alignment::Center) => spare / 2,
                Some(Alignment::Left | Alignment::None) | None => 0,
            };
            line.push(Span::known(&" ".repeat(before), PLAIN));
            for span in text.spans() {
                let style = if head {
                    span.style() | Effects::BOLD
                } else {
                    span.style()
                };
                line.push(Span::known(span.text(), style));
            }
            // The last column needs no padding: lines end with their text.
            if column + 1 < widths.len() {
                line.push(Span::known(&" ".repeat(spare - before), PLAIN));
            }
        }
        line
    }

    /// Writes each row as lines of `head: cell`.
    fn records(&self, width: usize) -> Vec<Line> {
        let (head, rows) = self
            .rows
            .split_first()
            .map_or((None, &[][..]), |(h, r)| (Some(h), r));
        let mut lines = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(Line::default());
            }
            for (column, cell) in row.iter().enumerate() {
                let name = head.and_then(|head| head.get(column));
                let mut spans: Cell = name.into_iter().flatten().cloned().collect();
                for span in spans.iter_mut().flatten() {
                    *span = Span::known(span.text(), BOLD);
                }
                if !spans.is_empty() {
                    spans.push(Some(Span::known(": ", BOLD)));
                }
                spans.extend(cell.iter().cloned());
                lines.extend(words(&spans, width));
            }
        }
        if rows.is_empty() {
            let all = head.into_iter().flatten();
            lines.extend(all.flat_map(|cell| words(cell, width)));
        }
        lines
    }
}

fn cell_width(cell: &Cell) -> usize {
    cell.iter().flatten().map(Span::width).sum()
}
