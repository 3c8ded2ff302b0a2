//! A message editor with history and labelled pastes.
//!
//! Invariants: unknown keys have no effect; a paste is sent in full under any label;
//! only explicit keys delete text.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "keys that mean nothing here change nothing"
)]

mod vi;

use crate::{Line, Span, clean, theme};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use reedline::LineBuffer;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;
use vi::Vi;

/// Maximum lines of a paste shown as text.
const PASTE_LINES: usize = 4;

/// Maximum bytes of a paste shown as text.
const PASTE_BYTES: usize = 400;

/// Maximum rows; longer text scrolls.
const MAX_ROWS: usize = 8;

/// Maximum undo steps.
const UNDO_STEPS: usize = 100;

/// The prompt.
pub const PROMPT: &str = "\u{203a} ";

/// The prompt in vi's command mode.
const NORMAL_PROMPT: &str = "\u{2039} ";

/// The editor's state.
#[derive(Debug, Default)]
pub struct Composer {
    buffer: LineBuffer,
    /// The last deleted text.
    cut: String,
    /// Pastes shown as labels.
    pastes: Vec<(String, String)>,
    undo: Vec<(String, usize)>,
    history: Vec<String>,
    /// Position in the history, and the text before browsing it.
    recalled: Option<(usize, String)>,
    /// Whether the last key moved in the history or undid a change.
    walked: bool,
    /// The search text and the number of skipped matches.
    search: Option<(String, usize)>,
    /// State of vi keys, if enabled.
    vi: Option<Vi>,
    /// Byte ranges of the text that are shown as unknown references.
    marks: Vec<Range<usize>>,
}

impl Composer {
    /// Creates a composer with a history.
    pub fn with_history(history: Vec<String>) -> Self {
        Self {
            history,
            ..Self::default()
        }
    }

    /// Sets whether vi keys are enabled.
    #[must_use]
    pub fn with_vi(mut self, vi: bool) -> Self {
        self.vi = vi.then(Vi::default);
        self
    }

    /// Whether the composer handles Esc in its current state.
    pub fn takes_escape(&self) -> bool {
        self.vi.as_ref().is_some_and(|vi| !vi.is_normal())
    }

    /// The text, with labels in place of pastes.
    pub fn text(&self) -> &str {
        self.buffer.get_buffer()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The text up to the cursor.
    pub fn before_cursor(&self) -> &str {
        &self.text()[..self.buffer.insertion_point()]
    }

    /// Shows these byte ranges as unknown references until the next call.
    pub fn mark(&mut self, marks: Vec<Range<usize>>) {
        self.marks = marks;
    }

    /// Whether the text is a line of the history.
    pub fn is_recalled(&self) -> bool {
        self.recalled.is_some()
    }

    /// Replaces the text.
    pub fn set(&mut self, text: &str) {
        self.remember();
        self.buffer.set_buffer(text.to_owned());
        self.buffer.move_to_end();
    }

    /// Replaces the bytes between `from` and the cursor.
    pub fn complete(&mut self, from: usize, text: &str) {
        self.remember();
        let to = self.buffer.insertion_point();
        self.buffer.replace_range(from..to, text);
        self.buffer.set_insertion_point(from + text.len());
    }

    /// Takes the text with expanded pastes, and adds it to the history.
    pub fn take(&mut self) -> String {
        let shown = self.text().to_owned();
        let mut whole = shown.clone();
        for (label, paste) in self.pastes.drain(..) {
            whole = whole.replacen(&label, &paste, 1);
        }
        self.buffer.clear();
        self.undo.clear();
        self.recalled = None;
        self.search = None;
        if let Some(vi) = &mut self.vi {
            vi.begin();
        }
        if !shown.trim().is_empty() && self.history.last() != Some(&whole) {
            self.history.push(whole.clone());
        }
        whole
    }

    /// Clears the text and adds it to the history.
    pub fn clear(&mut self) {
        self.take();
    }

    /// Inserts a paste.
    pub fn paste(&mut self, text: &str) {
        self.remember();
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.lines().count();
        if lines <= PASTE_LINES && text.len() <= PASTE_BYTES {
            self.buffer.insert_str(&text);
            return;
        }
        let number = self.pastes.len() + 1;
        let label = match lines {
            0 | 1 => format!("[paste {number}: {} characters]", text.chars().count()),
            lines => format!("[paste {number}: {lines} lines]"),
        };
        self.buffer.insert_str(&label);
        self.pastes.push((label, text));
    }

    /// Handles a key; returns whether the key has a meaning, so that the text or the cursor may
    /// have changed.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        if self.search.is_some() && self.search_key(key) {
            return true;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let before = (self.text().to_owned(), self.buffer.insertion_point());
        let inserting = self.takes_escape();
        let by_vi = match self.vi {
            Some(_) => self.vi_key(key),
            None => None,
        };
        let known = match key.code {
            _ if by_vi.is_some() => by_vi == Some(true),
            KeyCode::Char(c) if control => self.control(c),
            KeyCode::Char(c) if alt => self.alt(c),
            KeyCode::Char(c) => {
                self.buffer.insert_char(c);
                true
            }
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => {
                self.buffer.insert_newline();
                true
            }
            code => self.named(code, control || alt),
        };
        if !known {
            return false;
        }
        if !std::mem::take(&mut self.walked) && self.text() != before.0 {
            self.recalled = None;
            // In vi, one undo step reverts a whole insertion.
            if !inserting && !self.takes_escape() {
                self.keep(before);
            }
        }
        true
    }

