//! A subset of vi's keys.
//!
//! `i a I A o O`, counts, `h l j k w b e 0 ^ $`, `x X D C`, `d c y` with a
//! motion or doubled, `p P u`, `/` for the history; Esc leaves inserting.
//!
//! Invariants: insert mode has the usual keys; unknown keys have no effect; one `u`
//! undoes an insertion.

use super::Composer;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

/// Maximum repeat count.
const MAX_COUNT: usize = 999;

/// The motion past the end of a word; bound to no key.
const WORD: char = '\0';

/// The mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    #[default]
    Insert,
    Normal,
}

/// State of vi keys.
#[derive(Debug, Default)]
pub(super) struct Vi {
    mode: Mode,
    count: usize,
    /// A pending `d`, `c` or `y`.
    operator: Option<char>,
    /// Whether the last deletion was whole lines.
    lines: bool,
    /// The text before the insertion.
    before: (String, usize),
}

impl Vi {
    /// Whether command mode is active.
    pub(super) fn is_normal(&self) -> bool {
        self.mode == Mode::Normal
    }

    /// The initial state.
    pub(super) fn begin(&mut self) {
        self.mode = Mode::Insert;
        self.count = 0;
        self.operator = None;
        self.before = (String::new(), 0);
    }
}

/// Word class of a character; `None` for white space.
fn kind(text: &str) -> Option<bool> {
    let c = text.chars().next()?;
    (!c.is_whitespace()).then(|| c.is_alphanumeric() || c == '_')
}

impl Composer {
    /// Handles a key in vi mode; `None` leaves it to the usual keys.
    pub(super) fn vi_key(&mut self, key: KeyEvent) -> Option<bool> {
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        if key.code == KeyCode::Esc {
            self.leave_inserting();
            return Some(true);
        }
        let vi = self.vi.as_mut()?;
        if vi.mode == Mode::Insert || !plain {
            return None;
        }
        let KeyCode::Char(c) = key.code else {
            // Moving keys cancel a pending command.
            (vi.count, vi.operator) = (0, None);
            return match key.code == KeyCode::Backspace {
                true => Some(self.vi_move('h', 1)),
                false => None,
            };
        };
        if c.is_ascii_digit() && (c != '0' || vi.count > 0) {
            let digit = c as usize - '0' as usize;
            vi.count = (vi.count * 10 + digit).min(MAX_COUNT);
            return Some(true);
        }
        let count = std::mem::take(&mut vi.count);
        Some(match vi.operator.take() {
            Some(operator) => self.vi_operate(operator, c, count.max(1)),
            None => self.vi_command(c, count),
        })
    }

    fn leave_inserting(&mut self) {
        let at = self.buffer.insertion_point();
        let text = self.text().to_owned();
        let Some(vi) = &mut self.vi else { return };
        (vi.count, vi.operator) = (0, None);
        if std::mem::replace(&mut vi.mode, Mode::Normal) == Mode::Normal {
            return;
        }
        let before = std::mem::take(&mut vi.before);
        if before.0 != text {
            self.keep(before);
        }
        if at > self.line_start() {
            self.buffer.move_left();
        }
    }

    fn insert_from_here(&mut self) -> bool {
        let state = (self.text().to_owned(), self.buffer.insertion_point());
        if let Some(vi) = &mut self.vi {
            vi.mode = Mode::Insert;
            vi.before = state;
        }
        true
    }

    fn vi_command(&mut self, c: char, count: usize) -> bool {
        match c {
            'i' => return self.insert_from_here(),
            'a' => {
                if self.buffer.insertion_point() < self.buffer.find_current_line_end() {
                    self.buffer.move_right();
                }
                return self.insert_from_here();
            }
            'I' => {
                self.vi_move('^', 1);
                return self.insert_from_here();
            }
            'A' => {
                self.buffer.move_to_line_end();
                return self.insert_from_here();
            }
            'o' | 'O' => {
                self.insert_from_here();
                if c == 'o' {
                    self.buffer.move_to_line_end();
                    self.buffer.insert_newline();
                } else {
                    self.buffer.set_insertion_point(self.line_start());
                    self.buffer.insert_newline();
                    self.buffer.move_left();
                }
            }
            'd' | 'c' | 'y' => {
                if let Some(vi) = &mut self.vi {
                    vi.operator = Some(c);
                    vi.count = count;
                }
            }
            'x' => return self.vi_operate('d', 'l', count.max(1)),
            'X' => return self.vi_operate('d', 'h', count.max(1)),
            'D' => return self.vi_operate('d', '$', 1),
            'C' => return self.vi_operate('c', '$', 1),
            'p' | 'P' => self.vi_put(c == 'p', count.max(1)),
            'u' => self.undo(),
            '/' => self.search = Some((String::new(), 0)),
            _ => return self.vi_move(c, count.max(1)),
        }
        true
    }

    /// Moves the cursor; returns whether the key is a motion.
    fn vi_move(&mut self, c: char, count: usize) -> bool {
        for _ in 0..count {
            match c {
                'j' => self.down(),
                'k' => self.up(),
                _ => match self.motion(c) {
                    Some(to) => self.buffer.set_insertion_point(to),
                    None => return false,
                },
            }
        }
        self.stay_on_a_character();
        true
    }

    /// Moves the cursor onto a character, as command mode requires.
    fn stay_on_a_character(&mut self) {
        let at = self.buffer.insertion_point();
        let is_normal = self.vi.as_ref().is_some_and(Vi::is_normal);
        if is_normal && at > self.line_start() && at == self.buffer.find_current_line_end() {
            self.buffer.move_left();
        }
    }

