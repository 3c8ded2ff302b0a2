//! Searches several indexes as if they were one: how rare a term is counts
//! over all of them.

use super::asked::{Features, Level, Weighted};
use super::score::{Rules, Scoring, Scratch, share};
use super::top::Top;
use super::{Corpus, DocId, Index, OnDisk, Query};
use std::collections::{HashMap, HashSet};
use std::io;

/// Most terms that count, the rarest ones: a pasted page asks for no more.
const MAX_TERMS: usize = 24;
/// Terms over which the possible score is taken: nobody's memory answers
/// every word of a long message.
const ASKED_TERMS: usize = 8;
/// Coverage is judged as in a memory of at least this many documents: among
/// three entries every word is common, and yet one may be what was asked for.
const ASKED_OF: f32 = 1_000.0;

/// Looks into vocabularies on disk that one search makes: a millisecond or two.
/// Of a long message the longest words are looked up, which are the rarest.
const MAX_LOOK_UPS: usize = 1_000;

/// One index of a search.
pub(crate) struct Shard<'a> {
    /// Where to look.
    pub index: &'a Index,
    /// What to rank there.
    pub level: Level,
    /// Which parts of the recipe apply.
    pub features: Features,
    /// Which documents may be found. Asked for the few that would be.
    pub keep: &'a dyn Fn(DocId) -> bool,
}

/// A document that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub shard: usize,
    /// Which document of it.
    pub doc: DocId,
    /// For ordering.
    pub score: f32,
    /// Which part of what was asked stands there or beside it: 0 to 1, more
    /// only for long queries.
    pub coverage: f32,
}

/// What a search found, and which indexes on disk could not be read.
pub(crate) struct Search {
    /// Best first. Indexes on disk have the numbers behind the shards.
    pub(crate) found: Vec<Found>,
    /// Their numbers among those on disk.
    pub(crate) broken: Vec<(usize, io::Error)>,
}

/// Nothing on disk.
enum Nowhere {}

impl OnDisk for Nowhere {
    type Read = Index;

    fn docs(&self) -> usize {
        match *self {}
    }

    fn counts(&mut self, _: &[&str]) -> io::Result<Vec<usize>> {
        match *self {}
    }

    fn read(&mut self, _: &[usize]) -> io::Result<Index> {
        match *self {}
    }
}

/// Finds the best `k` documents, best first.
pub(crate) fn search(shards: &[Shard<'_>], query: &Query, k: usize) -> Vec<Found> {
    search_all::<Nowhere>(shards, &mut [], query, k, 0, &mut Scratch::default()).found
}

/// As `search`, in what lies on disk too, where at most so many `postings` are
/// read, those of the rarest terms.
pub(crate) fn search_all<D: OnDisk>(
    shards: &[Shard<'_>],
    disk: &mut [D],
    query: &Query,
    k: usize,
    postings: usize,
    scratch: &mut Scratch,
) -> Search {
    let in_memory: usize = shards.iter().map(|s| s.index.docs()).sum();
    let total = in_memory + disk.iter().map(D::docs).sum::<usize>();
    let mut search = Search {
        found: Vec::new(),
        broken: Vec::new(),
    };
    if total == 0 || query.is_empty() {
        return search;
    }
    let mut terms = distinct(query);
    let counts = count_on_disk(disk, &mut terms, &mut search.broken);
    let asked = weigh(shards, &mut terms, total as f32);
    let rules = |level, features, keep| Rules {
        level,
        features,
        keep,
        bonus: Rules::bonus(total as f32),
    };
    let mut ranking = Ranking {
        terms: &terms,
        query,
        asked,
        top: Top::new(k),
        coverage: HashMap::new(),
        scratch,
    };
    for (at, shard) in shards.iter().enumerate() {
        ranking.add(
            at,
            shard.index,
            rules(shard.level, shard.features, shard.keep),
        );
    }
    let wanted = within(&terms, postings);
    // A date alone is looked for among all documents.
    let by_date = query.date.is_some() && terms.is_empty() && total - in_memory <= postings;
    for (at, index) in disk.iter_mut().enumerate() {
        let stands = |term: &usize| counts[at].get(*term).is_some_and(|count| *count > 0);
        if !wanted.iter().any(stands) && !by_date {
            continue;
        }
        match index.read(&wanted) {
            Ok(read) => {
                let rules = rules(Level::Document, Features::ALL, &|_| true);
                ranking.add(shards.len() + at, &read, rules);
            }
            Err(error) => search.broken.push((at, error)),
        }
    }
    search.found = ranking.into_found();
    search
}

/// What was found so far.
struct Ranking<'a> {
    terms: &'a [Weighted<'a>],
    query: &'a Query,
    asked: f32,
    top: Top<(usize, DocId)>,
    coverage: HashMap<(usize, DocId), f32>,
    scratch: &'a mut Scratch,
}

