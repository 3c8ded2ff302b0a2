//! What is known of well-known models. Names are matched by their beginning,
//! because providers append dates; configuration overrides all of it.

/// Tokens read and written by a family of models.
struct Family {
    prefix: &'static str,
    context: u64,
    output: u64,
}

const fn family(prefix: &'static str, context: u64, output: u64) -> Family {
    Family {
        prefix,
        context,
        output,
    }
}

/// Longer beginnings first within a family.
const FAMILIES: &[Family] = &[
    family("claude-3-5", 200_000, 8_192),
    family("claude-3-7", 200_000, 32_000),
    family("claude-3", 200_000, 4_096),
    family("claude", 200_000, 32_000),
    family("gpt-5-chat", 128_000, 16_384),
    family("gpt-5", 400_000, 128_000),
    family("gpt-4.1", 1_047_576, 32_768),
    family("gpt-4o", 128_000, 16_384),
    family("gpt-4-turbo", 128_000, 4_096),
    family("gpt-4-32k", 32_768, 4_096),
    family("gpt-4", 8_192, 4_096),
    family("gpt-3.5-turbo", 16_385, 4_096),
    family("o1-mini", 128_000, 65_536),
    family("o1", 200_000, 100_000),
    family("o3", 200_000, 100_000),
    family("o4-mini", 200_000, 100_000),
    family("deepseek-", 128_000, 8_192),
    family("mistral-large", 128_000, 8_192),
    family("grok-3", 131_072, 16_384),
    family("grok-4", 256_000, 16_384),
    family("kimi-k2", 131_072, 16_384),
];

fn find(id: &str) -> Option<&'static Family> {
    // Routers put the maker before the name: "anthropic/claude-...".
    let name = id.rsplit('/').next().unwrap_or(id);
    FAMILIES
        .iter()
        .find(|family| name.starts_with(family.prefix))
}

/// Tokens that a model reads.
pub(crate) fn context(id: &str) -> Option<u64> {
    find(id).map(|family| family.context)
}

/// Tokens that a model writes at most in one answer.
pub(crate) fn output(id: &str) -> Option<u64> {
    find(id).map(|family| family.output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_found_under_dates_and_makers() {
        for (id, want) in [
            ("claude-sonnet-4-5-20250929", Some(200_000)),
            ("anthropic/claude-3-haiku", Some(200_000)),
            ("gpt-4o-mini", Some(128_000)),
            ("gpt-4-0613", Some(8_192)),
            ("my-own", None),
        ] {
            assert_eq!(context(id), want, "{id}");
        }
        assert_eq!(output("claude-3-haiku-20240307"), Some(4_096));
    }

    #[test]
    fn no_family_is_hidden_by_a_shorter_one_before_it() {
        for (at, family) in FAMILIES.iter().enumerate() {
            let hidden = FAMILIES[..at]
                .iter()
                .find(|e| family.prefix.starts_with(e.prefix));
            assert!(hidden.is_none(), "{}", family.prefix);
        }
    }
}
