//! Scores documents by the recipe that measured best (MEM-3).
//!
//! Several indexes are searched as if they were one: how rare a term is counts
//! over all of them. The measured weights stand below as constants.

use super::top::Top;
use super::{COUNT_BITS, DEAD, DocId, Index, MAX_COUNT, NO_DAY, NO_SPEAKER, QUESTION, Query, TIME};
use crate::text::DateHint;
use jiff::civil::Date;

/// How far a term reaches into its conversation, in turns.
const REACH: usize = 5;
/// What each turn of distance leaves of it.
const FADE: f32 = 0.5;
/// A turn gains less from what follows it than from what came before.
const FOLLOWING: f32 = 0.8;
/// Saturation of the count with neighbours.
const K_NEAR: f32 = 0.8;
/// Bonus for the term in the turn itself.
const IN_TURN: f32 = 0.4;
/// Share and saturation of the question that the turn answers.
const ANSWERED: (f32, f32) = (0.5, 0.6);
/// Share and saturation of the whole session.
const SESSION: (f32, f32) = (0.1, 0.5);
/// For each pair of query terms that stand side by side.
const PAIR: f32 = 0.5;
/// The bonuses below were measured where ln N was this.
const BONUS_LN: f32 = 6.4;
const SPEAKER: f32 = 5.0;
const MONTH: f32 = 7.0;
const YEAR: f32 = 2.1;
/// For a full date, by days of distance.
const DAYS: [(i32, f32); 3] = [(0, 8.0), (3, 4.0), (10, 2.0)];
const WHEN: f32 = 1.5;
const AFTER_QUESTION: f32 = 0.35;
/// Most terms that count, the rarest ones: a pasted page asks for no more.
const MAX_TERMS: usize = 24;
/// Terms over which the possible score is taken: nobody's memory answers
/// every word of a long message.
const ASKED_TERMS: usize = 8;
/// Coverage is judged as in a memory of at least this many documents: among
/// three entries every word is common, and yet one may be what was asked for.
const ASKED_OF: f32 = 1_000.0;

/// Parts of the recipe that depend on the kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// Speakers' names in the query become a bonus.
    pub speakers: bool,
    /// Dates in the query, and asking when, become a bonus.
    pub dates: bool,
}

/// What is ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Documents.
    Document,
    /// Sessions, each by the best of its documents.
    Session,
}

/// One index of a search.
pub struct Shard<'a> {
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
pub struct Found {
    /// Which of the shards.
    pub shard: usize,
    /// Which document of it.
    pub doc: DocId,
    /// For ordering.
    pub score: f32,
    /// Which part of what was asked stands there or beside it: 0 to 1, more
    /// only for long queries.
    pub coverage: f32,
}

/// A term with its weight over all shards.
struct Weighted<'q> {
    term: &'q str,
    /// Place of its first occurrence in the query.
    at: usize,
    idf: f32,
    /// Its part in what was asked.
    weight: f32,
}

