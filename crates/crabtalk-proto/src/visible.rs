//! Escapes characters that a terminal hides or interprets (GATE-4).
//!
//! Invariants: no character is dropped; the output has no character that moves
//! the cursor, changes the direction of a line or has no width, except newline and tab.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes a text on which a person decides: each character that a terminal does not show
/// as itself becomes its code, as in `<U+202E>`.
pub fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_hostile(c) || is_unseen(c))
}

/// Escapes a text for reading only: joiners and marks of scripts and emoji, and spaces of
/// all widths, stay. CRLF becomes a newline.
pub fn visible_prose(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") {
        let plain = text.replace("\r\n", "\n");
        return Cow::Owned(escape(&plain, is_hostile).into_owned());
    }
    escape(text, is_hostile)
}

fn escape(text: &str, hides: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&hides) else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len() + 64);
    shown.push_str(&text[..first]);
    for c in text[first..].chars() {
        if hides(c) {
            // Writing to a string does not fail.
            let _ = write!(shown, "<U+{:04X}>", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
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

/// Whether a character has no width, or looks like a space but is not one.
fn is_unseen(c: char) -> bool {
    match c {
        ' ' | '\n' | '\t' => false,
        // Soft hyphen; grapheme joiner; fillers; vowel separators.
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' => true,
        // Zero-width spaces and joiners; invisible operators; byte order mark.
        '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{feff}' => true,
        // Variation selectors.
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => true,
        c => c.is_whitespace(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_become_codes() {
        for (text, want) in [
            ("git status", "git status"),
            ("a\nb\tc", "a\nb\tc"),
            ("a\x1b[2Jb\x07\rc", "a<U+001B>[2Jb<U+0007><U+000D>c"),
            ("x\u{9b}31m\u{7f}", "x<U+009B>31m<U+007F>"),
            (
                "rm \u{202e}x\u{2066}y\u{200f}",
                "rm <U+202E>x<U+2066>y<U+200F>",
            ),
            ("a\u{200b}b\u{feff}c\u{ad}d", "a<U+200B>b<U+FEFF>c<U+00AD>d"),
            ("rm\u{a0}-rf\u{3000}x", "rm<U+00A0>-rf<U+3000>x"),
            ("a\u{2028}b\u{e0041}", "a<U+2028>b<U+E0041>"),
            (
                "h\u{e9}llo \u{1f980} \u{6f22}",
                "h\u{e9}llo \u{1f980} \u{6f22}",
            ),
        ] {
            assert_eq!(visible(text), want);
        }
    }

    #[test]
    fn invisible_ranges_are_shown_by_their_codes() {
        for (first, last) in [
            ('\u{fff9}', '\u{fffc}'),
            ('\u{13430}', '\u{1343f}'),
            ('\u{1bca0}', '\u{1bca3}'),
            ('\u{1d173}', '\u{1d17a}'),
            ('\u{e0000}', '\u{e007f}'),
        ] {
            for c in first..=last {
                let code = format!("<U+{:04X}>", u32::from(c));
                assert_eq!(visible(&c.to_string()), code);
                assert_eq!(visible_prose(&c.to_string()), code);
            }
        }
    }

    #[test]
    fn prose_keeps_joiners_and_spaces() {
        assert_eq!(visible_prose("a\r\nb\rc"), "a\nb<U+000D>c");
        let family = "\u{1f468}\u{200d}\u{1f469} \u{2764}\u{fe0f} a\u{a0}b";
        assert_eq!(visible_prose(family), family);
        assert_eq!(
            visible_prose("\u{202e}\x1b]0;t\x07"),
            "<U+202E><U+001B>]0;t<U+0007>"
        );
    }
}
