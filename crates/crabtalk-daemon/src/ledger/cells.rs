//! Sums by cell, in few pieces of memory: thousands of small ones that live as
//! long as the day would each keep a page alive that a crowd has left.

use super::sums::{Cell, Sum};
use std::collections::HashMap;
use string_interner::{DefaultStringInterner, DefaultSymbol};

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
