//! The list of completions below the composer.
//!
//! Invariants: a paste and the input history open no list, so that Enter sends exactly
//! their text; Enter inserts a row only if it was selected or the word is incomplete.

use super::Live;
use super::complete::{Candidate, Completion};
use super::transcript::MARGIN;
use super::tree::MAX_PATHS;
use crabtalk_render::{Line, shorten, theme};
use crossterm::event::{KeyCode, KeyEvent};
use unicode_width::UnicodeWidthStr;

/// Maximum number of visible candidates.
const SHOWN: usize = 8;

/// Minimum rows for showing a footer.
const MIN_WITH_FOOTER: usize = 3;

/// Completions of the word at the cursor.
pub(super) struct Popup {
    found: Completion,
    chosen: usize,
    /// Whether a key moved the selection.
    is_moved: bool,
    /// Whether files are missing from the list.
    is_cut: bool,
}

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Popped {
    /// Not handled.
    Not,
    Handled,
    /// The composer now contains a complete command.
    Submit,
}

impl Popup {
    fn row(&self) -> &Candidate {
        &self.found.candidates[self.chosen]
    }

    /// Whether Enter inserts the selected row.
    fn takes_enter(&self) -> bool {
        self.is_moved || !self.found.is_complete
    }

    fn moved(&mut self, by: usize) {
        self.chosen = (self.chosen + by) % self.found.candidates.len();
        self.is_moved = true;
    }

    /// The rows, at most `most`.
    pub(super) fn rows(&self, width: usize, most: usize) -> Vec<Line> {
        let all = &self.found.candidates;
        let footer = usize::from(most >= MIN_WITH_FOOTER);
        let most = (most - footer).clamp(1, SHOWN);
        let first = (self.chosen + 1).saturating_sub(most);
        let shown = || all.iter().enumerate().skip(first).take(most);
        let longest = shown().map(|(_, row)| row.text.width()).max().unwrap_or(0);
        let mut rows: Vec<Line> = shown()
            .map(|(index, row)| {
                let style = match index == self.chosen {
                    true => theme::HEADING,
                    false => theme::PLAIN,
                };
                let room = " ".repeat(longest - row.text.width());
                Line::styled(format!("{MARGIN}{}{room}", row.text), style)
                    .with(MARGIN, theme::PLAIN)
                    .with(&row.about, theme::DIM)
            })
            .collect();
        if footer == 1 {
            rows.push(Line::styled(
                format!("{MARGIN}{}", self.footer()),
                theme::DIM,
            ));
        }
        let room = width.saturating_sub(1);
        rows.iter().map(|row| shorten(row, room)).collect()
    }

    /// The hint about keys.
    fn footer(&self) -> String {
        let enter = match (self.takes_enter(), self.row().runs) {
            (true, true) => "Enter runs",
            (true, false) => "Enter inserts",
            (false, _) => "Enter sends",
        };
        let cut = match self.is_cut {
            true => format!(" \u{b7} only the first {MAX_PATHS} files"),
            false => String::new(),
        };
        format!(
            "{} of {} \u{b7} Tab inserts, {enter}, Esc closes{cut}",
            self.chosen + 1,
            self.found.candidates.len()
        )
    }
}

impl Live<'_> {
    /// Updates the completions after a key.
    pub(super) fn complete(&mut self) {
        // Agents, models and skills may have changed.
        if matches!(self.composer.text(), "/" | "@") {
            self.learn();
        }
        let was_open = self.popup.is_some();
        self.look_up();
        let refers = |popup: &Popup| popup.row().text.starts_with('@');
        let opens = !was_open && self.popup.as_ref().is_some_and(refers);
        let is_unread = self.tree.paths.is_empty() && self.is_reference();
        if opens || is_unread || self.composer.before_cursor().ends_with('@') {
            self.walk();
        }
    }

    /// Whether the word at the cursor is a reference.
    pub(super) fn is_reference(&self) -> bool {
        let before = self.composer.before_cursor();
        let word = before.rsplit(char::is_whitespace).next();
        word.is_some_and(|word| word.starts_with('@'))
    }

    /// Refreshes the completions.
    pub(super) fn look_up(&mut self) {
        if self.composer.is_recalled() || self.composer.is_searching() {
            self.popup = None;
            return;
        }
        let before = self.composer.before_cursor();
        let known = &self.learned.known;
        let found = known.complete(before, &self.cwd, &self.tree);
        self.popup = found.map(|found| Popup {
            is_cut: self.tree.is_cut && found.candidates.iter().any(Candidate::is_file),
            found,
            chosen: 0,
            is_moved: false,
        });
    }

    /// Refreshes the completions from newer names, keeping the selection.
    pub(super) fn look_up_again(&mut self) {
        let Some(before) = self.popup.take() else {
            return;
        };
        self.look_up();
        let Some(popup) = &mut self.popup else {
            return;
        };
        let mut candidates = popup.found.candidates.iter();
        if let Some(at) = candidates.position(|candidate| candidate.text == before.row().text) {
            popup.chosen = at;
            popup.is_moved = before.is_moved;
        }
    }

    /// Handles a key of the list.
    pub(super) fn popup_key(&mut self, key: KeyEvent) -> Popped {
        let Some(popup) = &mut self.popup else {
            return Popped::Not;
        };
        if !key.modifiers.is_empty() {
            return Popped::Not;
        }
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "other keys are for the composer"
        )]
        match key.code {
            KeyCode::Tab => self.insert(),
            KeyCode::Enter if popup.takes_enter() => {
                let runs = popup.row().runs;
                self.insert();
                if runs {
                    return Popped::Submit;
                }
            }
            KeyCode::Down => popup.moved(1),
            KeyCode::Up => popup.moved(popup.found.candidates.len() - 1),
            KeyCode::Esc => self.popup = None,
            _ => return Popped::Not,
        }
        Popped::Handled
    }

    /// Inserts the selected row.
    fn insert(&mut self) {
        if let Some(popup) = self.popup.take() {
            self.composer.complete(popup.found.from, &popup.row().text);
            self.complete();
        }
    }
}
