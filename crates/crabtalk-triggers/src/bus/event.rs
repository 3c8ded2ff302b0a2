//! What is published.

/// Longest source; it becomes a sender (`event:SOURCE`).
pub const MAX_SOURCE_BYTES: usize = 256;

/// Longest payload: it is what an agent reads, and a model can take no more of.
pub const MAX_PAYLOAD_BYTES: usize = 256 * 1024;

/// A text that is no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSource {
    /// Nothing was written where the source belongs.
    #[error("a source is needed, for instance `build:failed`")]
    Empty,
    /// A source only names what happened; the rest belongs into the payload. It holds the bytes.
    #[error("a source has {MAX_SOURCE_BYTES} bytes at most, this one has {0}")]
    TooLong(usize),
    /// A character that would break a table or a log: write `-` or `_` instead.
    #[error("a source holds no blanks and no control characters")]
    Odd,
    /// A published event holds a sign that only subscriptions may.
    #[error("`*` and `?` stand for others in subscriptions; an event names its source whole")]
    Pattern,
}

/// A payload that no agent could read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the payload has {0} bytes, the limit is {MAX_PAYLOAD_BYTES}")]
pub struct TooLong(pub usize);

/// Whether the daemon alone publishes events of this source: those that tell the
/// end of an agent's run.
#[must_use]
pub fn is_of_daemon(source: &str) -> bool {
    source.starts_with("agent:")
}

/// Whether a payload is short enough, whether it fires anything or not.
///
/// # Errors
/// Its length, where that is beyond the limit.
pub fn check_payload(payload: &str) -> Result<(), TooLong> {
    match payload.len() > MAX_PAYLOAD_BYTES {
        true => Err(TooLong(payload.len())),
        false => Ok(()),
    }
}

/// Whether a text can be the source of an event, or with `pattern` what
/// subscriptions name.
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
    fn a_source_is_one_word() {
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
