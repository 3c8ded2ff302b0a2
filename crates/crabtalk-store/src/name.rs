//! File names (STORE-2): `{agent}_{sender_slug}_{seq}[_{title_slug}].jsonl`.
//!
//! A name only makes finding a log cheap; line 1 names its conversation.

use crabtalk_domain::ConversationKey;

/// The extension of logs.
pub(crate) const SUFFIX: &str = ".jsonl";

/// Longest slug of a sender: with agent (64), title and numbers, a name stays well below
/// the 255 bytes of common file systems.
const MAX_SENDER_SLUG: usize = 48;

/// Longest slug of a title, for the same reason.
const MAX_TITLE_SLUG: usize = 48;

/// Longest file name that all common file systems support.
const MAX_NAME: usize = 255;

/// Folds a name to lower-case letters and digits, with `-` for each run of other
/// characters. Names by other programs or older rules are compared in this form.
pub(crate) fn fold(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// The part of a file name for a sender. Several senders may have the same one.
pub(crate) fn slug(sender: &str) -> String {
    let folded = fold(sender);
    if folded.is_empty() {
        return format!("x-{}", digest(sender));
    }
    if folded.len() <= MAX_SENDER_SLUG {
        return folded;
    }
    format!(
        "{}-{}",
        folded[..MAX_SENDER_SLUG].trim_end_matches('-'),
        digest(sender)
    )
}

/// The slug of a sender whose plain slug another sender uses.
pub(crate) fn distinct_slug(sender: &str) -> String {
    format!("{}-{}", slug(sender), digest(sender))
}

/// The part of a file name for a title; empty if no character of it is usable.
fn title_slug(title: &str) -> String {
    let folded = fold(title);
    folded[..folded.len().min(MAX_TITLE_SLUG)]
        .trim_end_matches('-')
        .to_owned()
}

/// Eight digits of FNV-1a: stable over versions, unlike the hashes of std.
fn digest(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:08x}", (hash ^ (hash >> 32)) as u32)
}

/// The common prefix of all folded names of a pair.
pub(crate) fn folded_prefix(key: &ConversationKey) -> String {
    fold(&format!("{}_{}", key.agent, slug(key.sender.as_str())))
}

pub(crate) fn sort_key(name: &str) -> String {
    fold(name)
}

/// The parts of a name that fits a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// Agent, sender and seq as written.
    pub(crate) base: &'a str,
    /// The number among the pair's files; the highest is the conversation.
    pub(crate) seq: u32,
}

/// Splits a name if it could belong to the pair.
pub(crate) fn parts<'a>(name: &'a str, key: &ConversationKey) -> Option<Parts<'a>> {
    let stem = stem(name)?;
    let agent = key.agent.as_str();
    let rest = stem
        .get(..agent.len())
        .filter(|start| start.eq_ignore_ascii_case(agent))
        .and_then(|_| stem[agent.len()..].strip_prefix('_'))?;
    let (plain, distinct) = (
        slug(key.sender.as_str()),
        distinct_slug(key.sender.as_str()),
    );
    rest.match_indices('_').find_map(|(at, _)| {
        let number = rest[at + 1..].split('_').next().unwrap_or_default();
        let seq = digits(number)?;
        let folded = fold(&rest[..at]);
        let base = &stem[..agent.len() + 1 + at + 1 + number.len()];
        (folded == plain || folded == distinct).then_some(Parts { base, seq })
    })
}

/// Whether a name follows the rule for some pair. Other files are read in every search
/// for a pair that finds no name by the rule.
pub(crate) fn follows_rule(name: &str) -> bool {
    stem(name).is_some_and(|stem| stem.split('_').skip(2).any(|part| digits(part).is_some()))
}

/// Whether a list could have returned this name (STORE-2).
pub(crate) fn is_bare(name: &str) -> bool {
    name.len() <= MAX_NAME
        && stem(name).is_some_and(|stem| !stem.is_empty())
        && !name.starts_with('.')
        && !name.contains(['/', '\\', '\0'])
}

/// The name of a new log.
pub(crate) fn compose(agent: &str, slug: &str, seq: u32) -> String {
    format!("{agent}_{slug}_{seq}{SUFFIX}")
}

