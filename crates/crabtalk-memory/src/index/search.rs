//! Searches several indexes as one: the rarity of a term counts over all of them.

use super::score::{Scoring, share};
use super::{DocId, Index, Query};
use std::collections::{HashMap, HashSet};

/// Maximum number of terms that count, the rarest ones; a pasted page has more.
const MAX_TERMS: usize = 24;
/// Number of terms in the maximum score: no memory matches all words in a long
/// message.
const ASKED_TERMS: usize = 8;
/// Minimum number of documents assumed for coverage: among three entries every word is
/// common, although one of them may be relevant.
const ASKED_OF: f32 = 1_000.0;

/// The unit of ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Document,
    /// Sessions, each with the score of its best document.
    Session,
}

/// A term with its weight in the whole search.
pub(super) struct Weighted<'q> {
    pub(super) term: &'q str,
    /// Position of its first occurrence in the query.
    pub(super) at: usize,
    pub(super) idf: f32,
    /// Its share of the query's weight.
    pub(super) weight: f32,
}

/// One index of a search, with its filter.
pub(crate) struct Shard<'a> {
    /// The index.
    pub index: &'a Index,
    /// The unit to rank.
    pub level: Level,
    /// Whether its documents are messages: names of speakers and dates in the query then give
    /// a bonus.
    pub said: bool,
    /// Which documents may be returned.
    pub keep: &'a dyn Fn(DocId) -> bool,
    /// For an index of candidates: the documents from which they were selected.
    pub whole: Option<&'a Whole>,
}

/// The documents from which candidates were selected.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    /// Number of documents.
    pub(crate) docs: usize,
    /// Number of documents per term. Other terms count as common.
    pub(crate) counts: HashMap<String, usize>,
}

impl Shard<'_> {
    fn docs(&self) -> usize {
        self.whole.map_or(self.index.rows.len(), |whole| whole.docs)
    }

    fn count(&self, term: &str) -> usize {
        match self.whole {
            None => self.index.list(term).len(),
            Some(whole) => whole.counts.get(term).copied().unwrap_or(whole.docs),
        }
    }
}

/// A document that matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub shard: usize,
    /// The document's number in its index.
    pub doc: DocId,
    /// The score, for ordering.
    pub score: f32,
    /// Share of the query matched by the turn or its neighbours: 0 to 1, more
    /// only for long queries.
    pub coverage: f32,
}

/// Finds the best `k` documents, best first.
pub(crate) fn search(shards: &[Shard<'_>], query: &Query, k: usize) -> Vec<Found> {
    let total: usize = shards.iter().map(Shard::docs).sum();
    if total == 0 || query.is_empty() {
        return Vec::new();
    }
    let mut terms = distinct(query);
    let asked = weigh(shards, &mut terms, total as f32);
    let mut found = Vec::new();
    for (at, shard) in shards.iter().enumerate() {
        let scored = Scoring::new(shard, query, total as f32).run(&terms);
        found.extend(scored.into_iter().map(|(score, doc)| Found {
            shard: at,
            doc,
            score,
            coverage: 0.0,
        }));
    }
    // Of equal ones, the later one, which is newer.
    found.sort_unstable_by(|a, b| {
        let newer = (b.shard, b.doc).cmp(&(a.shard, a.doc));
        b.score.total_cmp(&a.score).then(newer)
    });
    found.truncate(k);
    for one in &mut found {
        let index = shards[one.shard].index;
        let share = |term: &Weighted<'_>| term.weight * share(index, term.term, one.doc);
        one.coverage = terms.iter().map(share).sum::<f32>() / asked;
    }
    found
}

/// The terms of a query without duplicates.
fn distinct(query: &Query) -> Vec<Weighted<'_>> {
    let mut seen = HashSet::new();
    let mut terms = Vec::new();
    for (at, word) in query.words.iter().enumerate() {
        if let Some(term) = word.term.as_deref()
            && seen.insert(term)
        {
            terms.push(Weighted {
                term,
                at,
                idf: 0.0,
                weight: 0.0,
            });
        }
    }
    terms
}

/// Keeps the rarest known terms, and returns the weight of the whole query.
fn weigh(shards: &[Shard<'_>], terms: &mut Vec<Weighted<'_>>, total: f32) -> f32 {
    for term in &mut *terms {
        let df: usize = shards.iter().map(|s| s.count(term.term)).sum();
        let df = df as f32;
        let rarity = |total: f32| (1.0 + (total - df + 0.5) / (df + 0.5)).ln();
        (term.idf, term.weight) = (rarity(total), rarity(total.max(ASKED_OF)));
    }
    let mut asked: Vec<f32> = terms.iter().map(|term| term.weight).collect();
    let stands = |s: &Shard<'_>, term| !s.index.list(term).is_empty();
    terms.retain(|t| shards.iter().any(|s| stands(s, t.term)));
    terms.sort_by(|a, b| b.idf.total_cmp(&a.idf));
    terms.truncate(MAX_TERMS);
    asked.sort_by(|a, b| b.total_cmp(a));
    asked.truncate(ASKED_TERMS);
    asked.iter().sum::<f32>().max(f32::MIN_POSITIVE)
}
