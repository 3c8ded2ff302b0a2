//! Text on its way into a terminal.

/// The text less its control characters: all but newline and tab go, with them
/// characters that could end a bracketed paste early or move the cursor.
pub(crate) fn plain(text: &str) -> String {
    let keep = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(keep).collect()
}

/// What two texts have in common that differ in blanks alone: agents wrap,
/// indent and trim what is typed to them.
pub(crate) fn squeezed(text: &str) -> String {
    let plain = plain(text);
    let mut words = plain.split_whitespace();
    let mut all = String::with_capacity(plain.len());
    if let Some(first) = words.next() {
        all.push_str(first);
    }
    for word in words {
        all.push(' ');
        all.push_str(word);
    }
    all
}

/// Quotes a word for a command of tmux.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// At most so many bytes of a text, cut between characters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let end = (0..=bytes).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_embedded_end_of_paste_is_not_one() {
        assert_eq!(
            plain("a\u{1b}[201~b\r\nc\td\u{7f}\u{9b}e"),
            "a[201~b\nc\tde"
        );
    }

    #[test]
    fn blanks_do_not_tell_texts_apart() {
        assert_eq!(squeezed("  a\n  b \t c\n"), squeezed("a b c"));
        assert_eq!(squeezed(""), "");
    }

    #[test]
    fn quotes_and_cuts_hold() {
        assert_eq!(quoted("it's;"), r"'it'\''s;'");
        assert_eq!(cut("aé", 2), "a");
    }
}
