//! Names of skills.

use crate::skills::finding::Trouble;

/// Longest name, in bytes (CONV-2) and in characters (agentskills.io).
const MAX_NAME: usize = 64;

/// Whether a name is valid: `[A-Za-z0-9][A-Za-z0-9_-]{0,63}` (CONV-2).
pub fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    first
        && name.len() <= MAX_NAME
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// The violation of the format's rule, which is stricter than [`is_name`].
pub(crate) fn strict_trouble(name: &str) -> Option<Trouble> {
    let right = format!("for example `{}`", suggest(name));
    let count = name.chars().count();
    let what = if name.is_empty() {
        "the name is empty".to_owned()
    } else if count > MAX_NAME {
        format!("the name has {count} characters, the limit is {MAX_NAME}")
    } else if name.bytes().any(|b| b.is_ascii_uppercase()) {
        format!("the name {name:?} has upper-case letters")
    } else if let Some(bad) = name
        .chars()
        .find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-'))
    {
        format!("the name {name:?} has {bad:?}, but only a-z, 0-9 and hyphens are allowed")
    } else if name.starts_with('-') || name.ends_with('-') {
        format!("the name {name:?} begins or ends with a hyphen")
    } else if name.contains("--") {
        format!("the name {name:?} has two hyphens in a row")
    } else {
        return None;
    };
    Some(Trouble::new(what, right))
}

/// A valid name that is similar to this one.
pub(crate) fn suggest(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if out.len() == MAX_NAME {
            break;
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { "my-skill" } else { out }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_conv_2() {
        let (long, longer) = ("a".repeat(64), "a".repeat(65));
        for good in ["a", "A1", "a-b_c", "0", &long] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "-a", "_a", "a b", "a/b", "../x", "a\\b", "é", &longer] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn strict_rule_suggests_a_valid_name() {
        let long = "a".repeat(65);
        for (name, what, right) in [
            ("pdf-processing", "", ""),
            ("a1", "", ""),
            ("", "is empty", "`my-skill`"),
            ("PDF-Tools", "upper-case", "`pdf-tools`"),
            ("-pdf", "begins or ends", "`pdf`"),
            ("pdf-", "begins or ends", "`pdf`"),
            ("pdf--x", "two hyphens", "`pdf-x`"),
            ("pdf_x", "has '_'", "`pdf-x`"),
            ("naïve", "has 'ï'", "`na-ve`"),
            ("数据", "has '数'", "`my-skill`"),
            (&long, "65 characters", "`aaa"),
        ] {
            match strict_trouble(name) {
                None => assert!(what.is_empty(), "{name} was found right"),
                Some(t) => {
                    assert!(!what.is_empty() && t.what.contains(what), "{name}: {t:?}");
                    assert!(t.right.contains(right), "{name}: {t:?}");
                }
            }
        }
    }
}
