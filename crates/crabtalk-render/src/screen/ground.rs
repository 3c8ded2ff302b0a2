//! Detection of light and dark terminals by OSC 11.
//!
//! ```text
//! ESC ] 1 1 ; ? ESC \                    request
//! ESC ] 1 1 ; rgb:RRRR/GGGG/BBBB ESC \   answer; BEL may end it
//! ```
//!
//! Invariants: the program does not wait for the answer; its bytes are never handled as keys; keys
//! typed before the answer keep their order.

use crate::theme::Ground;
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

/// Request for the background colour.
pub(crate) const ASK: &str = "\x1b]11;?\x1b\\";

/// Prefix of an answer after `ESC ]`.
const BEGIN: &str = "11;";

/// Maximum length of an answer.
const MAX_ANSWER: usize = 64;

/// Filters the answer out of the input.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    /// A partial answer and its events.
    held: Option<(String, Vec<Event>)>,
}

impl Listener {
    /// Returns other events, and the background once known.
    pub(crate) fn hear(&mut self, events: Vec<Event>) -> (Vec<Event>, Option<Ground>) {
        let (mut passed, mut ground) = (Vec::new(), None);
        for event in events {
            let Some((mut answer, mut held)) = self.held.take() else {
                match is_key(&event, ']', true) {
                    true => self.held = Some((String::new(), vec![event])),
                    false => passed.push(event),
                }
                continue;
            };
            let ends = is_key(&event, '\\', true) || is_key(&event, 'g', false);
            if ends && answer.starts_with(BEGIN) {
                ground = of_answer(&answer[BEGIN.len()..]).or(ground);
                continue;
            }
            let next = character(&event);
            held.push(event);
            answer.extend(next);
            let may = BEGIN.starts_with(&*answer) || answer.starts_with(BEGIN);
            match next.is_some() && may && answer.len() <= MAX_ANSWER {
                true => self.held = Some((answer, held)),
                false => passed.append(&mut held),
            }
        }
        (passed, ground)
    }
}

/// Whether an event is a key with Alt or Control.
fn is_key(event: &Event, c: char, alt: bool) -> bool {
    let Event::Key(key) = event else { return false };
    let with = match alt {
        true => KeyModifiers::ALT,
        false => KeyModifiers::CONTROL,
    };
    key.code == KeyCode::Char(c) && key.modifiers == with && key.kind == KeyEventKind::Press
}

fn character(event: &Event) -> Option<char> {
    let Event::Key(key) = event else { return None };
    let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
    let KeyCode::Char(c) = key.code else {
        return None;
    };
    plain.then_some(c)
}

/// The ground of `rgb:RRRR/GGGG/BBBB`, each of one to four digits.
fn of_answer(color: &str) -> Option<Ground> {
    let color = color.strip_prefix("rgba:").or(color.strip_prefix("rgb:"))?;
    let mut parts = color.split('/').map(|part| {
        let most = 16_u32.checked_pow(part.len().try_into().ok()?)? - 1;
        let value = u32::from_str_radix(part, 16).ok()?;
        (part.len() <= 4 && most > 0).then(|| f64::from(value) / f64::from(most))
    });
    let mut part = || parts.next().flatten();
    let (red, green, blue) = (part()?, part()?, part()?);
    // Perceived brightness.
    Some(match 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 {
        true => Ground::Light,
        false => Ground::Dark,
    })
}

/// The background of `COLORFGBG` (`text;background`).
pub(crate) fn of_variable(value: &str) -> Option<Ground> {
    let ground = value.rsplit(';').next()?.parse::<u8>().ok()?;
    match ground {
        0..=6 | 8 => Some(Ground::Dark),
        7 | 9..=15 => Some(Ground::Light),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyEvent;

    /// Events of a byte sequence: `\x1b` makes the next key one with Alt.
    fn events(bytes: &str) -> Vec<Event> {
        let mut all = Vec::new();
        let mut alt = false;
        for c in bytes.chars() {
            let (c, modifiers) = match c {
                '\x1b' => {
                    alt = true;
                    continue;
                }
                '\x07' => ('g', KeyModifiers::CONTROL),
                c if alt => (c, KeyModifiers::ALT),
                c => (c, KeyModifiers::NONE),
            };
            alt = false;
            all.push(Event::Key(KeyEvent::new(KeyCode::Char(c), modifiers)));
        }
        all
    }

    fn check(bytes: &str, passed: &str, ground: Option<Ground>) {
        let want = (events(passed), ground);
        assert_eq!(Listener::default().hear(events(bytes)), want, "{bytes:?}");
        // The result does not depend on chunks.
        let mut listener = Listener::default();
        let (mut all, mut found) = (Vec::new(), None);
        for event in events(bytes) {
            let (some, ground) = listener.hear(vec![event]);
            all.extend(some);
            found = found.or(ground);
        }
        assert_eq!((all, found), want, "{bytes:?}");
    }

    #[test]
    fn answer_is_filtered_from_input() {
        let light = Some(Ground::Light);
        check("a\x1b]11;rgb:ffff/ffff/ffff\x1b\\b", "ab", light);
        check("\x1b]11;rgb:fa/f4/d3\x07", "", light);
        check("\x1b]11;rgb:0000/2b2b/3636\x1b\\", "", Some(Ground::Dark));
        check("\x1b]11;rgba:f/f/f/8\x07x", "x", light);
        check("\x1b]11;nonsense\x07x", "x", None);
    }

    #[test]
    fn other_input_keeps_its_order() {
        check("abc", "abc", None);
        check("\x1b]x", "\x1b]x", None);
        check("\x1b]11x", "\x1b]11x", None);
        check("\x1b]\x1b\\", "\x1b]\x1b\\", None);
        let long = format!("\x1b]11;{}", "f".repeat(MAX_ANSWER));
        check(&long, &long, None);
    }

    #[test]
    fn colorfgbg_gives_the_background() {
        for (value, want) in [
            ("15;0", Some(Ground::Dark)),
            ("0;default;15", Some(Ground::Light)),
            ("0;7", Some(Ground::Light)),
            ("7;8", Some(Ground::Dark)),
            ("0;default", None),
            ("", None),
        ] {
            assert_eq!(of_variable(value), want, "{value}");
        }
    }
}