    fn control(&mut self, c: char) -> bool {
        match c {
            'a' => self.buffer.move_to_line_start(),
            'e' => self.buffer.move_to_line_end(),
            'b' => self.buffer.move_left(),
            'f' => self.buffer.move_right(),
            'd' => self.buffer.delete_right_grapheme(),
            'h' => self.backspace(),
            'j' => self.buffer.insert_newline(),
            'k' => self.cut_to(self.buffer.find_current_line_end()),
            'u' => self.cut_to(self.line_start()),
            'w' => self.cut_word(false),
            'y' => self.buffer.insert_str(&self.cut.clone()),
            't' => self.buffer.swap_graphemes(),
            'p' => self.up(),
            'n' => self.down(),
            'r' => self.search = Some((String::new(), 0)),
            '_' | 'z' | '7' | '/' => self.undo(),
            _ => return false,
        }
        true
    }

    fn alt(&mut self, c: char) -> bool {
        match c {
            'b' => self.move_word(false),
            'f' => self.move_word(true),
            'd' => self.cut_word(true),
            '<' => self.buffer.move_to_start(),
            '>' => self.buffer.move_to_end(),
            _ => return false,
        }
        true
    }

    fn named(&mut self, code: KeyCode, word: bool) -> bool {
        match code {
            KeyCode::Left if word => self.move_word(false),
            KeyCode::Right if word => self.move_word(true),
            KeyCode::Left => self.buffer.move_left(),
            KeyCode::Right => self.buffer.move_right(),
            KeyCode::Home => self.buffer.move_to_line_start(),
            KeyCode::End => self.buffer.move_to_line_end(),
            KeyCode::Backspace if word => self.cut_word(false),
            KeyCode::Backspace => self.backspace(),
            KeyCode::Delete => self.buffer.delete_right_grapheme(),
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            _ => return false,
        }
        true
    }

    /// Deletes backward; a label is deleted as a whole.
    fn backspace(&mut self) {
        let label = self
            .pastes
            .iter()
            .position(|(label, _)| self.before_cursor().ends_with(label.as_str()));
        match label {
            Some(at) => {
                let (label, _) = self.pastes.remove(at);
                let to = self.buffer.insertion_point();
                self.buffer.clear_range_safe(to - label.len()..to);
                self.buffer.set_insertion_point(to - label.len());
            }
            None => self.buffer.delete_left_grapheme(),
        }
    }

    fn line_start(&self) -> usize {
        self.before_cursor().rfind('\n').map_or(0, |end| end + 1)
    }

    /// Position of the next or previous word boundary.
    fn move_word(&mut self, right: bool) {
        let at = self.buffer.insertion_point();
        let text = self.text();
        let to = if right {
            let rest = &text[at..];
            let word = rest.find(char::is_alphanumeric).unwrap_or(rest.len());
            let end = rest[word..].find(|c: char| !c.is_alphanumeric());
            end.map_or(text.len(), |end| at + word + end)
        } else {
            let before = text[..at].trim_end_matches(|c: char| !c.is_alphanumeric());
            before.trim_end_matches(char::is_alphanumeric).len()
        };
        self.buffer.set_insertion_point(to);
    }

    fn cut_word(&mut self, right: bool) {
        let at = self.buffer.insertion_point();
        match right {
            true => self.move_word(true),
            false => self.move_word(false),
        }
        let to = self.buffer.insertion_point();
        self.buffer.set_insertion_point(at);
        self.cut_to(to);
    }

    fn cut_to(&mut self, to: usize) {
        let at = self.buffer.insertion_point();
        let range = at.min(to)..at.max(to);
        self.cut = self.text()[range.clone()].to_owned();
        self.buffer.clear_range_safe(range.clone());
        self.buffer.set_insertion_point(range.start);
    }

    fn remember(&mut self) {
        let state = (self.text().to_owned(), self.buffer.insertion_point());
        self.keep(state);
    }

    fn keep(&mut self, state: (String, usize)) {
        if self.undo.len() == UNDO_STEPS {
            self.undo.remove(0);
        }
        self.undo.push(state);
    }

