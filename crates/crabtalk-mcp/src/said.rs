//! What a server says of itself and of its trouble, short enough for every list that
//! shows it.
//!
//! Invariant: nothing that a server says goes into a list, the log, an event or an error
//! without having passed here or another named limit: one list is told to every
//! client, and one server's words must not cost all of it.

/// Bytes of a sentence: more than a screen shows of one.
const MAX_SAID: usize = 2000;

/// Bytes of a name or a version.
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

/// A sentence.
pub(crate) fn sentence(text: impl Into<String>) -> String {
    cut(text.into(), MAX_SAID)
}

/// A name.
pub(crate) fn name(text: impl Into<String>) -> String {
    cut(text.into(), MAX_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_what_does_not_is_cut_between_letters() {
        assert_eq!(sentence("fine"), "fine");
        let long = sentence("é".repeat(MAX_SAID));
        assert_eq!(long.len(), MAX_SAID + CUT.len());
        assert!(long.ends_with(CUT));
        assert_eq!(name("n".repeat(1 << 20)).len(), MAX_NAME + CUT.len());
    }
}
