//! The cost of tokens.

use crabtalk_domain::Usage;

/// Number of tokens to which a price applies.
const UNIT: f64 = 1_000_000.0;

/// The price of a million tokens in the owner's currency; built-in prices are
/// in US dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Price of a million input tokens.
    pub input: f64,
    /// Price of a million output tokens.
    pub output: f64,
    /// Price of a million input tokens from the provider's cache;
    /// `None` means the price of other input.
    pub cached: Option<f64>,
}

impl Price {
    /// A price without a discount for cached input.
    pub fn new(input: f64, output: f64) -> Self {
        Self {
            input,
            output,
            cached: None,
        }
    }

    /// Adds the cache discount of another price.
    pub(crate) fn with_rebate_of(mut self, other: Option<Self>) -> Self {
        if self.cached.is_none()
            && let Some((cached, input)) = other.and_then(|p| Some((p.cached?, p.input)))
            && input > 0.0
        {
            self.cached = Some(self.input * cached / input);
        }
        self
    }
}

/// The cost of a call. Tokens written to a cache count as read, although some
/// providers take a quarter more for it.
pub fn cost(usage: &Usage, price: &Price) -> f64 {
    let cached = usage.cache_hit_tokens.unwrap_or(0).min(usage.prompt_tokens);
    let read = (usage.prompt_tokens - cached) as f64 * price.input;
    let hits = cached as f64 * price.cached.unwrap_or(price.input);
    let written = usage.completion_tokens as f64 * price.output;
    (read + hits + written) / UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_counts_input_cache_and_output() {
        let usage = Usage {
            prompt_tokens: 1_000_000,
            completion_tokens: 100_000,
            cache_hit_tokens: Some(400_000),
            cache_miss_tokens: Some(600_000),
            reasoning_tokens: Some(50_000),
        };
        let mut price = Price::new(3.0, 15.0);
        assert!((cost(&usage, &price) - 4.5).abs() < 1e-9);
        price.cached = Some(0.3);
        assert!((cost(&usage, &price) - (1.8 + 0.12 + 1.5)).abs() < 1e-9);
        assert!(cost(&Usage::default(), &price).abs() < 1e-9);
        // A server's wrong counts must not make the cost negative.
        let odd = Usage {
            prompt_tokens: 1,
            cache_hit_tokens: Some(5),
            ..Usage::default()
        };
        assert!(cost(&odd, &price) > 0.0);
    }

    #[test]
    fn configured_price_takes_the_usual_rebate() {
        let usual = Price {
            cached: Some(0.25),
            ..Price::new(2.5, 10.0)
        };
        let mine = Price::new(5.0, 5.0);
        assert_eq!(mine.with_rebate_of(Some(usual)).cached, Some(0.5));
        assert_eq!(mine.with_rebate_of(None).cached, None);
        let free = Price::new(0.0, 0.0);
        assert_eq!(mine.with_rebate_of(Some(free)).cached, None);
        assert_eq!(usual.with_rebate_of(Some(mine)).cached, Some(0.25));
    }
}
