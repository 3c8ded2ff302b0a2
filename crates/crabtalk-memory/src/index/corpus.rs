//! What can be searched: an index in memory, or what was read of one on disk.

use super::{DocId, Index};
use std::io;

/// Documents with their postings.
pub(crate) trait Corpus {
    /// How many there are, removed ones included.
    fn docs(&self) -> usize;
    fn sessions(&self) -> usize;
    /// The number of a document's conversation: neighbours share it.
    fn conversation(&self, doc: usize) -> u32;
    /// The number of its session.
    fn session(&self, doc: usize) -> u32;
    /// `QUESTION`, `TIME` and `DEAD`.
    fn flags(&self, doc: usize) -> u8;
    /// The number of its speaker, or `NO_SPEAKER`.
    fn speaker(&self, doc: usize) -> u16;
    /// Its day, or `NO_DAY`.
    fn day(&self, doc: usize) -> i32;
    /// Names of speakers by their numbers.
    fn speakers(&self) -> &[String];
    /// The postings of a term: document and count, growing.
    fn list(&self, term: &str) -> &[u32];
    /// Hashes of a document's adjacent terms, for a look at a time.
    fn with_pairs(&self, doc: DocId, look: &mut dyn FnMut(&[u16]));
}

/// An index on disk, of which a search reads what it needs.
pub(crate) trait OnDisk {
    type Read: Corpus;
    /// How many documents it has.
    fn docs(&self) -> usize;
    /// In how many documents each term stands.
    fn counts(&mut self, terms: &[&str]) -> io::Result<Vec<usize>>;
    /// Reads the postings of those terms, numbered as `counts` was given them.
    fn read(&mut self, terms: &[usize]) -> io::Result<Self::Read>;
}

impl Corpus for Index {
    fn docs(&self) -> usize {
        self.rows.len()
    }

    fn sessions(&self) -> usize {
        self.sessions as usize
    }

    fn conversation(&self, doc: usize) -> u32 {
        self.rows[doc].conversation
    }

    fn session(&self, doc: usize) -> u32 {
        self.rows[doc].session
    }

    fn flags(&self, doc: usize) -> u8 {
        self.rows[doc].flags
    }

    fn speaker(&self, doc: usize) -> u16 {
        self.rows[doc].speaker
    }

    fn day(&self, doc: usize) -> i32 {
        self.rows[doc].day
    }

    fn speakers(&self) -> &[String] {
        &self.speakers
    }

    fn list(&self, term: &str) -> &[u32] {
        Index::list(self, term)
    }

    fn with_pairs(&self, doc: DocId, look: &mut dyn FnMut(&[u16])) {
        look(self.pairs_of(doc));
    }
}
