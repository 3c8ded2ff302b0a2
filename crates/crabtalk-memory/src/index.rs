//! An inverted index of turns, which also scores a turn's neighbours, without
//! normalisation by length.
//!
//! Invariants: document ids increase, and those of one conversation are contiguous, so
//! that a neighbour has the next id. The index contains no text, and nothing is removed:
//! a changed source needs a new index.

mod query;
mod score;
mod search;

pub(crate) use query::Query;
pub(crate) use search::{Level, Shard, Whole, search};

#[cfg(test)]
pub(crate) use search::Found;

use crate::text::{Words, has_question, tells_time, term_of};
use std::collections::HashMap;

/// Bits of a posting for the count; higher counts do not change a score that saturates
/// at one.
const COUNT_BITS: u32 = 5;
const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;

/// Maximum documents of an index.
const MAX_DOCUMENTS: usize = 1 << (32 - COUNT_BITS);

const QUESTION: u8 = 1;
const TIME: u8 = 2;

/// A turn, or a passage of one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Document<'a> {
    /// Number of the conversation, chosen by the caller; only documents with the same number
    /// are neighbours.
    pub conversation: u32,
    /// Number of the session (archive or entry), which never decreases.
    pub session: u32,
    /// The speaker; empty if it does not matter.
    pub speaker: &'a str,
    /// Days since 1970-01-01, if known.
    pub day: Option<i32>,
}

/// Number of a document in its index.
pub(crate) type DocId = u32;

/// Per-document data other than postings.
#[derive(Debug, Clone, Copy)]
struct Row {
    conversation: u32,
    session: u32,
    /// End of its pairs in `pairs`; they begin at the previous row's end.
    pairs_end: u32,
    day: i32,
    speaker: u16,
    flags: u8,
}

const NO_DAY: i32 = i32::MIN;
const NO_SPEAKER: u16 = u16::MAX;

#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Every term with its index in `postings`.
    terms: HashMap<Box<str>, u32>,
    /// For each term: its hash.
    hashes: Vec<u64>,
    /// For each term: document and count in one number, increasing.
    postings: Vec<Vec<u32>>,
    rows: Vec<Row>,
    /// Hashes of adjacent terms, document by document.
    pairs: Vec<u16>,
    speakers: Vec<String>,
}

impl Index {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The number after that of the last session.
    fn sessions(&self) -> usize {
        self.rows.last().map_or(0, |row| row.session as usize + 1)
    }

    /// Appends a document. `None` if the index is full.
    pub(crate) fn append(
        &mut self,
        document: &Document<'_>,
        Analysed { terms, flags }: &Analysed,
    ) -> Option<DocId> {
        let id = u32::try_from(self.rows.len())
            .ok()
            .filter(|id| (*id as usize) < MAX_DOCUMENTS)?;
        let mut last: Option<u32> = None;
        for term in terms.split_ascii_whitespace() {
            let extra = term.strip_prefix(EXTRA);
            let term = self.number_of(extra.unwrap_or(term));
            self.count(term, id);
            if extra.is_some() {
                continue;
            }
            if let Some(before) = last.replace(term) {
                let [before, term] = [before, term].map(|term| self.hashes[term as usize]);
                self.pairs.push(pair_hash(before, term));
            }
        }
        let speaker = self.speaker(document.speaker);
        self.rows.push(Row {
            conversation: document.conversation,
            session: document.session,
            pairs_end: u32::try_from(self.pairs.len()).ok()?,
            day: document.day.unwrap_or(NO_DAY),
            speaker,
            flags: *flags,
        });
        Some(id)
    }

    fn count(&mut self, term: u32, id: DocId) {
        let list = &mut self.postings[term as usize];
        match list.last_mut() {
            Some(last) if *last >> COUNT_BITS == id => {
                if *last & MAX_COUNT < MAX_COUNT {
                    *last += 1;
                }
            }
            _ => list.push(id << COUNT_BITS | 1),
        }
    }

    /// The number of a term, which is added if it is new.
    fn number_of(&mut self, stem: &str) -> u32 {
        if let Some(term) = self.terms.get(stem) {
            return *term;
        }
        // Each term has one list, and there are fewer than 2^32 terms.
        let term = self.postings.len() as u32;
        self.postings.push(Vec::new());
        self.hashes.push(term_hash(stem));
        self.terms.insert(stem.into(), term);
        term
    }

    /// Postings of the documents that contain the term.
    fn list(&self, term: &str) -> &[u32] {
        self.terms
            .get(term)
            .map_or(&[], |at| &self.postings[*at as usize])
    }

    fn pairs_of(&self, id: DocId) -> &[u16] {
        let at = id as usize;
        let begin = at
            .checked_sub(1)
            .map_or(0, |before| self.rows[before].pairs_end);
        &self.pairs[begin as usize..self.rows[at].pairs_end as usize]
    }

    fn speaker(&mut self, name: &str) -> u16 {
        let words = Words::cut(name);
        let name = words.iter().map(|w| w.text).collect::<Vec<_>>().join(" ");
        if name.is_empty() {
            return NO_SPEAKER;
        }
        let at = self
            .speakers
            .iter()
            .position(|known| *known == name)
            .unwrap_or_else(|| {
                self.speakers.push(name);
                self.speakers.len() - 1
            });
        // With too many speakers, a name is an ordinary word.
        u16::try_from(at).unwrap_or(NO_SPEAKER)
    }
}

/// Prefix of a term outside the sequence of words.
const EXTRA: char = '+';

/// The analysed form of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Analysed {
    /// Terms in order, separated by blanks.
    pub(crate) terms: String,
    /// `QUESTION` and `TIME`.
    pub(crate) flags: u8,
}

impl Analysed {
    pub(crate) fn of(text: &str) -> Self {
        let words = Words::cut(text);
        let mut terms = String::with_capacity(text.len());
        for word in words.iter() {
            let Some(term) = term_of(word.text) else {
                continue;
            };
            if !terms.is_empty() {
                terms.push(' ');
            }
            if word.extra {
                terms.push(EXTRA);
            }
            terms.push_str(&term);
        }
        Self {
            terms,
            flags: flags_of(text, &words),
        }
    }
}

fn flags_of(text: &str, words: &Words) -> u8 {
    let asks = if has_question(text) { QUESTION } else { 0 };
    let tells = tells_time(words.iter().map(|word| word.text));
    asks | if tells { TIME } else { 0 }
}

/// FNV-1a with additional mixing.
fn term_hash(term: &str) -> u64 {
    mixed(fnv(term.as_bytes()))
}

/// FNV-1a.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

/// Hash of two adjacent terms. Sixteen bits suffice: a false match occurs in about one of a
/// thousand documents, and is worth half a point.
fn pair_hash(a: u64, b: u64) -> u16 {
    mixed(a.rotate_left(1) ^ b) as u16
}

#[cfg(test)]
mod tests;