    fn undo(&mut self) {
        // An undo is not itself an undo step.
        self.walked = true;
        if let Some((text, at)) = self.undo.pop() {
            self.buffer.set_buffer(text);
            self.buffer.set_insertion_point(at);
        }
    }

    fn up(&mut self) {
        if self.buffer.is_cursor_at_first_line() {
            self.recall(true);
        } else {
            self.buffer.move_line_up();
        }
    }

    fn down(&mut self) {
        if self.buffer.is_cursor_at_last_line() {
            self.recall(false);
        } else {
            self.buffer.move_line_down();
        }
    }

    fn recall(&mut self, older: bool) {
        self.walked = true;
        let (at, written) = match (self.recalled.take(), older) {
            (Some((at, written)), true) => (at.saturating_sub(1), written),
            (Some((at, written)), false) => (at + 1, written),
            (None, true) if !self.history.is_empty() => {
                (self.history.len() - 1, self.text().to_owned())
            }
            (None, _) => return,
        };
        let text = self.history.get(at).unwrap_or(&written).clone();
        self.buffer.set_buffer(text);
        self.buffer.move_to_end();
        if at < self.history.len() {
            self.recalled = Some((at, written));
        }
    }

    /// Handles a key of the history search; returns whether it did.
    fn search_key(&mut self, key: KeyEvent) -> bool {
        let Some((mut term, mut passed)) = self.search.take() else {
            return false;
        };
        match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
            (KeyCode::Char('r'), true) => passed += 1,
            (KeyCode::Char('g' | 'c'), true) | (KeyCode::Esc, _) => return true,
            (KeyCode::Char(c), false) => {
                term.push(c);
                passed = 0;
            }
            (KeyCode::Backspace, _) => {
                term.pop();
                passed = 0;
            }
            // Other keys end the search and take effect.
            (KeyCode::Enter, _) => return true,
            _ => return false,
        }
        let mut matches = self.history.iter().rev();
        if let Some(found) = matches
            .by_ref()
            .filter(|line| line.contains(&term))
            .nth(passed)
        {
            self.buffer.set_buffer(found.clone());
            self.buffer.move_to_end();
        }
        self.search = Some((term, passed));
        true
    }

    /// Whether the history is being searched.
    pub fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    /// The rows and the cursor.
    pub fn rows(&self, width: usize, hint: &str) -> (Vec<Line>, (usize, usize)) {
        let prompt = match &self.search {
            Some((term, _)) => format!("search {}{PROMPT}", clean(term)),
            None if self.vi.as_ref().is_some_and(Vi::is_normal) => NORMAL_PROMPT.to_owned(),
            None => PROMPT.to_owned(),
        };
        let indent = prompt.width();
        let room = width.saturating_sub(indent + 1).max(4);
        let (rows, at) = broken(
            self.text(),
            self.buffer.insertion_point(),
            &self.marks,
            room,
        );
        let first = (at.0 + 1).saturating_sub(MAX_ROWS);
        let mut lines: Vec<Line> = rows
            .iter()
            .enumerate()
            .skip(first)
            .take(MAX_ROWS)
            .map(|(index, row)| {
                let lead = match index {
                    0 => Span::new(&prompt, theme::HEADING),
                    _ => Span::new(" ".repeat(indent), theme::PLAIN),
                };
                row.clone().behind(&[lead])
            })
            .collect();
        if self.is_empty() && self.search.is_none() {
            let hint = crate::shorten(&Line::styled(hint, theme::DIM), room);
            for span in hint.spans() {
                lines[0].push(span.clone());
            }
        }
        (lines, (at.0 - first, indent + at.1))
    }
}

/// Wraps a text and locates a position in it; marked bytes are shown as unknown references.
fn broken(
    text: &str,
    place: usize,
    marks: &[Range<usize>],
    width: usize,
) -> (Vec<Line>, (usize, usize)) {
    let (mut rows, mut row, mut used) = (Vec::new(), Line::default(), 0);
    let mut at = (0, 0);
    for (index, grapheme) in text.grapheme_indices(true) {
        if index == place {
            at = (rows.len(), used);
        }
        if grapheme == "\n" || grapheme == "\r\n" {
            rows.push(std::mem::take(&mut row));
            used = 0;
            continue;
        }
        let shown = match grapheme {
            "\t" => "    ".into(),
            grapheme => clean(grapheme),
        };
        let columns = shown.width();
        if used + columns > width {
            rows.push(std::mem::take(&mut row));
            used = 0;
            if index == place {
                at = (rows.len(), 0);
            }
        }
        let style = match marks.iter().any(|mark| mark.contains(&index)) {
            true => theme::UNKNOWN,
            false => theme::PLAIN,
        };
        row.extend(&shown, style);
        used += columns;
    }
    if place >= text.len() {
        at = (rows.len(), used);
    }
    rows.push(row);
    (rows, at)
}

#[cfg(test)]
mod tests;