/// Finds the best `k` documents, best first.
pub fn search(shards: &[Shard<'_>], query: &Query, k: usize) -> Vec<Found> {
    let total: usize = shards.iter().map(|s| s.index.rows.len()).sum();
    if total == 0 || query.is_empty() {
        return Vec::new();
    }
    let (terms, asked) = weigh(shards, query, total as f32);
    let bonus = (total as f32).ln() / BONUS_LN;
    let mut top = Top::new(k);
    for (at, shard) in shards.iter().enumerate() {
        Scoring::new(shard, query, bonus).run(at, &terms, &mut top);
    }
    let found = top.into_sorted().into_iter().map(|(score, (shard, doc))| {
        let share = |term: &Weighted<'_>| term.weight * share(shards[shard].index, term.term, doc);
        let coverage = terms.iter().map(share).sum::<f32>() / asked;
        Found {
            shard,
            doc,
            score,
            coverage,
        }
    });
    found.collect()
}

/// Which part of a term's possible score a document gets, 0 to 1.
fn share(index: &Index, term: &str, doc: DocId) -> f32 {
    let list = index.list(term);
    let reach = REACH as u32;
    let begin = list.partition_point(|p| (p >> COUNT_BITS) < doc.saturating_sub(reach));
    let conversation = index.rows[doc as usize].conversation;
    let (mut near, mut direct) = (0.0, 0.0);
    for posting in &list[begin..] {
        let (other, tf) = (posting >> COUNT_BITS, (posting & MAX_COUNT) as f32);
        if other > doc + reach {
            break;
        }
        if index.rows[other as usize].conversation != conversation {
            continue;
        }
        let fade = FADE.powi(other.abs_diff(doc) as i32);
        near += tf * fade * if other > doc { FOLLOWING } else { 1.0 };
        if other == doc {
            direct = IN_TURN;
        }
    }
    ((saturated(near, K_NEAR) + direct) / (1.0 + IN_TURN)).min(1.0)
}

/// The rarest known terms, and the weight of all that was asked.
fn weigh<'q>(shards: &[Shard<'_>], query: &'q Query, total: f32) -> (Vec<Weighted<'q>>, f32) {
    let mut terms: Vec<Weighted<'q>> = Vec::new();
    let mut asked = Vec::new();
    for (at, word) in query.words.iter().enumerate() {
        let Some(term) = word
            .term
            .as_deref()
            .filter(|t| terms.iter().all(|known| known.term != *t))
        else {
            continue;
        };
        let df: usize = shards.iter().map(|s| s.index.list(term).len()).sum();
        let df = df as f32;
        let rarity = |total: f32| (1.0 + (total - df + 0.5) / (df + 0.5)).ln();
        let weight = rarity(total.max(ASKED_OF));
        asked.push(weight);
        terms.push(Weighted {
            term,
            at,
            idf: rarity(total),
            weight,
        });
    }
    terms.sort_by(|a, b| b.idf.total_cmp(&a.idf));
    terms.retain(|t| shards.iter().any(|s| !s.index.list(t.term).is_empty()));
    terms.truncate(MAX_TERMS);
    asked.sort_by(|a, b| b.total_cmp(a));
    asked.truncate(ASKED_TERMS);
    (terms, asked.iter().sum::<f32>().max(f32::MIN_POSITIVE))
}

/// `(1 + k) x / (x + k)`: 1 at one occurrence, never above 1 + k.
fn saturated(x: f32, k: f32) -> f32 {
    (1.0 + k) * x / (x + k)
}

/// The scoring of one shard.
struct Scoring<'a> {
    shard: &'a Shard<'a>,
    query: &'a Query,
    bonus: f32,
    /// Speaker that the query names; the places of its words leave the terms.
    speaker: Option<u16>,
    named: Vec<bool>,
    text: Vec<f32>,
    near: Vec<f32>,
    by_session: Vec<f32>,
    touched: Vec<DocId>,
    candidates: Vec<DocId>,
}

impl<'a> Scoring<'a> {
    fn new(shard: &'a Shard<'a>, query: &'a Query, bonus: f32) -> Self {
        let docs = shard.index.rows.len();
        let mut scoring = Self {
            shard,
            query,
            bonus,
            speaker: None,
            named: vec![false; query.words.len()],
            text: vec![0.0; docs],
            near: vec![0.0; docs],
            by_session: vec![0.0; shard.index.sessions as usize],
            touched: Vec::new(),
            candidates: Vec::new(),
        };
        if shard.features.speakers {
            scoring.find_speakers();
        }
        scoring
    }

    fn find_speakers(&mut self) {
        let mut found = Vec::new();
        for (id, name) in self.shard.index.speakers.iter().enumerate() {
            if let Some(range) = self.query.find_name(name) {
                self.named[range].fill(true);
                found.push(id);
            }
        }
        let mut words = self.query.words.iter().zip(&self.named);
        let others = words.any(|(word, named)| word.term.is_some() && !named);
        if !others {
            // A name alone is what was asked for, not who said it.
            self.named.fill(false);
            return;
        }
        if let [only] = found[..] {
            self.speaker = u16::try_from(only).ok();
        }
    }

