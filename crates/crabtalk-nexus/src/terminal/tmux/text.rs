//! Text to be typed into a terminal.

/// Removes control characters except newline and tab, which
/// could end a bracketed paste early or move the cursor.
pub(crate) fn plain(text: &str) -> String {
    let keep = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(keep).collect()
}

/// Collapses white space for comparisons, since agents wrap, indent and trim typed
/// text.
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

/// Quotes a word for a tmux command.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The longest prefix of at most this many bytes, cut between characters.
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