/// A log's name with a title (CONV-7).
pub(crate) fn with_title(base: &str, title: &str) -> String {
    match title_slug(title).as_str() {
        "" => format!("{base}{SUFFIX}"),
        slug => format!("{base}_{slug}{SUFFIX}"),
    }
}

fn stem(name: &str) -> Option<&str> {
    let at = name.len().checked_sub(SUFFIX.len())?;
    name.get(at..)?
        .eq_ignore_ascii_case(SUFFIX)
        .then(|| &name[..at])
}

fn digits(text: &str) -> Option<u32> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(agent: &str, sender: &str) -> ConversationKey {
        ConversationKey::new(agent, sender).expect("valid")
    }

    fn seq(name: &str, agent: &str, sender: &str) -> Option<u32> {
        parts(name, &key(agent, sender)).map(|p| p.seq)
    }

    #[test]
    fn slugs_are_safe_short_and_stable() {
        assert_eq!(slug("user"), "user");
        assert_eq!(slug("tg:12345"), "tg-12345");
        assert_eq!(slug("../x"), "x");
        assert_eq!(slug("🦀"), "x-8a14ddde");
        assert_eq!(slug(&"y".repeat(1024)).len(), MAX_SENDER_SLUG + 9);
        assert_ne!(slug("🦀"), slug("🦞"));
    }

    #[test]
    fn names_fit_the_pairs_they_could_belong_to() {
        assert_eq!(seq("crab_user_3.jsonl", "crab", "user"), Some(3));
        assert_eq!(seq("Crab_User_3_my-title.JSONL", "crab", "user"), Some(3));
        assert_eq!(seq("crab_tg-1_1_2024.jsonl", "crab", "tg:1"), Some(1));
        assert_eq!(
            seq("crab_tg_1_2.jsonl", "crab", "tg:1"),
            Some(2),
            "an older slug"
        );
        assert_eq!(seq("a_b_c_1.jsonl", "a_b", "c"), Some(1));
        assert_eq!(seq("a_b_c_1.jsonl", "a", "b_c"), Some(1));
        assert_eq!(seq("crab_user-1_1.jsonl", "crab", "user"), None);
        assert_eq!(seq("crab_user.jsonl", "crab", "user"), None);
        let distinct = compose("crab", &distinct_slug("tg:1"), 4);
        assert_eq!(seq(&distinct, "crab", "tg:1"), Some(4));
        assert_eq!(seq(&distinct, "crab", "tg-1"), None);
    }

    #[test]
    fn folded_names_begin_with_the_folded_prefix() {
        for (agent, sender) in [("a_", "../x"), ("a-b", "🦀"), ("A", "tg:1")] {
            let key = key(agent, sender);
            let name = compose(agent, &slug(sender), 1);
            assert!(sort_key(&name).starts_with(&folded_prefix(&key)), "{name}");
        }
    }

    #[test]
    fn fold_joins_words_with_one_dash() {
        for (text, folded) in [("", ""), ("--", ""), ("_A_b", "a-b"), ("_A🦀..b-", "a-b")] {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn only_bare_names_pass() {
        for good in ["crab_user_1.jsonl", "my notes.jsonl"] {
            assert!(is_bare(good), "{good}");
        }
        for bad in [
            "",
            ".jsonl",
            "..",
            "a/b.jsonl",
            "../a.jsonl",
            "a\0.jsonl",
            "a.json",
            "x",
        ] {
            assert!(!is_bare(bad), "{bad}");
        }
        assert!(!is_bare(&format!("{}.jsonl", "a".repeat(300))));
    }

    #[test]
    fn a_title_replaces_the_last_one() {
        let key = key("crab", "user");
        let first = with_title("crab_user_1", "Hello, World!");
        assert_eq!(first, "crab_user_1_hello-world.jsonl");
        assert_eq!(parts(&first, &key).expect("fits").base, "crab_user_1");
        assert_eq!(with_title("crab_user_1", "🦀"), "crab_user_1.jsonl");
        assert!(with_title("crab_user_1", &"é1".repeat(100)).len() < 80);
    }
}