    fn run(mut self, shard: usize, terms: &[Weighted<'_>], top: &mut Top<(usize, DocId)>) {
        let index = self.shard.index;
        for term in terms {
            if self.named[term.at] {
                continue;
            }
            self.add_term(index.list(term.term), term.idf);
        }
        if self.candidates.is_empty() && self.query.date.is_some() && self.shard.features.dates {
            // Nothing but a date was asked for.
            self.candidates = (0..index.rows.len() as u32).collect();
        }
        let pairs = self.query_pairs();
        match self.shard.level {
            Level::Document => {
                for &doc in &self.candidates {
                    if let Some(score) = self.full_score(doc, &pairs, |s| top.takes(s)) {
                        top.offer(score, (shard, doc));
                    }
                }
            }
            Level::Session => self.best_of_sessions(shard, &pairs, top),
        }
    }

    /// Ranks sessions. Most are dismissed by what their best document could
    /// reach; of the others every document is scored in full.
    fn best_of_sessions(&self, shard: usize, pairs: &[u16], top: &mut Top<(usize, DocId)>) {
        let rows = &self.shard.index.rows;
        let mut best: Vec<(f32, DocId)> = vec![(0.0, DocId::MAX); self.by_session.len()];
        for &doc in &self.candidates {
            let slot = &mut best[rows[doc as usize].session as usize];
            let score = self.base_score(doc);
            if slot.1 == DocId::MAX || score > slot.0 {
                *slot = (score, doc);
            }
        }
        let room = PAIR * pairs.len() as f32;
        for (score, doc) in best.into_iter().filter(|(_, doc)| *doc != DocId::MAX) {
            if !top.takes(score + room) {
                continue;
            }
            let scored = self.session_of(doc).filter_map(|doc| {
                let score = self.full_score(doc, pairs, |s| top.takes(s))?;
                Some((score, doc))
            });
            if let Some((score, doc)) = scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
                top.offer(score, (shard, doc));
            }
        }
    }

    /// The documents beside this one that are of its session.
    fn session_of(&self, doc: DocId) -> impl Iterator<Item = DocId> {
        let rows = &self.shard.index.rows;
        let session = rows[doc as usize].session;
        let same = move |doc: &DocId| {
            rows.get(*doc as usize)
                .is_some_and(|r| r.session == session)
        };
        let before = (0..doc).rev().take_while(same);
        before.chain((doc..).take_while(same))
    }

    /// Adds one term's share to every document that it touches.
    fn add_term(&mut self, list: &[u32], idf: f32) {
        let rows = &self.shard.index.rows;
        let (mut session, mut in_session) = (u32::MAX, 0.0);
        for posting in list {
            let (doc, tf) = (
                (posting >> COUNT_BITS) as usize,
                (posting & MAX_COUNT) as f32,
            );
            let row = &rows[doc];
            if row.session != session {
                self.add_session(session, in_session, idf);
                (session, in_session) = (row.session, 0.0);
            }
            in_session += tf;
            self.touch(doc, tf);
            let mut weight = tf;
            for other in rows.iter().enumerate().skip(doc + 1).take(REACH) {
                if other.1.conversation != row.conversation {
                    break;
                }
                weight *= FADE;
                self.touch(other.0, weight);
            }
            let mut weight = tf * FOLLOWING;
            for at in (doc.saturating_sub(REACH)..doc).rev() {
                if rows[at].conversation != row.conversation {
                    break;
                }
                weight *= FADE;
                self.touch(at, weight);
            }
        }
        self.add_session(session, in_session, idf);
        self.settle(idf);
        self.add_direct(list, idf);
    }

    fn touch(&mut self, doc: usize, weight: f32) {
        if self.near[doc] == 0.0 {
            // Rows are numbered by u32.
            self.touched.push(doc as u32);
        }
        self.near[doc] += weight;
    }

    fn add_session(&mut self, session: u32, count: f32, idf: f32) {
        if let Some(sum) = self.by_session.get_mut(session as usize) {
            *sum += SESSION.0 * idf * saturated(count, SESSION.1);
        }
    }

    fn settle(&mut self, idf: f32) {
        for &doc in &self.touched {
            let at = doc as usize;
            if self.text[at] == 0.0 {
                self.candidates.push(doc);
            }
            self.text[at] += idf * saturated(self.near[at], K_NEAR);
            self.near[at] = 0.0;
        }
        self.touched.clear();
    }