    fn vi_operate(&mut self, operator: char, c: char, count: usize) -> bool {
        let count = match self.vi.as_mut().map(|vi| std::mem::take(&mut vi.count)) {
            Some(before) if before > 0 => before,
            _ => count,
        };
        let at = self.buffer.insertion_point();
        if c == operator {
            return self.vi_lines(operator, count);
        }
        // `cw` keeps the white space after the word.
        let on_word = kind(&self.text()[at..]).is_some();
        let whole = operator == 'c' && c == 'w' && on_word;
        let mut to = at;
        for step in 1..=count {
            let motion = if whole && step == count { WORD } else { c };
            let Some(next) = self.motion(motion) else {
                self.buffer.set_insertion_point(at);
                return false;
            };
            to = next;
            self.buffer.set_insertion_point(to);
        }
        self.buffer.set_insertion_point(at);
        match c {
            'e' => to += self.grapheme(to).len(),
            // `w` on the last word stops at the end of the line.
            'w' if at < self.buffer.find_current_line_end() && to > at => {
                to = self.text()[at..to].rfind('\n').map_or(to, |end| at + end);
            }
            _ => {}
        }
        self.vi_cut(operator, at.min(to), at.max(to), false);
        true
    }

    fn vi_lines(&mut self, operator: char, count: usize) -> bool {
        let from = self.line_start();
        let text = self.text();
        let mut to = from;
        for _ in 0..count {
            to = text[to..].find('\n').map_or(text.len(), |end| to + end + 1);
        }
        match operator {
            // The line becomes empty.
            'c' => {
                let to = to - usize::from(to > from && text[..to].ends_with('\n'));
                self.vi_cut('c', from, to, false);
            }
            'y' => self.vi_cut('y', from, to, true),
            _ => {
                let last = to == text.len() && !text[..to].ends_with('\n');
                self.vi_cut('d', from, to, true);
                if last && from > 0 {
                    // Removes the preceding line end.
                    self.buffer.clear_range_safe(from - 1..from);
                    self.buffer.set_insertion_point(self.buffer.len());
                    self.buffer.set_insertion_point(self.line_start());
                }
            }
        }
        true
    }

    fn vi_cut(&mut self, operator: char, from: usize, to: usize, lines: bool) {
        if operator == 'c' {
            self.insert_from_here();
        }
        let at = self.buffer.insertion_point();
        self.cut = self.text()[from..to].to_owned();
        if let Some(vi) = &mut self.vi {
            vi.lines = lines;
        }
        match operator {
            'y' if lines => self.buffer.set_insertion_point(at),
            'y' => self.buffer.set_insertion_point(from),
            _ => {
                self.buffer.clear_range_safe(from..to);
                self.buffer.set_insertion_point(from);
                self.stay_on_a_character();
            }
        }
    }

    fn vi_put(&mut self, behind: bool, count: usize) {
        let cut = self.cut.repeat(count);
        if cut.is_empty() {
            return;
        }
        if self.vi.as_ref().is_some_and(|vi| vi.lines) {
            let lines = cut.trim_end_matches('\n').to_owned();
            let at = match behind {
                true => {
                    self.buffer.move_to_line_end();
                    let end = self.buffer.insertion_point();
                    self.buffer.insert_str(&format!("\n{lines}"));
                    end + 1
                }
                false => {
                    let start = self.line_start();
                    self.buffer.set_insertion_point(start);
                    self.buffer.insert_str(&format!("{lines}\n"));
                    start
                }
            };
            return self.buffer.set_insertion_point(at);
        }
        if behind && self.buffer.insertion_point() < self.buffer.find_current_line_end() {
            self.buffer.move_right();
        }
        self.buffer.insert_str(&cut);
        self.buffer.move_left();
    }

    fn grapheme(&self, at: usize) -> &str {
        self.text()[at..].graphemes(true).next().unwrap_or_default()
    }

    /// Target of a motion.
    fn motion(&self, c: char) -> Option<usize> {
        let (text, at) = (self.text(), self.buffer.insertion_point());
        let start = self.line_start();
        let end = self.buffer.find_current_line_end();
        let next = |from: usize| {
            let mut rest = text[from..].grapheme_indices(true);
            rest.nth(1).map_or(text.len(), |(next, _)| from + next)
        };
        let before = |from: usize| {
            let mut all = text[..from].grapheme_indices(true);
            all.next_back().map_or(0, |(at, _)| at)
        };
        let of = |place: usize| kind(&text[place..]);
        Some(match c {
            'h' if at > start => before(at),
            'h' => at,
            'l' if at < end => next(at),
            'l' => at,
            '0' => start,
            '^' => {
                let line = &text[start..end];
                start + line.len() - line.trim_start().len()
            }
            '$' => end,
            'w' => {
                let (first, mut to) = (of(at), at);
                while to < text.len() && first.is_some() && of(to) == first {
                    to = next(to);
                }
                while to < text.len() && of(to).is_none() {
                    to = next(to);
                }
                to
            }
            WORD => {
                let (first, mut to) = (of(at), at);
                while to < text.len() && of(to) == first {
                    to = next(to);
                }
                to
            }
            'b' => {
                let mut to = at;
                while to > 0 && of(before(to)).is_none() {
                    to = before(to);
                }
                let first = if to > 0 { of(before(to)) } else { None };
                while to > 0 && of(before(to)) == first {
                    to = before(to);
                }
                to
            }
            'e' => {
                let mut to = next(at).min(text.len());
                while to < text.len() && of(to).is_none() {
                    to = next(to);
                }
                while to < text.len() && next(to) < text.len() && of(next(to)) == of(to) {
                    to = next(to);
                }
                if to >= text.len() {
                    before(text.len()).max(at)
                } else {
                    to
                }
            }
            _ => return None,
        })
    }
}
