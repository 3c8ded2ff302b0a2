//! Scores documents with the weights below, which measured best (MEM-3).

use super::search::{Level, Weighted};
use super::{
    COUNT_BITS, DocId, Index, MAX_COUNT, NO_DAY, NO_SPEAKER, QUESTION, Query, Shard, TIME,
    pair_hash, term_hash,
};
use crate::text::DateHint;
use jiff::civil::Date;

/// Number of turns over which a term affects its neighbours.
pub(super) const REACH: usize = 5;
/// Factor for each turn of distance.
const FADE: f32 = 0.5;
/// Factor for later turns, from which a turn gains less than from earlier ones.
const FOLLOWING: f32 = 0.8;
/// Saturation of the count with neighbours.
const K_NEAR: f32 = 0.8;
/// Bonus for the term in the turn itself.
const IN_TURN: f32 = 0.4;
/// Share and saturation of a question, for the turn that answers it.
const ANSWERED: (f32, f32) = (0.5, 0.6);
/// Share and saturation of the whole session.
const SESSION: (f32, f32) = (0.1, 0.5);
/// Bonus for each pair of adjacent query terms.
const PAIR: f32 = 0.5;
/// The value of ln N for which the bonuses below were measured.
const BONUS_LN: f32 = 6.4;
const SPEAKER: f32 = 5.0;
/// Weight of a name as a word: mentioning a person says less than a message by that
/// person.
const NAME: f32 = 0.3;
/// Share of a session's second passage, beyond the reach of terms from the best one: a
/// session that mentions a topic twice is about it.
const SECOND: f32 = 0.4;
const MONTH: f32 = 7.0;
const YEAR: f32 = 2.1;
/// Bonus for a full date, by distance in days.
const DAYS: [(i32, f32); 3] = [(0, 8.0), (3, 4.0), (10, 2.0)];
const WHEN: f32 = 1.5;
const AFTER_QUESTION: f32 = 0.35;

/// The share of a term's possible score that a document gets, 0 to 1.
pub(super) fn share(index: &Index, term: &str, doc: DocId) -> f32 {
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

/// `(1 + k) x / (x + k)`: 1 at one occurrence, never above 1 + k.
fn saturated(x: f32, k: f32) -> f32 {
    (1.0 + k) * x / (x + k)
}

/// The scoring of one index.
pub(super) struct Scoring<'a> {
    index: &'a Index,
    shard: &'a Shard<'a>,
    query: &'a Query,
    /// Factor of all bonuses.
    bonus: f32,
    /// The speaker that the query names, whose name has little weight as a word.
    speaker: Option<u16>,
    named: Vec<bool>,
    /// For each document: the score of its terms.
    text: Vec<f32>,
    /// For each document: the count of a term with neighbours.
    near: Vec<f32>,
    by_session: Vec<f32>,
    touched: Vec<DocId>,
    candidates: Vec<DocId>,
}

impl<'a> Scoring<'a> {
    /// `total`: number of documents in the whole search.
    pub(super) fn new(shard: &'a Shard<'a>, query: &'a Query, total: f32) -> Self {
        let index = shard.index;
        let docs = index.rows.len();
        let mut scoring = Self {
            index,
            shard,
            query,
            bonus: total.ln() / BONUS_LN,
            speaker: None,
            named: vec![false; query.words.len()],
            text: vec![0.0; docs],
            near: vec![0.0; docs],
            by_session: vec![0.0; index.sessions()],
            touched: Vec::new(),
            candidates: Vec::new(),
        };
        if shard.said {
            scoring.find_speakers();
        }
        scoring
    }

    fn find_speakers(&mut self) {
        let mut found = Vec::new();
        for (id, name) in self.index.speakers.iter().enumerate() {
            if let Some(range) = self.query.find_name(name) {
                self.named[range].fill(true);
                found.push(id);
            }
        }
        let mut words = self.query.words.iter().zip(&self.named);
        let others = words.any(|(word, named)| word.term.is_some() && !named);
        if !others {
            // A query with a name only asks about the person, not for a speaker.
            self.named.fill(false);
            return;
        }
        if let [only] = found[..] {
            self.speaker = u16::try_from(only).ok();
        }
    }

