//! An index of archived turns as a file, of which a search reads what it needs.
//!
//! Invariants: a file is written whole and never changed. It holds nothing that
//! was said: terms stand there as hashes, beside them titles of archives and
//! names of speakers. What a damaged file says is an error or not found, never
//! more than is there.

mod merge;
mod read;
mod write;

pub(crate) use read::{Searched, Segment};
pub(crate) use write::text_hash;

pub(super) use merge::merge;
pub(super) use write::{Draft, Part};

use serde::{Deserialize, Serialize};

/// Last bytes of a file. A change of the format changes them, and what was
/// written before is made anew.
const MAGIC: &[u8; 8] = b"CRABIDX1";

/// Behind the header: its length, its hash, `MAGIC`.
const FOOTER_BYTES: u64 = 4 + 8 + 8;

/// Largest header; names of archives are its largest part.
const MAX_HEADER_BYTES: u64 = 4 * 1024 * 1024;

/// Bytes of a row: the entry's index, where the passage begins and how long
/// it is, the hash of the turn's text.
const ROW_BYTES: usize = 8 + 4 + 4 + 4;

/// Bytes of a term: hash, where its postings begin, their bytes, their number.
const TERM_BYTES: usize = 8 + 8 + 4 + 4;

/// Terms that are looked through for one, about; the table of where to look
/// stays small, and a look reads less than a page.
const TERMS_PER_BUCKET: u32 = 32;

/// Bits of a document's byte that are its flags; the others are its speaker.
const FLAG_BITS: u32 = 2;
const FLAG_MASK: u8 = (1 << FLAG_BITS) - 1;

/// Speakers that are told apart; the number stands for nobody.
const MAX_SPEAKERS: usize = (1 << (8 - FLAG_BITS)) - 1;

/// What a segment says of itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Header {
    agent: String,
    sender: String,
    docs: u32,
    terms: u32,
    /// Bits of a term's hash that choose its bucket.
    bucket_bits: u32,
    speakers: Vec<String>,
    sessions: Vec<Session>,
    /// Where sections end, in the order of `Section`.
    ends: [u64; SECTIONS],
}

/// A part of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) first_doc: u32,
    pub(crate) archive: u32,
    pub(crate) title: String,
    pub(crate) archived_at: String,
    pub(crate) messages: u64,
}

/// In the order of the file; each begins where the one before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Where to read a document's text: `ROW_BYTES` each.
    Rows,
    /// Flags and speaker: a byte each.
    Flags,
    /// First document and day, wherever the day changes: 8 bytes each.
    Days,
    /// Where a document's pairs end: 4 bytes each.
    PairEnds,
    /// Hashes of adjacent terms: 2 bytes each.
    Pairs,
    /// Postings, term after term.
    Postings,
    /// Terms by their hashes: `TERM_BYTES` each.
    Terms,
    /// Terms before each bucket, and of all: 4 bytes each.
    Buckets,
}

const SECTIONS: usize = Section::Buckets as usize + 1;

/// A term as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Term {
    hash: u64,
    /// From the beginning of the postings.
    begin: u64,
    bytes: u32,
    count: u32,
}

impl Term {
    fn to_bytes(self) -> [u8; TERM_BYTES] {
        let mut out = [0; TERM_BYTES];
        out[..8].copy_from_slice(&self.hash.to_le_bytes());
        out[8..16].copy_from_slice(&self.begin.to_le_bytes());
        out[16..20].copy_from_slice(&self.bytes.to_le_bytes());
        out[20..].copy_from_slice(&self.count.to_le_bytes());
        out
    }

    fn from_bytes(bytes: &[u8; TERM_BYTES]) -> Self {
        Self {
            hash: number(&bytes[..8]),
            begin: number(&bytes[8..16]),
            bytes: number(&bytes[16..20]) as u32,
            count: number(&bytes[20..]) as u32,
        }
    }
}

/// A number of at most eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// How many bits choose a bucket among so many terms.
fn bucket_bits(terms: u32) -> u32 {
    (terms / TERMS_PER_BUCKET + 1).ilog2()
}

fn bucket_of(hash: u64, bits: u32) -> u64 {
    hash.checked_shr(u64::BITS - bits).unwrap_or(0)
}

#[cfg(test)]
mod tests;