impl Ranking<'_> {
    fn add<C: Corpus>(&mut self, at: usize, corpus: &C, rules: Rules<'_>) {
        let scratch = std::mem::take(self.scratch);
        let scoring = Scoring::new(corpus, rules, self.query, scratch);
        *self.scratch = scoring.run(at, self.terms, &mut self.top);
        for item in self.top.items().filter(|(shard, _)| *shard == at) {
            let share = |term: &Weighted<'_>| term.weight * share(corpus, term.term, item.1);
            let coverage = self.terms.iter().map(share).sum::<f32>() / self.asked;
            self.coverage.insert(item, coverage);
        }
    }

    fn into_found(self) -> Vec<Found> {
        let found = self.top.into_sorted().into_iter();
        let found = found.map(|(score, item)| Found {
            shard: item.0,
            doc: item.1,
            score,
            coverage: self.coverage.get(&item).copied().unwrap_or_default(),
        });
        found.collect()
    }
}

/// The terms of a query, each once.
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
                on_disk: 0,
                looked_up: usize::MAX,
            });
        }
    }
    terms
}

/// Counts the terms in each index, and gives the counts as they were looked up.
fn count_on_disk<D: OnDisk>(
    disk: &mut [D],
    terms: &mut [Weighted<'_>],
    broken: &mut Vec<(usize, io::Error)>,
) -> Vec<Vec<usize>> {
    let Some(most) = MAX_LOOK_UPS.checked_div(disk.len()) else {
        return Vec::new();
    };
    let mut chosen: Vec<usize> = (0..terms.len()).collect();
    chosen.sort_by_key(|at| std::cmp::Reverse(terms[*at].term.len()));
    chosen.truncate(most.max(MAX_TERMS));
    let names: Vec<&str> = chosen.iter().map(|at| terms[*at].term).collect();
    let mut all = Vec::with_capacity(disk.len());
    for (at, index) in disk.iter_mut().enumerate() {
        let counts = index.counts(&names).unwrap_or_else(|error| {
            broken.push((at, error));
            Vec::new()
        });
        for (term, count) in chosen.iter().zip(&counts) {
            terms[*term].on_disk += count;
        }
        all.push(counts);
    }
    for (number, term) in chosen.into_iter().enumerate() {
        terms[term].looked_up = number;
    }
    all
}

/// The rarest terms whose postings are few enough together, as they were
/// looked up.
fn within(terms: &[Weighted<'_>], postings: usize) -> Vec<usize> {
    let mut room = postings;
    let fits = |term: &&Weighted<'_>| match room.checked_sub(term.on_disk) {
        Some(left) if term.on_disk > 0 => {
            room = left;
            true
        }
        _ => false,
    };
    let wanted = terms.iter().filter(fits).map(|term| term.looked_up);
    wanted.collect()
}

/// Leaves the rarest known terms, and gives the weight of all that was asked.
fn weigh(shards: &[Shard<'_>], terms: &mut Vec<Weighted<'_>>, total: f32) -> f32 {
    for term in &mut *terms {
        let df: usize = shards.iter().map(|s| s.index.list(term.term).len()).sum();
        let df = (df + term.on_disk) as f32;
        let rarity = |total: f32| (1.0 + (total - df + 0.5) / (df + 0.5)).ln();
        (term.idf, term.weight) = (rarity(total), rarity(total.max(ASKED_OF)));
    }
    let mut asked: Vec<f32> = terms.iter().map(|term| term.weight).collect();
    let stands = |s: &Shard<'_>, term| !s.index.list(term).is_empty();
    terms.retain(|t| t.on_disk > 0 || shards.iter().any(|s| stands(s, t.term)));
    terms.sort_by(|a, b| b.idf.total_cmp(&a.idf));
    terms.truncate(MAX_TERMS);
    asked.sort_by(|a, b| b.total_cmp(a));
    asked.truncate(ASKED_TERMS);
    asked.iter().sum::<f32>().max(f32::MIN_POSITIVE)
}
