//! Fuzzy matching of names and paths.
//!
//! Invariant: a pattern matches a text that has its characters in this order, ignoring
//! case; consecutive characters, starts of words and the last component of a path rank
//! it higher.

/// Score of a matched character.
const MATCH: i32 = 16;

/// Bonus if the preceding character matches as well.
const CONSECUTIVE: i32 = 12;

/// Bonus at the start of a word.
const WORD: i32 = 8;

/// Bonus in the last component of a path.
const BASENAME: i32 = 4;

/// Score of an impossible match; sums of it do not overflow.
const NONE: i32 = i32::MIN / 4;

/// The rank of a text for a pattern, higher is better; `None` without a match.
pub(crate) fn score(pattern: &str, text: &str) -> Option<i32> {
    if !is_subsequence(pattern, text) {
        return None;
    }
    let text: Vec<char> = text.chars().collect();
    let path = text.strip_suffix(&['/']).unwrap_or(&text);
    let base = path.iter().rposition(|c| *c == '/').map_or(0, |at| at + 1);
    // Best scores of the current pattern prefix that end at each character.
    let mut row = vec![0; text.len()];
    for (index, wanted) in pattern.chars().enumerate() {
        let mut next = vec![NONE; text.len()];
        let mut apart = if index == 0 { 0 } else { NONE };
        for (at, c) in text.iter().enumerate() {
            if lower(*c) == lower(wanted) {
                let beside = match (index, at) {
                    (0, _) | (_, 0) => NONE,
                    _ => row[at - 1] + CONSECUTIVE,
                };
                next[at] = apart.max(beside) + MATCH + bonus(&text, at, base);
            }
            if index > 0 {
                apart = apart.max(row[at]);
            }
        }
        row = next;
    }
    Some(row.into_iter().max().unwrap_or_default())
}

fn bonus(text: &[char], at: usize, base: usize) -> i32 {
    let begins = at == 0
        || !text[at - 1].is_alphanumeric()
        || text[at].is_uppercase() && text[at - 1].is_lowercase();
    let word = if begins { WORD } else { 0 };
    word + if at >= base { BASENAME } else { 0 }
}

fn is_subsequence(pattern: &str, text: &str) -> bool {
    let mut text = text.chars();
    let mut wanted = pattern.chars();
    wanted.all(|wanted| text.any(|c| lower(c) == lower(wanted)))
}

fn lower(c: char) -> char {
    match c.is_ascii() {
        true => c.to_ascii_lowercase(),
        false => c.to_lowercase().next().unwrap_or(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_match_scores_higher() {
        for (pattern, better, worse) in [
            ("main", "src/main.rs", "src/mXaXiXn.rs"),
            ("fb", "foo_bar.rs", "offbeat.rs"),
            ("fb", "fooBar.rs", "foobar.rs"),
            ("chat", "src/chat.rs", "chat/readme.md"),
            ("srcli", "src/live.rs", "struct/rules/clients/i.rs"),
            ("mod", "mode", "remodel"),
            ("MAIN", "main.rs", "domain.rs"),
            ("\u{c9}t", "\u{e9}t\u{e9}", "x\u{e9}xt"),
        ] {
            assert!(
                score(pattern, better) > score(pattern, worse),
                "{pattern}: {better} {:?}, {worse} {:?}",
                score(pattern, better),
                score(pattern, worse)
            );
        }
    }

    #[test]
    fn pattern_out_of_order_does_not_match() {
        for (pattern, text) in [("ba", "ab"), ("aa", "a"), ("x", ""), ("main", "mian")] {
            assert_eq!(score(pattern, text), None, "{pattern} in {text}");
        }
        assert_eq!(score("", "any"), Some(0));
        assert_eq!(score("", ""), Some(0));
    }
}
