//! Facts about well-known models. A name matches by its prefix,
//! since providers append dates; configuration overrides the table. Prices
//! are list prices in US dollars without tiers, so they are approximate.

use crate::price::Price;
use std::sync::LazyLock;

/// A family of models.
struct Family {
    prefix: &'static str,
    /// Context size in tokens.
    context: u64,
    /// Output limit in tokens.
    output: u64,
    price: Option<Price>,
    images: bool,
}

/// The families, one per row.
static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    let rows = include_str!("known.txt").lines();
    let rows = rows.filter(|row| !row.starts_with('#'));
    rows.map(|row| Family::read(row).expect("the table is part of the program"))
        .collect()
});

impl Family {
    fn read(row: &'static str) -> Option<Self> {
        let mut columns = row.split_ascii_whitespace();
        let prefix = columns.next()?;
        let mut tokens = || columns.next()?.parse().ok();
        let (context, output) = (tokens()?, tokens()?);
        let mut dollars = || columns.next()?.parse().ok();
        let (input, cached, written) = (dollars(), dollars(), dollars());
        let price = input.zip(written).map(|(input, output)| Price {
            input,
            output,
            cached,
        });
        let images = columns.next()? == "images";
        Some(Self {
            prefix,
            context,
            output,
            price,
            images,
        })
    }
}

/// Self-hosted models: whether they accept images. Longer prefixes come
/// first.
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

/// Families that refuse a user message directly after a result.
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

/// A model's name without the prefixes of routers ("anthropic/claude-..")
/// and of Bedrock ("us.anthropic.claude-..").
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

/// The context size of a model in tokens.
pub(crate) fn context(id: &str) -> Option<u64> {
    find(id).map(|family| family.context)
}

/// The output limit of a model in tokens.
pub(crate) fn output(id: &str) -> Option<u64> {
    find(id).map(|family| family.output)
}

/// The approximate price of a model.
pub(crate) fn price(id: &str) -> Option<Price> {
    find(id).and_then(|family| family.price)
}

/// Whether a model requires an answer between results and a user message.
pub(crate) fn is_strict(id: &str) -> bool {
    let name = bare(id).to_ascii_lowercase();
    STRICT.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a model accepts images.
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
    fn family_is_found_behind_dates_and_vendors() {
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
        for family in FAMILIES.iter() {
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
