//! Topics: several conversations of one folder (CONV-11).
//!
//! The sender of a topic is `user/PROJECT/TOPIC`; outside a work tree, `user/-/TOPIC`.
//! Invariant: the topic [`MAIN`] is the conversation without a topic.

use crate::error::Error;

/// The name of the conversation without a topic.
pub(crate) const MAIN: &str = "main";

/// The project segment outside a work tree.
pub(crate) const NO_PROJECT: &str = "-";

/// Maximum characters of a topic's name, which is shown in lists and the status line.
const MAX_NAME: usize = 40;

/// Checks the name of a topic.
///
/// # Errors
/// The name has invalid characters or is too long.
pub(crate) fn check(name: &str) -> Result<(), Error> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins = name.chars().next().is_some_and(char::is_alphanumeric);
    if begins && name.chars().all(is_plain) && name.chars().count() <= MAX_NAME {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{name:?} is not a topic: use 1 to {MAX_NAME} letters, digits, `-`, `_` or `.`, beginning with a letter or digit"
    )))
}

/// Splits a sender into the sender of the folder's conversation and the topic.
pub(crate) fn split(sender: &str) -> (&str, &str) {
    let mut segments = sender.split('/');
    let parts = [(); 3].map(|()| segments.next().filter(|part| !part.is_empty()));
    let ([Some(person), Some(project), Some(topic)], None) = (parts, segments.next()) else {
        return (sender, MAIN);
    };
    let base = match project {
        NO_PROJECT => person,
        _ => &sender[..sender.len() - topic.len() - 1],
    };
    (base, topic)
}

/// The sender of a topic in the folder of `sender`.
///
/// # Errors
/// The name is invalid, or `sender` is not one of the user's.
pub(crate) fn sender_of(sender: &str, topic: &str) -> Result<String, Error> {
    check(topic)?;
    let (base, _) = split(sender);
    match (topic, base.split('/').count()) {
        (MAIN, _) => Ok(base.to_owned()),
        (_, 1) if !base.is_empty() && !base.contains(':') => {
            Ok(format!("{base}/{NO_PROJECT}/{topic}"))
        }
        (_, 2) if !base.contains(':') => Ok(format!("{base}/{topic}")),
        _ => Err(Error::Usage(format!(
            "the sender {base:?} has no topics; senders such as user and user/PROJECT have them"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_follow_the_naming_rule() {
        for good in ["a", "roof", "Bug-12", "v1.2", "häuser", &"x".repeat(40)] {
            check(good).unwrap();
        }
        for bad in ["", "-", ".a", "a b", "a/b", "a\n", "../x", &"x".repeat(41)] {
            check(bad).unwrap_err();
        }
    }

    #[test]
    fn topics_have_their_own_senders() {
        for (sender, topic, want) in [
            ("user", "roof", "user/-/roof"),
            ("user/house", "roof", "user/house/roof"),
            ("user/house/roof", "door", "user/house/door"),
            ("user/-/roof", "door", "user/-/door"),
            ("user/house/roof", "main", "user/house"),
            ("user/-/roof", "main", "user"),
        ] {
            assert_eq!(sender_of(sender, topic).unwrap(), want);
            let base = split(sender).0;
            assert_eq!(split(want), (base, topic));
        }
        for sender in ["", "tg:1", "tg:1/x", "a/b/c/d", "a//b"] {
            sender_of(sender, "roof").unwrap_err();
            assert_eq!(split(sender), (sender, MAIN));
        }
    }
}
