//! What is known of well-known models. Names are matched by their beginning,
//! because providers append dates; configuration overrides all of it. Prices
//! are list prices in US dollars without tiers, so they are approximate.

use crate::price::Price;

/// A family of models.
struct Family {
    prefix: &'static str,
    /// Tokens read.
    context: u64,
    /// Tokens written.
    output: u64,
    price: Option<Price>,
    /// Whether it takes images.
    images: bool,
}

const fn family(prefix: &'static str, context: u64, output: u64) -> Family {
    Family {
        prefix,
        context,
        output,
        price: None,
        images: true,
    }
}

impl Family {
    /// What a million tokens cost: read, read from the cache, written.
    const fn costs(mut self, input: f64, cached: f64, output: f64) -> Self {
        self.price = Some(Price {
            input,
            output,
            cached: Some(cached),
        });
        self
    }

    /// It reads text alone.
    const fn blind(mut self) -> Self {
        self.images = false;
        self
    }
}

/// Longer beginnings first within a family.
const FAMILIES: &[Family] = &[
    family("claude-3-5-haiku", 200_000, 8_192).costs(0.8, 0.08, 4.0),
    family("claude-3-5", 200_000, 8_192).costs(3.0, 0.3, 15.0),
    family("claude-3-7", 200_000, 32_000).costs(3.0, 0.3, 15.0),
    family("claude-3-haiku", 200_000, 4_096).costs(0.25, 0.03, 1.25),
    family("claude-3-opus", 200_000, 4_096).costs(15.0, 1.5, 75.0),
    family("claude-3", 200_000, 4_096).costs(3.0, 0.3, 15.0),
    family("claude-haiku", 200_000, 32_000).costs(1.0, 0.1, 5.0),
    family("claude-sonnet", 200_000, 32_000).costs(3.0, 0.3, 15.0),
    family("claude-opus-4-1", 200_000, 32_000).costs(15.0, 1.5, 75.0),
    family("claude-opus-4-2025", 200_000, 32_000).costs(15.0, 1.5, 75.0),
    family("claude-opus-4-0", 200_000, 32_000).costs(15.0, 1.5, 75.0),
    family("claude-opus", 200_000, 32_000).costs(5.0, 0.5, 25.0),
    family("claude", 200_000, 32_000),
    family("gpt-5-chat", 128_000, 16_384).costs(1.25, 0.125, 10.0),
    family("gpt-5-mini", 400_000, 128_000).costs(0.25, 0.025, 2.0),
    family("gpt-5-nano", 400_000, 128_000).costs(0.05, 0.005, 0.4),
    family("gpt-5-pro", 400_000, 128_000).costs(15.0, 15.0, 120.0),
    family("gpt-5.2", 400_000, 128_000).costs(1.75, 0.175, 14.0),
    family("gpt-5", 400_000, 128_000).costs(1.25, 0.125, 10.0),
    family("gpt-4.1-mini", 1_047_576, 32_768).costs(0.4, 0.1, 1.6),
    family("gpt-4.1-nano", 1_047_576, 32_768).costs(0.1, 0.025, 0.4),
    family("gpt-4.1", 1_047_576, 32_768).costs(2.0, 0.5, 8.0),
    family("gpt-4o-mini", 128_000, 16_384).costs(0.15, 0.075, 0.6),
    family("gpt-4o", 128_000, 16_384).costs(2.5, 1.25, 10.0),
    family("gpt-4-turbo", 128_000, 4_096).costs(10.0, 10.0, 30.0),
    family("gpt-4-32k", 32_768, 4_096)
        .costs(60.0, 60.0, 120.0)
        .blind(),
    family("gpt-4", 8_192, 4_096)
        .costs(30.0, 30.0, 60.0)
        .blind(),
    family("gpt-3.5-turbo", 16_385, 4_096)
        .costs(0.5, 0.5, 1.5)
        .blind(),
    family("o1-mini", 128_000, 65_536)
        .costs(1.1, 0.55, 4.4)
        .blind(),
    family("o1", 200_000, 100_000).costs(15.0, 7.5, 60.0),
    family("o3-mini", 200_000, 100_000)
        .costs(1.1, 0.55, 4.4)
        .blind(),
    family("o3-pro", 200_000, 100_000).costs(20.0, 20.0, 80.0),
    family("o3", 200_000, 100_000).costs(2.0, 0.5, 8.0),
    family("o4-mini", 200_000, 100_000).costs(1.1, 0.275, 4.4),
    family("gemini-3-pro", 1_048_576, 65_536).costs(2.0, 0.2, 12.0),
    family("gemini-3.1-pro", 1_048_576, 65_536).costs(2.0, 0.2, 12.0),
    family("gemini-3-flash", 1_048_576, 65_536).costs(0.5, 0.05, 3.0),
    family("gemini-2.5-pro", 1_048_576, 65_536).costs(1.25, 0.125, 10.0),
    family("gemini-2.5-flash-lite", 1_048_576, 65_536).costs(0.1, 0.01, 0.4),
    family("gemini-2.5-flash", 1_048_576, 65_536).costs(0.3, 0.03, 2.5),
    family("gemini-2.0-flash-lite", 1_048_576, 8_192).costs(0.075, 0.075, 0.3),
    family("gemini-2.0-flash", 1_048_576, 8_192).costs(0.1, 0.025, 0.4),
    family("gemini-1.5-pro", 2_097_152, 8_192).costs(1.25, 0.3125, 5.0),
    family("gemini-1.5-flash", 1_048_576, 8_192).costs(0.075, 0.01875, 0.3),
    family("gemini-", 1_048_576, 65_536),
    family("amazon.nova-premier", 1_000_000, 10_000).costs(2.5, 0.625, 12.5),
    family("amazon.nova-pro", 300_000, 10_000).costs(0.8, 0.2, 3.2),
    family("amazon.nova-lite", 300_000, 10_000).costs(0.06, 0.015, 0.24),
    family("amazon.nova-micro", 128_000, 10_000)
        .costs(0.035, 0.00875, 0.14)
        .blind(),
    family("deepseek-", 128_000, 8_192)
        .costs(0.28, 0.028, 0.42)
        .blind(),
    family("mistral-large", 128_000, 8_192)
        .costs(2.0, 2.0, 6.0)
        .blind(),
    family("grok-3", 131_072, 16_384)
        .costs(3.0, 0.75, 15.0)
        .blind(),
    family("grok-4", 256_000, 16_384).costs(3.0, 0.75, 15.0),
    family("kimi-k2", 131_072, 16_384)
        .costs(0.6, 0.15, 2.5)
        .blind(),
];

