//! Makes foreign text safe to show on a terminal.
//!
//! Invariants: only [`output`] drops characters; the result
//! has no control characters except newline and tab, no direction marks, and
//! none of the heavy lines with which the terminal draws frames.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replacement of a tab if columns are not counted.
pub(crate) const PLAIN_TAB: &str = "    ";

/// Escapes characters that control a terminal or reorder a line, as in
/// `<U+202E>`, and replaces heavy box lines by light ones.
pub fn clean(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(|c| is_hostile(c) || light(c).is_some()) else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len() + 64);
    shown.push_str(&text[..first]);
    let mut rest = text[first..].chars().peekable();
    while let Some(c) = rest.next() {
        if c == '\r' && rest.peek() == Some(&'\n') {
            continue;
        }
        if let Some(light) = light(c) {
            shown.push(light);
        } else if is_hostile(c) {
            // Writing to a string does not fail.
            let _ = write!(shown, "<U+{:04X}>", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Program output as a terminal would finally show it: without colours, and only the
/// last state of an overwritten line.
pub fn output(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut line = 0;
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.next() {
                // Skip to the byte that ends a control sequence.
                Some('[') => while rest.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                // Skip a title or similar, up to a bell or another escape.
                Some(']') => while rest.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {},
                Some(_) | None => {}
            },
            '\r' if !matches!(rest.peek(), Some('\n') | None) => plain.truncate(line),
            '\r' => {}
            '\u{8}' => {
                if plain.len() > line {
                    plain.pop();
                }
            }
            c => {
                plain.push(c);
                if c == '\n' {
                    line = plain.len();
                }
            }
        }
    }
    clean(&plain).into_owned()
}

/// Escapes a text on which a person decides: in addition to terminal controls, box-drawing characters
/// become codes.
pub fn exact(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if light(c).is_some() {
            let _ = write!(shown, "<U+{:04X}>", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    clean(&shown).into_owned()
}

/// Whether a character controls the terminal or changes the reading order of a line.
fn is_hostile(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Direction marks and embeddings; line and paragraph separators.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        // Isolates and deprecated shaping controls.
        '\u{2066}'..='\u{206f}' => true,
        // Interlinear annotations, object replacement, and tags, which hide text.
        '\u{fff9}'..='\u{fffc}' | '\u{e0000}'..='\u{e007f}' => true,
        // Format controls of hieroglyphs, shorthand and musical notation.
        '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        c => c.is_control(),
    }
}

/// The light replacement of a box-drawing character.
fn light(c: char) -> Option<char> {
    Some(match c {
        '\u{2501}' | '\u{2505}' | '\u{2509}' | '\u{254d}' | '\u{2578}' | '\u{257a}' => '\u{2500}',
        '\u{2503}' | '\u{2507}' | '\u{250b}' | '\u{254f}' | '\u{2579}' | '\u{257b}' => '\u{2502}',
        '\u{250d}'..='\u{250f}' => '\u{250c}',
        '\u{2511}'..='\u{2513}' => '\u{2510}',
        '\u{2515}'..='\u{2517}' => '\u{2514}',
        '\u{2519}'..='\u{251b}' => '\u{2518}',
        '\u{251d}'..='\u{2523}' => '\u{251c}',
        '\u{2525}'..='\u{252b}' => '\u{2524}',
        '\u{252d}'..='\u{2533}' => '\u{252c}',
        '\u{2535}'..='\u{253b}' => '\u{2534}',
        '\u{253d}'..='\u{254b}' => '\u{253c}',
        // Block elements that look like the edge of a frame.
        '\u{2588}'..='\u{2590}' => '\u{2502}',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_by_code() {
        assert_eq!(clean("a\x1b[2Jb\r\nc\td"), "a<U+001B>[2Jb\nc\td");
        assert_eq!(clean("rm \u{202e}x"), "rm <U+202E>x");
        assert_eq!(clean("漢字 👩‍🚀"), "漢字 👩‍🚀");
    }

    #[test]
    fn hidden_characters_equal_those_of_the_protocol() {
        let shown_by_its_code = |c: &char| clean(&c.to_string()).starts_with("<U+");
        let of_protocol = |c: &char| {
            let text = c.to_string();
            crabtalk_proto::visible_prose(&text) != text
        };
        let differs = (char::MIN..=char::MAX)
            .filter(|c| shown_by_its_code(c) != of_protocol(c))
            .collect::<String>();
        assert_eq!(differs, "");
    }

    #[test]
    fn frame_characters_are_replaced() {
        assert_eq!(clean("┏━┓┃┗┛▌█"), "┌─┐│└┘││");
        assert_eq!(clean("┌─┐"), "┌─┐");
        assert_eq!(exact("echo ┃\x1b"), "echo <U+2503><U+001B>");
    }

    #[test]
    fn output_keeps_the_last_state_of_lines() {
        let text = "\x1b[1;32mok\x1b[0m\r\n 10%\r 20%\rdone\r\n\x1b]0;title\x07end";
        assert_eq!(output(text), "ok\ndone\nend");
        assert_eq!(output("ab\u{8}c"), "ac");
    }
}
