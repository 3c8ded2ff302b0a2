//! Limits on the text of servers in lists, logs, events and errors.
//!
//! Invariant: every text of a server is bounded by these limits or another named one,
//! since lists go to every client.

/// Longest sentence, in bytes.
const MAX_SAID: usize = 2000;

/// Longest name or version, in bytes.
const MAX_NAME: usize = 100;

const CUT: &str = " [cut]";

fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push_str(CUT);
        text.shrink_to_fit();
    }
    text
}

/// Bounds a sentence.
pub(crate) fn sentence(text: impl Into<String>) -> String {
    cut(text.into(), MAX_SAID)
}

/// Bounds a name.
pub(crate) fn name(text: impl Into<String>) -> String {
    cut(text.into(), MAX_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(sentence("fine"), "fine");
        let long = sentence("é".repeat(MAX_SAID));
        assert_eq!(long.len(), MAX_SAID + CUT.len());
        assert!(long.ends_with(CUT));
        assert_eq!(name("n".repeat(1 << 20)).len(), MAX_NAME + CUT.len());
    }
}