    /// The matching documents, or the best one of each session, unordered.
    pub(super) fn run(mut self, terms: &[Weighted<'_>]) -> Vec<(f32, DocId)> {
        let index = self.index;
        for term in terms {
            let share = if self.named[term.at] { NAME } else { 1.0 };
            self.add_term(index.list(term.term), share * term.idf);
        }
        if self.candidates.is_empty() && self.query.date.is_some() && self.shard.said {
            // The query consists of a date only.
            self.candidates = (0..index.rows.len() as u32).collect();
        }
        let pairs = self.query_pairs(terms);
        let score = |doc: DocId| {
            let score = self.score(doc, &pairs);
            (score > 0.0 && (self.shard.keep)(doc)).then_some((score, doc))
        };
        let session = |doc: DocId| index.rows[doc as usize].session as usize;
        match self.shard.level {
            Level::Document => self.candidates.iter().copied().filter_map(score).collect(),
            Level::Session => {
                let mut matches = vec![false; index.sessions()];
                for &doc in &self.candidates {
                    matches[session(doc)] = true;
                }
                let docs = (0..index.rows.len() as u32).filter(|doc| matches[session(*doc)]);
                let scored: Vec<_> = docs.filter_map(score).collect();
                let sessions = scored.chunk_by(|a, b| session(a.1) == session(b.1));
                sessions.filter_map(best_of_session).collect()
            }
        }
    }

    /// Adds one term's share to every document that it affects.
    fn add_term(&mut self, list: &[u32], idf: f32) {
        let (index, docs) = (self.index, self.index.rows.len());
        let (mut session, mut in_session) = (u32::MAX, 0.0);
        for posting in list {
            let (doc, tf) = (
                (posting >> COUNT_BITS) as usize,
                (posting & MAX_COUNT) as f32,
            );
            let conversation = index.rows[doc].conversation;
            if index.rows[doc].session != session {
                self.add_session(session, in_session, idf);
                (session, in_session) = (index.rows[doc].session, 0.0);
            }
            in_session += tf;
            self.touch(doc, tf);
            let mut weight = tf;
            for other in doc + 1..docs.min(doc + 1 + REACH) {
                if index.rows[other].conversation != conversation {
                    break;
                }
                weight *= FADE;
                self.touch(other, weight);
            }
            let mut weight = tf * FOLLOWING;
            for at in (doc.saturating_sub(REACH)..doc).rev() {
                if index.rows[at].conversation != conversation {
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
            // Row numbers are u32.
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

    /// Adds the term's score to each turn that contains it, and to the answer of a
    /// question that contains it.
    fn add_direct(&mut self, list: &[u32], idf: f32) {
        let index = self.index;
        for posting in list {
            let (doc, tf) = (
                (posting >> COUNT_BITS) as usize,
                (posting & MAX_COUNT) as f32,
            );
            self.text[doc] += IN_TURN * idf;
            let next = doc + 1;
            if index.rows[doc].flags & QUESTION != 0
                && next < index.rows.len()
                && index.rows[next].conversation == index.rows[doc].conversation
            {
                self.text[next] += ANSWERED.0 * idf * saturated(tf, ANSWERED.1);
            }
        }
    }

    fn score(&self, doc: DocId, pairs: &[u16]) -> f32 {
        let at = doc as usize;
        let session = self.index.rows[at].session;
        let own = self.index.pairs_of(doc);
        self.text[at]
            + self.by_session[session as usize]
            + self.bonus * self.bonuses(at)
            + PAIR * pairs.iter().filter(|pair| own.contains(pair)).count() as f32
    }

    fn bonuses(&self, at: usize) -> f32 {
        let index = self.index;
        let asks = |doc: usize| index.rows[doc].flags & QUESTION != 0;
        let mut bonus = 0.0;
        let before = at.checked_sub(1);
        if before
            .is_some_and(|b| asks(b) && index.rows[b].conversation == index.rows[at].conversation)
        {
            bonus += AFTER_QUESTION;
        }
        if asks(at) {
            bonus -= AFTER_QUESTION;
        }
        if self
            .speaker
            .is_some_and(|s| s == index.rows[at].speaker && s != NO_SPEAKER)
        {
            bonus += SPEAKER;
        }
        if self.shard.said {
            if self.query.when && index.rows[at].flags & TIME != 0 {
                bonus += WHEN;
            }
            if let Some(hint) = self.query.date {
                let day = index.rows[at].day;
                if day != NO_DAY {
                    bonus += date_bonus(hint, day);
                }
            }
        }
        bonus
    }

    /// Hashes of adjacent query terms among those with weight: a long message has too many
    /// others.
    fn query_pairs(&self, terms: &[Weighted<'_>]) -> Vec<u16> {
        let words = self.query.words.iter().zip(&self.named);
        let words = words.filter(|(word, named)| !word.extra && !**named);
        let words: Vec<&str> = words.filter_map(|(word, _)| word.term.as_deref()).collect();
        let counts = |term: &str| terms.iter().any(|known| known.term == term);
        let mut pairs: Vec<u16> = words
            .windows(2)
            .filter(|pair| counts(pair[0]) && counts(pair[1]))
            .map(|pair| pair_hash(term_hash(pair[0]), term_hash(pair[1])))
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }
}

/// The best document of a session, with the session's score.
fn best_of_session(scored: &[(f32, DocId)]) -> Option<(f32, DocId)> {
    let best = |a: &(f32, DocId), b: &(f32, DocId)| a.0.total_cmp(&b.0);
    let (first, at) = scored.iter().copied().max_by(best)?;
    let apart = scored.iter().copied();
    let apart = apart.filter(|(_, doc)| doc.abs_diff(at) as usize > REACH);
    let second = apart.max_by(best).map_or(0.0, |(score, _)| score);
    Some((first + SECOND * second, at))
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
