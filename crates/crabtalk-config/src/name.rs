//! The rule for names of agents, providers and MCP servers (CONV-2).

/// Longest name, in bytes (CONV-2).
const MAX_NAME_BYTES: usize = 64;

/// Maximum characters of an invalid name in messages.
const MAX_SHOWN: usize = 80;

/// The description of the rule in messages.
pub(crate) const NAME_RULE: &str =
    "1 to 64 letters, digits, `_` or `-`, beginning with a letter or digit";

/// Whether `name` is `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`.
pub fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Checks a name; the error explains the rule.
pub fn check_name(name: &str) -> Result<(), String> {
    if is_name(name) {
        return Ok(());
    }
    let shown: String = name.chars().take(MAX_SHOWN).collect();
    Err(format!("{shown:?} is not a valid name: use {NAME_RULE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_conv_2() {
        for good in ["a", "A1", "a-b_c", "0", &"a".repeat(64)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "-a", "_a", "a b", "a/b", "../x", "é", &"a".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