/// Models that people run themselves: whether they take images. Longer
/// beginnings first.
const LOCAL: &[(&str, bool)] = &[
    ("bakllava", true),
    ("gemma-3-1b", false),
    ("gemma-3-270m", false),
    ("gemma-3-", true),
    ("gemma3:1b", false),
    ("gemma3:270m", false),
    ("gemma3", true),
    ("granite3.2-vision", true),
    ("llama-3.2-11b-vision", true),
    ("llama-3.2-90b-vision", true),
    ("llama-4", true),
    ("llama3.2-vision", true),
    ("llama4", true),
    ("llava", true),
    ("minicpm-v", true),
    ("mistral-small-3.1", true),
    ("mistral-small-3.2", true),
    ("mistral-small3.1", true),
    ("mistral-small3.2", true),
    ("moondream", true),
    ("pixtral", true),
    ("qwen-vl", true),
    ("qwen2-vl", true),
    ("qwen2.5-vl", true),
    ("qwen2.5vl", true),
    ("qwen3-vl", true),
];

/// Families that refuse a user's message right behind a result.
const STRICT: &[&str] = &[
    "codestral",
    "devstral",
    "magistral",
    "ministral",
    "mistral",
    "mixtral",
    "open-mistral",
    "open-mixtral",
    "pixtral",
];

/// A model's own name: routers put the maker before it ("anthropic/claude-.."),
/// Bedrock the region and the maker ("us.anthropic.claude-..").
pub(crate) fn bare(id: &str) -> &str {
    let name = id.rsplit('/').next().unwrap_or(id);
    if !name.contains('.') {
        return name;
    }
    for maker in ["anthropic.", "amazon."] {
        if let Some(at) = name.find(maker) {
            let skip = if maker == "anthropic." {
                maker.len()
            } else {
                0
            };
            return &name[at + skip..];
        }
    }
    name
}

fn find(id: &str) -> Option<&'static Family> {
    let name = bare(id);
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

/// What a model costs, about.
pub(crate) fn price(id: &str) -> Option<Price> {
    find(id).and_then(|family| family.price)
}

/// Whether a model wants an answer between results and a user's message.
pub(crate) fn is_strict(id: &str) -> bool {
    let name = bare(id).to_ascii_lowercase();
    STRICT.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a model takes images.
pub(crate) fn images(id: &str) -> Option<bool> {
    let name = bare(id).to_ascii_lowercase();
    let local = LOCAL.iter().find(|(prefix, _)| name.starts_with(prefix));
    find(id)
        .map(|family| family.images)
        .or(local.map(|(_, images)| *images))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_found_under_dates_and_makers() {
        for (id, want) in [
            ("claude-sonnet-4-5-20250929", Some(200_000)),
            ("anthropic/claude-3-haiku", Some(200_000)),
            (
                "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                Some(200_000),
            ),
            ("eu.amazon.nova-micro-v1:0", Some(128_000)),
            ("gpt-4o-mini", Some(128_000)),
            ("gpt-4-0613", Some(8_192)),
            ("models/gemini-2.5-flash", Some(1_048_576)),
            ("my-own", None),
        ] {
            assert_eq!(context(id), want, "{id}");
        }
        assert_eq!(output("claude-3-haiku-20240307"), Some(4_096));
        assert_eq!(price("gpt-4o-mini").map(|price| price.output), Some(0.6));
        assert_eq!(price("gemini-of-tomorrow"), None);
    }

    #[test]
    fn no_family_is_hidden_by_a_shorter_one_before_it() {
        for (at, family) in FAMILIES.iter().enumerate() {
            let hidden = FAMILIES[..at]
                .iter()
                .find(|e| family.prefix.starts_with(e.prefix));
            assert!(hidden.is_none(), "{}", family.prefix);
        }
        for (at, (prefix, _)) in LOCAL.iter().enumerate() {
            let hidden = LOCAL[..at].iter().find(|e| prefix.starts_with(e.0));
            assert!(hidden.is_none(), "{prefix}");
        }
    }

    #[test]
    fn figures_are_in_order() {
        for family in FAMILIES {
            assert!(family.output <= family.context, "{}", family.prefix);
            let Some(price) = family.price else { continue };
            let cached = price.cached.expect("every built-in price has it");
            assert!(
                0.0 < cached && cached <= price.input && price.input <= price.output,
                "{}",
                family.prefix
            );
        }
    }
}
