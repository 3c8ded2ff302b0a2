//! Sums by cell, in few pieces of memory: thousands of small ones that live as
//! long as the day would each keep a page alive that a crowd has left.

use crabtalk_domain::{Cost, Usage};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use string_interner::{DefaultStringInterner, DefaultSymbol};

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Sum {
    pub(crate) calls: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    pub(crate) cache_hit_tokens: u64,
    pub(crate) money: f64,
    /// Tokens for which no price is known.
    pub(crate) unpriced_tokens: u64,
}

impl Sum {
    pub(super) fn new(calls: u64, usage: &Usage, cost: &Cost) -> Self {
        Self {
            calls,
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            cache_hit_tokens: usage.cache_hit_tokens.unwrap_or(0),
            money: cost.money.unwrap_or(0.0),
            unpriced_tokens: cost.unpriced_tokens,
        }
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.calls, other.calls);
        add(&mut self.prompt_tokens, other.prompt_tokens);
        add(&mut self.completion_tokens, other.completion_tokens);
        add(&mut self.cache_hit_tokens, other.cache_hit_tokens);
        add(&mut self.unpriced_tokens, other.unpriced_tokens);
        // A figure that is none, from a file that was edited, would stick.
        if other.money.is_finite() {
            self.money += other.money;
        }
    }
}

/// What a sum is told apart by.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Cell {
    /// The agent that spoke.
    pub(crate) speaker: String,
    /// The conversation's agent.
    pub(crate) agent: String,
    /// The conversation's sender; empty for those beyond the bound.
    #[serde(default)]
    pub(crate) sender: String,
    #[serde(default)]
    pub(crate) provider: String,
    #[serde(default)]
    pub(crate) model: String,
}

/// A cell by the numbers of its words: speaker, agent, sender, provider, model.
type Key = [DefaultSymbol; 5];

/// The sums of a day by cell.
#[derive(Debug, Clone, Default)]
pub(super) struct Cells {
    words: DefaultStringInterner,
    sums: HashMap<Key, Sum>,
}

impl Cells {
    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    pub(super) fn contains(&self, cell: &Cell) -> bool {
        let [Some(a), Some(b), Some(c), Some(d), Some(e)] =
            words(cell).map(|word| self.words.get(word))
        else {
            return false;
        };
        self.sums.contains_key(&[a, b, c, d, e])
    }

    pub(super) fn add(&mut self, cell: &Cell, sum: &Sum) {
        let key = words(cell).map(|word| self.words.get_or_intern(word));
        self.sums.entry(key).or_default().add(sum);
    }

    /// All of them by their words: speaker, agent, sender, provider, model.
    pub(super) fn iter(&self) -> impl Iterator<Item = ([&str; 5], &Sum)> {
        let word = |symbol| self.words.resolve(symbol).unwrap_or_default();
        self.sums.iter().map(move |(key, sum)| (key.map(word), sum))
    }

    /// All of them, in the order of their words.
    pub(super) fn sorted(&self) -> Vec<(Cell, Sum)> {
        let mut all: Vec<(Cell, Sum)> = self
            .iter()
            .map(|(words, sum)| {
                let [speaker, agent, sender, provider, model] = words.map(str::to_owned);
                let cell = Cell {
                    speaker,
                    agent,
                    sender,
                    provider,
                    model,
                };
                (cell, *sum)
            })
            .collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }
}

fn words(cell: &Cell) -> [&str; 5] {
    let Cell {
        speaker,
        agent,
        sender,
        provider,
        model,
    } = cell;
    [speaker, agent, sender, provider, model]
}