    /// What the term gives to the turn it stands in, and to the answer of the
    /// question it stands in.
    fn add_direct(&mut self, list: &[u32], idf: f32) {
        let rows = &self.shard.index.rows;
        for posting in list {
            let (doc, tf) = (
                (posting >> COUNT_BITS) as usize,
                (posting & MAX_COUNT) as f32,
            );
            self.text[doc] += IN_TURN * idf;
            let asked = rows[doc].flags & QUESTION != 0;
            if let Some(next) = rows.get(doc + 1).filter(|_| asked)
                && next.conversation == rows[doc].conversation
            {
                self.text[doc + 1] += ANSWERED.0 * idf * saturated(tf, ANSWERED.1);
            }
        }
    }

    /// A document's score without pairs.
    fn base_score(&self, doc: DocId) -> f32 {
        let at = doc as usize;
        let session = self.shard.index.rows[at].session;
        self.text[at] + self.by_session[session as usize] + self.bonus * self.bonuses(at)
    }

    /// A document's score with everything, if it gets past `takes`.
    fn full_score(&self, doc: DocId, pairs: &[u16], takes: impl Fn(f32) -> bool) -> Option<f32> {
        if self.shard.index.rows[doc as usize].flags & DEAD != 0 {
            return None;
        }
        let mut score = self.base_score(doc);
        if !takes(score + PAIR * pairs.len() as f32) {
            return None;
        }
        if !pairs.is_empty() {
            let own = self.shard.index.pairs_of(doc);
            score += PAIR * pairs.iter().filter(|pair| own.contains(pair)).count() as f32;
        }
        (score > 0.0 && takes(score) && (self.shard.keep)(doc)).then_some(score)
    }

    fn bonuses(&self, at: usize) -> f32 {
        let rows = &self.shard.index.rows;
        let row = &rows[at];
        let mut bonus = 0.0;
        let before = at.checked_sub(1).map(|before| &rows[before]);
        if before.is_some_and(|b| b.conversation == row.conversation && b.flags & QUESTION != 0) {
            bonus += AFTER_QUESTION;
        }
        if row.flags & QUESTION != 0 {
            bonus -= AFTER_QUESTION;
        }
        if self
            .speaker
            .is_some_and(|s| s == row.speaker && s != NO_SPEAKER)
        {
            bonus += SPEAKER;
        }
        if self.shard.features.dates {
            if self.query.when && row.flags & TIME != 0 {
                bonus += WHEN;
            }
            if let Some(hint) = self.query.date.filter(|_| row.day != NO_DAY) {
                bonus += date_bonus(hint, row.day);
            }
        }
        bonus
    }

    /// Hashes of query terms that stand side by side.
    fn query_pairs(&self) -> Vec<u16> {
        let index = self.shard.index;
        let words = self.query.words.iter().zip(&self.named);
        let words = words.filter(|(word, named)| !word.extra && !**named);
        let terms: Vec<&str> = words.filter_map(|(word, _)| word.term.as_deref()).collect();
        let id = |term: &str| index.terms.get(term).copied();
        let mut pairs: Vec<u16> = terms
            .windows(2)
            .filter_map(|pair| Some(super::pair_hash(id(pair[0])?, id(pair[1])?)))
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }
}

fn date_bonus(hint: DateHint, day: i32) -> f32 {
    let Some(date) = civil(day) else { return 0.0 };
    let year = hint.year.unwrap_or(date.year());
    match (hint.month, hint.day) {
        (Some(month), Some(of_month)) => {
            let Ok(wanted) = Date::new(year, month, of_month) else {
                return 0.0;
            };
            let apart = (crate::days(wanted) - day).abs();
            DAYS.iter()
                .find(|(within, _)| apart <= *within)
                .map_or(0.0, |(_, bonus)| *bonus)
        }
        (Some(month), None) if month == date.month() && year == date.year() => MONTH,
        (None, _) if year == date.year() && hint.year.is_some() => YEAR,
        _ => 0.0,
    }
}

fn civil(day: i32) -> Option<Date> {
    let epoch = jiff::civil::date(1970, 1, 1);
    epoch
        .checked_add(jiff::Span::new().try_days(day).ok()?)
        .ok()
}
