//! Searches segments.

use super::*;
use crate::index::{
    COUNT_BITS, Corpus, DocId, MAX_COUNT, NO_DAY, NO_SPEAKER, OnDisk, fnv, term_hash,
};
use crabtalk_domain::ConversationKey;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// An opened segment. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    path: Arc<Path>,
    pub(super) file: Arc<File>,
    pub(super) header: Arc<Header>,
}

/// Where a document's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// Index of the entry.
    pub(crate) entry: u64,
    /// Where the passage begins in the turn's text.
    pub(crate) begin: usize,
    pub(crate) bytes: usize,
    /// Hash of the turn's text.
    pub(crate) hash: u32,
}

fn broken(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

impl Segment {
    /// Opens a segment of that conversation.
    pub(in crate::archives) fn open(path: &Path, key: &ConversationKey) -> io::Result<Self> {
        let file = crabtalk_files::open(path)?;
        let len = file.metadata()?.len();
        let footer_at = len.checked_sub(FOOTER_BYTES);
        let footer_at = footer_at.ok_or_else(|| broken("it ends too early"))?;
        let mut footer = [0; FOOTER_BYTES as usize];
        file.read_exact_at(&mut footer, footer_at)?;
        let bytes = number(&footer[..4]);
        if footer[12..] != *MAGIC || bytes > MAX_HEADER_BYTES || bytes > footer_at {
            return Err(broken("it is none, or was written by another version"));
        }
        let mut header = vec![0; bytes as usize];
        file.read_exact_at(&mut header, footer_at - bytes)?;
        if fnv(&header) != number(&footer[4..12]) {
            return Err(broken("its header is damaged"));
        }
        let header: Header = serde_json::from_slice(&header)?;
        if header.agent != key.agent.as_str() || header.sender != key.sender.as_str() {
            return Err(broken("it is of another conversation"));
        }
        if header.ends[SECTIONS - 1] != footer_at - bytes || !header.ends.is_sorted() {
            return Err(broken("its header does not fit the file"));
        }
        Ok(Self {
            path: path.into(),
            file: Arc::new(file),
            header: Arc::new(header),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::archives) fn docs(&self) -> u32 {
        self.header.docs
    }

    /// The parts of archives in it.
    pub(in crate::archives) fn sessions(&self) -> &[Session] {
        &self.header.sessions
    }

    /// The part that a document is of.
    pub(crate) fn session_of(&self, doc: DocId) -> Option<&Session> {
        let sessions = &self.header.sessions;
        let behind = sessions.partition_point(|session| session.first_doc <= doc);
        sessions.get(behind.checked_sub(1)?)
    }

    /// Where a document's text stands.
    pub(crate) fn row(&self, doc: DocId) -> io::Result<Row> {
        let mut row = [0; ROW_BYTES];
        self.read_at(Section::Rows, u64::from(doc) * ROW_BYTES as u64, &mut row)?;
        Ok(Row {
            entry: number(&row[..8]),
            begin: number(&row[8..12]) as usize,
            bytes: number(&row[12..16]) as usize,
            hash: number(&row[16..]) as u32,
        })
    }

    /// Where a section begins and ends.
    pub(super) fn range(&self, section: Section) -> (u64, u64) {
        let (ends, at) = (&self.header.ends, section as usize);
        (at.checked_sub(1).map_or(0, |before| ends[before]), ends[at])
    }

    fn read_at(&self, section: Section, at: u64, buf: &mut [u8]) -> io::Result<()> {
        let (begin, end) = self.range(section);
        let from = begin.saturating_add(at);
        if from.saturating_add(buf.len() as u64) > end {
            return Err(broken("it points out of itself"));
        }
        self.file.read_exact_at(buf, from)
    }

    pub(super) fn whole(&self, section: Section) -> io::Result<Vec<u8>> {
        let (begin, end) = self.range(section);
        let mut buf = vec![0; (end - begin) as usize];
        self.file.read_exact_at(&mut buf, begin)?;
        Ok(buf)
    }

    fn look_up(&self, term: &str) -> io::Result<Option<Term>> {
        let (hash, bits) = (term_hash(term), self.header.bucket_bits);
        if bits > u32::BITS {
            return Err(broken("its header does not fit the file"));
        }
        let mut bounds = [0; 8];
        self.read_at(Section::Buckets, bucket_of(hash, bits) * 4, &mut bounds)?;
        let (from, to) = (number(&bounds[..4]), number(&bounds[4..]));
        if from > to || to > u64::from(self.header.terms) {
            return Err(broken("its terms are damaged"));
        }
        let mut terms = vec![0; (to - from) as usize * TERM_BYTES];
        self.read_at(Section::Terms, from * TERM_BYTES as u64, &mut terms)?;
        let (terms, _) = terms.as_chunks::<TERM_BYTES>();
        let mut terms = terms.iter().map(Term::from_bytes);
        Ok(terms.find(|term| term.hash == hash))
    }

    fn postings(&self, term: &Term) -> io::Result<Vec<u32>> {
        let (begin, end) = self.range(Section::Postings);
        if u64::from(term.bytes) > end - begin {
            return Err(broken("its terms are damaged"));
        }
        let mut bytes = vec![0; term.bytes as usize];
        self.read_at(Section::Postings, term.begin, &mut bytes)?;
        decode(&bytes, term.count, self.header.docs)
    }

    fn pairs_of(&self, doc: DocId) -> io::Result<Vec<u16>> {
        let mut bounds = [0; 8];
        match (u64::from(doc) * 4).checked_sub(4) {
            Some(before) => self.read_at(Section::PairEnds, before, &mut bounds)?,
            None => self.read_at(Section::PairEnds, 0, &mut bounds[4..])?,
        }
        let (from, to) = (number(&bounds[..4]), number(&bounds[4..]));
        let count = to.checked_sub(from).filter(|n| *n <= u64::from(u16::MAX));
        let count = count.ok_or_else(|| broken("its pairs are damaged"))?;
        let mut bytes = vec![0; count as usize * 2];
        self.read_at(Section::Pairs, from * 2, &mut bytes)?;
        let (pairs, _) = bytes.as_chunks::<2>();
        Ok(pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect())
    }
}

/// Reads postings as they were written.
pub(super) fn decode(bytes: &[u8], count: u32, docs: u32) -> io::Result<Vec<u32>> {
    let damaged = || broken("its postings are damaged");
    // A posting takes a byte at least.
    if count as usize > bytes.len() || docs > u32::MAX >> COUNT_BITS {
        return Err(damaged());
    }
    let mut list = Vec::with_capacity(count as usize);
    let mut bytes = bytes.iter();
    let mut before = 0u32;
    for _ in 0..count {
        let step = take_number(&mut bytes).ok_or_else(damaged)?;
        let times = match step & 1 {
            0 => 1,
            _ => take_number(&mut bytes).ok_or_else(damaged)?,
        };
        let doc = before.saturating_add(step >> 1);
        if doc <= before || doc > docs || times == 0 {
            return Err(damaged());
        }
        list.push((doc - 1) << COUNT_BITS | times.min(MAX_COUNT));
        before = doc;
    }
    Ok(list)
}

fn take_number(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u32> {
    let mut n = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = *bytes.next()?;
        n |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(n);
        }
    }
    None
}

/// A segment that is being searched.
pub(crate) struct Searched {
    segment: Segment,
    looked_up: Vec<(String, Option<Term>)>,
}

impl From<Segment> for Searched {
    fn from(segment: Segment) -> Self {
        Self {
            segment,
            looked_up: Vec::new(),
        }
    }
}

impl OnDisk for Searched {
    type Read = Excerpt;

    fn docs(&self) -> usize {
        self.segment.header.docs as usize
    }

    fn counts(&mut self, terms: &[&str]) -> io::Result<Vec<usize>> {
        let look = |term: &&str| Ok(((*term).to_owned(), self.segment.look_up(term)?));
        self.looked_up = terms.iter().map(look).collect::<io::Result<_>>()?;
        let count = |(_, term): &(_, Option<Term>)| term.map_or(0, |term| term.count as usize);
        Ok(self.looked_up.iter().map(count).collect())
    }

    fn read(&mut self, terms: &[usize]) -> io::Result<Excerpt> {
        let segment = self.segment.clone();
        let mut lists = Vec::with_capacity(terms.len());
        for (name, term) in terms.iter().filter_map(|at| self.looked_up.get(*at)) {
            if let Some(term) = term {
                lists.push((name.clone(), segment.postings(term)?));
            }
        }
        let flags = segment.whole(Section::Flags)?;
        if flags.len() != segment.header.docs as usize {
            return Err(broken("its flags are damaged"));
        }
        let sessions = sessions_by_doc(segment.sessions(), flags.len());
        let days = segment.whole(Section::Days)?;
        let (days, _) = days.as_chunks::<8>();
        Ok(Excerpt {
            sessions,
            flags,
            days: days.iter().map(day).collect(),
            lists,
            segment,
        })
    }
}

/// The number of each document's session; empty if there is but one.
fn sessions_by_doc(sessions: &[Session], docs: usize) -> Vec<u32> {
    if sessions.len() < 2 {
        return Vec::new();
    }
    let mut by_doc = vec![0; docs];
    for (number, session) in sessions.iter().enumerate().skip(1) {
        if let Some(rest) = by_doc.get_mut(session.first_doc as usize..) {
            rest.fill(number as u32);
        }
    }
    by_doc
}

/// A document and its day, which is that of the following ones too.
pub(super) fn day(bytes: &[u8; 8]) -> (u32, i32) {
    let [doc, day] = [&bytes[..4], &bytes[4..]].map(|half| number(half) as u32);
    (doc, day as i32)
}

/// What a search reads of a segment.
pub(crate) struct Excerpt {
    segment: Segment,
    sessions: Vec<u32>,
    flags: Vec<u8>,
    days: Vec<(u32, i32)>,
    lists: Vec<(String, Vec<u32>)>,
}

impl Corpus for Excerpt {
    fn docs(&self) -> usize {
        self.flags.len()
    }

    fn sessions(&self) -> usize {
        self.segment.sessions().len().max(1)
    }

    fn conversation(&self, doc: usize) -> u32 {
        self.session(doc)
    }

    fn session(&self, doc: usize) -> u32 {
        self.sessions.get(doc).copied().unwrap_or(0)
    }

    fn flags(&self, doc: usize) -> u8 {
        self.flags[doc] & FLAG_MASK
    }

    fn speaker(&self, doc: usize) -> u16 {
        match usize::from(self.flags[doc] >> FLAG_BITS) {
            MAX_SPEAKERS => NO_SPEAKER,
            speaker => speaker as u16,
        }
    }

    fn day(&self, doc: usize) -> i32 {
        let behind = self
            .days
            .partition_point(|(first, _)| *first as usize <= doc);
        behind.checked_sub(1).map_or(NO_DAY, |at| self.days[at].1)
    }

    fn speakers(&self) -> &[String] {
        &self.segment.header.speakers
    }

    fn list(&self, term: &str) -> &[u32] {
        let list = self.lists.iter().find(|(name, _)| name == term);
        list.map_or(&[], |(_, list)| list)
    }

    fn with_pairs(&self, doc: DocId, look: &mut dyn FnMut(&[u16])) {
        // A pair is worth little: one that cannot be read is as good as none.
        if let Ok(pairs) = self.segment.pairs_of(doc) {
            look(&pairs);
        }
    }
}
