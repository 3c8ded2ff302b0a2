//! A list with a search: conversations and archives, or earlier messages.
//!
//! Invariant: an open picker takes all keys except those that leave the chat.

use super::choice::{Choice, Purpose};
use super::transcript::MARGIN;
use crabtalk_render::{Line, clean, shorten, theme};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;

/// Maximum number of visible entries.
const MOST: usize = 10;

/// Rows for the search and the details.
const OWN_ROWS: usize = 5;

/// Result of a key.
#[derive(Debug, PartialEq)]
pub(super) enum Picked {
    /// The picker stays open.
    Not,
    /// The picker closed without a choice.
    Left,
    This(Purpose, Box<Choice>),
}

/// A list with a search field.
#[derive(Debug, Default)]
pub(super) struct Picker {
    /// `None` until the daemon answered.
    choices: Option<Vec<Choice>>,
    pub(super) purpose: Purpose,
    search: String,
    chosen: usize,
}

impl Picker {
    pub(super) fn new(purpose: Purpose, search: &str) -> Self {
        Self {
            purpose,
            search: search.to_owned(),
            ..Self::default()
        }
    }

    /// Fills the list.
    pub(super) fn fill(&mut self, choices: Vec<Choice>) {
        self.choices = Some(choices);
    }

    fn fitting(&self) -> Vec<&Choice> {
        let choices = self.choices.iter().flatten();
        choices.filter(|choice| choice.fits(&self.search)).collect()
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Picked {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let count = self.fitting().len();
        match (key.code, control) {
            (KeyCode::Esc, _) | (KeyCode::Char('c' | 'g'), true) => return Picked::Left,
            (KeyCode::Enter, _) => {
                let chosen = self
                    .fitting()
                    .get(self.chosen)
                    .map(|choice| (*choice).clone());
                return chosen.map_or(Picked::Not, |choice| {
                    Picked::This(self.purpose, Box::new(choice))
                });
            }
            (KeyCode::Down | KeyCode::Tab, _) | (KeyCode::Char('n'), true) if count > 0 => {
                self.chosen = (self.chosen + 1) % count;
            }
            (KeyCode::Up | KeyCode::BackTab, _) | (KeyCode::Char('p'), true) if count > 0 => {
                self.chosen = (self.chosen + count - 1) % count;
            }
            (KeyCode::PageDown, _) => {
                self.chosen = (self.chosen + MOST).min(count.saturating_sub(1));
            }
            (KeyCode::PageUp, _) => self.chosen = self.chosen.saturating_sub(MOST),
            (KeyCode::Char('u'), true) => self.narrow(String::clear),
            (KeyCode::Char(c), false) => self.narrow(|search| search.push(c)),
            (KeyCode::Backspace, _) => self.narrow(|search| {
                search.pop();
            }),
            _ => {}
        }
        Picked::Not
    }

    /// Handles a paste.
    pub(super) fn paste(&mut self, text: &str) {
        let line = text.lines().next().unwrap_or_default();
        self.narrow(|search| search.push_str(line));
    }

    fn narrow(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.search);
        self.chosen = 0;
    }

    /// The rows and the cursor.
    pub(super) fn rows(
        &self,
        width: usize,
        most: usize,
        now: Timestamp,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        let rule = "\u{2500}".repeat(width.saturating_sub(1));
        let mut rows = vec![Line::styled(rule, theme::DIM)];
        let search = clean(&self.search);
        let prompt =
            Line::styled(self.purpose.prompt(), theme::HEADING).with(&search, theme::PLAIN);
        let cursor = (1, prompt.width().min(width.saturating_sub(1)));
        let choices = self.fitting();
        let hint = match (&self.choices, choices.len()) {
            (None, _) => "  looking",
            (Some(_), 0) => "  nothing fits",
            (Some(_), _) if search.is_empty() => "  type to search; Esc leaves",
            (Some(_), _) => "",
        };
        rows.push(shorten(
            &prompt.with(hint, theme::DIM),
            width.saturating_sub(1),
        ));
        let room = most.saturating_sub(OWN_ROWS).clamp(1, MOST);
        let first = (self.chosen + 1).saturating_sub(room);
        for (index, choice) in choices.iter().enumerate().skip(first).take(room) {
            let chosen = index == self.chosen;
            rows.push(choice.row(chosen, width.saturating_sub(1), now));
        }
        let more = choices.len().saturating_sub(first + room);
        if more > 0 {
            let said = format!("{MARGIN}and {more} more");
            rows.push(Line::styled(said, theme::DIM));
        }
        if let Some(choice) = choices.get(self.chosen) {
            rows.extend(choice.details(width.saturating_sub(1)));
        }
        (rows, Some(cursor))
    }
}

#[cfg(test)]
mod tests {
    use super::super::choice::Said;
    use super::*;
    use crate::switch::Place;

    fn place(title: &str) -> Choice {
        Choice::Place(Place {
            agent: "crab".into(),
            sender: "user".into(),
            title: title.into(),
            first: format!("first of {title}"),
            last: format!("last of {title}"),
            folder: "/work".into(),
            ..Place::default()
        })
    }

    fn typed(picker: &mut Picker, code: KeyCode) -> Picked {
        picker.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn typing_filters_the_list() {
        let mut picker = Picker::default();
        assert_eq!(
            typed(&mut picker, KeyCode::Enter),
            Picked::Not,
            "nothing yet"
        );
        picker.fill(vec![place("roof"), place("garden"), place("rooftop")]);
        for c in "roo".chars() {
            typed(&mut picker, KeyCode::Char(c));
        }
        typed(&mut picker, KeyCode::Down);
        assert_eq!(
            typed(&mut picker, KeyCode::Enter),
            Picked::This(Purpose::Switch, Box::new(place("rooftop")))
        );
        typed(&mut picker, KeyCode::Char('x'));
        assert_eq!(typed(&mut picker, KeyCode::Enter), Picked::Not);
        assert_eq!(typed(&mut picker, KeyCode::Esc), Picked::Left);
    }

    #[test]
    fn messages_are_found_by_their_words() {
        let said = |content: &str| {
            Choice::Said(Said {
                index: 1,
                content: content.into(),
                at: String::new(),
            })
        };
        let mut picker = Picker::new(Purpose::Rewind, "");
        picker.fill(vec![said("mend\nthe roof"), said("paint the door")]);
        picker.paste("door");
        let (rows, _) = picker.rows(60, 20, Timestamp::UNIX_EPOCH);
        let rows: Vec<String> = rows.iter().map(Line::text).collect();
        assert!(rows[1].starts_with("rewind to: door"), "{rows:?}");
        assert_eq!(picker.fitting(), [&said("paint the door")]);
    }

    #[test]
    fn rows_fit_the_terminal_and_show_the_selection() {
        let mut picker = Picker::default();
        picker.fill(
            (0..50)
                .map(|n| place(&format!("place {n} \u{1f980}")))
                .collect(),
        );
        for _ in 0..30 {
            typed(&mut picker, KeyCode::Down);
        }
        for (width, most) in [(40, 8), (80, 22), (200, 48)] {
            let (rows, _) = picker.rows(width, most, Timestamp::UNIX_EPOCH);
            assert!(rows.len() <= most, "{} of {most}", rows.len());
            assert!(rows.iter().all(|row| row.width() < width));
            let text: Vec<String> = rows.iter().map(Line::text).collect();
            assert!(
                text.iter().any(|row| row.starts_with("\u{203a} crab")),
                "{text:?}"
            );
        }
    }
}
