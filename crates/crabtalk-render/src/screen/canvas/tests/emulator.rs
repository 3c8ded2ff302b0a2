//! A small terminal emulator, which wraps and scrolls the output of a canvas.
//!
//! Resizing follows tmux: a lower terminal first drops rows below the cursor, then
//! scrolls; a higher one takes rows back; another width wraps all lines again.

/// How a terminal treats a resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Rows return from the scrollback.
    Returns,
    /// Rows return, and a cleared row stays the continuation of the row before it.
    Joins,
    /// Rows stay in the scrollback.
    Keeps,
}

#[derive(Debug, Clone, Default)]
struct Row {
    cells: Vec<char>,
    /// Whether the next row continues this one.
    is_wrapped: bool,
}

/// The terminal.
pub(super) struct Emulator {
    kind: Kind,
    rows: Vec<Row>,
    /// Rows in the scrollback.
    scrolled: usize,
    columns: usize,
    height: usize,
    /// Column and row on the screen.
    at: (usize, usize),
    wraps: bool,
}

impl Emulator {
    pub(super) fn new(kind: Kind, (columns, height): (usize, usize)) -> Self {
        Self {
            kind,
            rows: vec![Row::default(); height],
            scrolled: 0,
            columns,
            height,
            at: (0, 0),
            wraps: true,
        }
    }

    /// Interprets output.
    pub(super) fn take(&mut self, text: &str) {
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\r' => self.at.0 = 0,
                '\n' => self.feed(),
                '\x1b' => {
                    assert_eq!(rest.next(), Some('['), "only CSI sequences");
                    let mut arguments = String::new();
                    let end = loop {
                        match rest.next().expect("a complete sequence") {
                            c @ '@'..='~' => break c,
                            c => arguments.push(c),
                        }
                    };
                    self.control(&arguments, end);
                }
                c => self.put(c),
            }
        }
    }

    fn control(&mut self, arguments: &str, end: char) {
        let count = arguments.parse().unwrap_or(1);
        match (end, arguments) {
            ('A', _) => self.at.1 = self.at.1.saturating_sub(count),
            ('C', _) => self.at.0 = (self.at.0.min(self.columns - 1) + count).min(self.columns - 1),
            ('K', "") => self.clear_line(),
            ('J', "") => {
                assert_ne!(self.at, (0, 0), "tmux saves it to the scrollback");
                self.clear_line();
                let below = self.scrolled + self.at.1 + 1;
                self.rows[below..].fill(Row::default());
            }
            ('h' | 'l', "?7") => self.wraps = end == 'h',
            ('h' | 'l', "?2026" | "?25") | ('m', _) => {}
            other => panic!("unknown sequence {other:?}"),
        }
    }

    fn clear_line(&mut self) {
        // A pending wrap is on the last column.
        let column = self.at.0.min(self.columns - 1);
        let at = self.scrolled + self.at.1;
        self.rows[at].cells.truncate(column);
        self.rows[at].is_wrapped = false;
        if column == 0 && at > 0 && self.kind != Kind::Joins {
            self.rows[at - 1].is_wrapped = false;
        }
    }

    fn put(&mut self, c: char) {
        if self.at.0 >= self.columns {
            if self.wraps {
                let at = self.scrolled + self.at.1;
                self.rows[at].is_wrapped = true;
                self.feed();
                self.at.0 = 0;
            } else {
                self.at.0 = self.columns - 1;
            }
        }
        let row = &mut self.rows[self.scrolled + self.at.1];
        let length = row.cells.len().max(self.at.0 + 1);
        row.cells.resize(length, ' ');
        row.cells[self.at.0] = c;
        self.at.0 += 1;
    }

    fn feed(&mut self) {
        if self.at.1 + 1 == self.height {
            self.scrolled += 1;
            self.rows.push(Row::default());
        } else {
            self.at.1 += 1;
        }
    }

    pub(super) fn resize(&mut self, (columns, height): (usize, usize)) {
        self.at.0 = self.at.0.min(self.columns - 1);
        if height < self.height {
            let below = self.height - 1 - self.at.1;
            let dropped = below.min(self.height - height);
            self.rows.truncate(self.rows.len() - dropped);
            let scrolled = self.height - height - dropped;
            self.scrolled += scrolled;
            self.at.1 -= scrolled;
        } else {
            let returned = match self.kind {
                Kind::Keeps => 0,
                Kind::Returns | Kind::Joins => self.scrolled.min(height - self.height),
            };
            self.scrolled -= returned;
            self.at.1 += returned;
            let added = height - self.height - returned;
            let length = self.rows.len() + added;
            self.rows.resize(length, Row::default());
        }
        self.height = height;
        if columns != self.columns {
            self.wrap_anew(columns);
        }
    }

    fn wrap_anew(&mut self, columns: usize) {
        let cursor = self.scrolled + self.at.1;
        let last = self.rows.len() - 1;
        let (mut rows, mut cells, mut at) = (Vec::new(), Vec::new(), None);
        for (index, row) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            if index == cursor {
                let column = cells.len() + self.at.0;
                at = Some((rows.len() + column / columns, column % columns));
            }
            cells.extend(row.cells);
            if row.is_wrapped && index < last {
                cells.resize(cells.len().next_multiple_of(self.columns), ' ');
                continue;
            }
            let count = cells.len().div_ceil(columns).max(1);
            for part in 0..count {
                let end = ((part + 1) * columns).min(cells.len());
                rows.push(Row {
                    cells: cells[part * columns..end].to_vec(),
                    is_wrapped: part + 1 < count,
                });
            }
            cells.clear();
        }
        self.columns = columns;
        let length = rows.len().max(self.height);
        rows.resize(length, Row::default());
        self.rows = rows;
        self.scrolled = length - self.height;
        let (row, column) = at.expect("the cursor is on a row");
        self.at = match row.checked_sub(self.scrolled) {
            Some(row) => (column, row),
            None => (0, 0),
        };
    }

    /// Column and row of the cursor.
    pub(super) fn cursor(&self) -> (usize, usize) {
        (self.at.0.min(self.columns - 1), self.at.1)
    }

    /// Rows of the screen.
    pub(super) fn screen(&self) -> Vec<String> {
        let rows = self.rows[self.scrolled..].iter();
        rows.map(|row| row.cells.iter().collect::<String>().trim_end().to_owned())
            .collect()
    }

    /// Lines of the scrollback and the screen, with wrapped rows joined.
    pub(super) fn lines(&self) -> Vec<String> {
        let (mut lines, mut line) = (Vec::new(), String::new());
        for row in &self.rows {
            line.extend(&row.cells);
            if !row.is_wrapped {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
        }
        lines
    }
}
