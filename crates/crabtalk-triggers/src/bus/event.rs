//! Checks published events.

/// Longest source; it becomes a sender (`event:SOURCE`).
pub const MAX_SOURCE_BYTES: usize = 256;

/// Longest payload, which becomes part of a message to an agent.
pub const MAX_PAYLOAD_BYTES: usize = 256 * 1024;

/// An invalid source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSource {
    /// The source is empty.
    #[error("the source is empty; give one, such as `build:failed`")]
    Empty,
    /// The source is too long; holds its bytes.
    #[error("the source has {0} bytes, the limit is {MAX_SOURCE_BYTES}")]
    TooLong(usize),
    /// The source has a character that would break a table or a log.
    #[error("a source cannot contain spaces or control characters")]
    Odd,
    /// The source has a wildcard, which only subscriptions may have.
    #[error("`*` and `?` are wildcards of subscriptions; give the whole source of an event")]
    Pattern,
}

/// The payload exceeds the limit; holds its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the payload has {0} bytes, the limit is {MAX_PAYLOAD_BYTES}")]
pub struct TooLong(pub usize);

/// Whether only the daemon publishes events of this source: those for the end of an
/// agent's run.
#[must_use]
pub fn is_of_daemon(source: &str) -> bool {
    source.starts_with("agent:")
}

/// Checks the length of a payload.
///
/// # Errors
///
/// The payload exceeds the limit.
pub fn check_payload(payload: &str) -> Result<(), TooLong> {
    match payload.len() > MAX_PAYLOAD_BYTES {
        true => Err(TooLong(payload.len())),
        false => Ok(()),
    }
}

/// Checks the source of an event or, with `pattern`, of a subscription.
pub fn check_source(source: &str, pattern: bool) -> Result<(), InvalidSource> {
    if source.is_empty() {
        return Err(InvalidSource::Empty);
    }
    if source.len() > MAX_SOURCE_BYTES {
        return Err(InvalidSource::TooLong(source.len()));
    }
    if source.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(InvalidSource::Odd);
    }
    if !pattern && source.contains(['*', '?']) {
        return Err(InvalidSource::Pattern);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_one_word() {
        for source in ["build:failed", "agent:crab:done", "tg/1", "é"] {
            assert_eq!(check_source(source, false), Ok(()), "{source}");
        }
        assert_eq!(check_source("", false), Err(InvalidSource::Empty));
        assert_eq!(check_source("a b", true), Err(InvalidSource::Odd));
        assert_eq!(check_source("a\n", true), Err(InvalidSource::Odd));
        assert_eq!(check_source("a:*", false), Err(InvalidSource::Pattern));
        assert_eq!(check_source("a:*", true), Ok(()));
        let long = "a".repeat(MAX_SOURCE_BYTES + 1);
        assert!(matches!(
            check_source(&long, true),
            Err(InvalidSource::TooLong(_))
        ));
    }
}
