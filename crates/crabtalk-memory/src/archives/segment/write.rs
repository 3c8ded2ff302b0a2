//! Writes segments.

use super::*;
use crate::archives::span::Named;
use crate::archives::turn::Turn;
use crate::index::{COUNT_BITS, Corpus, Document, Index, MAX_COUNT, NO_SPEAKER, fnv};
use crate::text::passages;
use crabtalk_domain::ConversationKey;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Whom a sender is called where nobody chose a name.
const NAMELESS: &str = "user";

/// What a segment is written for.
pub(in crate::archives) struct Part<'a> {
    pub(in crate::archives) key: &'a ConversationKey,
    pub(in crate::archives) named: Named,
    pub(in crate::archives) session: Session,
}

/// Turns on their way into a segment.
pub(in crate::archives) struct Draft {
    index: Index,
    rows: Vec<[u8; ROW_BYTES]>,
}

impl Draft {
    /// Indexes turns, each with the index of its entry, in their order.
    pub(in crate::archives) fn of(turns: impl IntoIterator<Item = (u64, Turn)>) -> Self {
        let mut draft = Self {
            index: Index::new(),
            rows: Vec::new(),
        };
        for (entry, turn) in turns {
            draft.add(entry, &turn);
        }
        draft
    }

    fn add(&mut self, entry: u64, turn: &Turn) {
        let hash = text_hash(&turn.text).to_le_bytes();
        let speaker = match turn.speaker.as_str() {
            NAMELESS => "",
            name => name,
        };
        for passage in passages(&turn.text) {
            let document = Document {
                speaker,
                day: turn.day(),
                text: &turn.text[passage.clone()],
                ..Document::default()
            };
            if self.index.append(&document).is_none() {
                return;
            }
            // A log's line is far below 4 GiB.
            let [begin, bytes] = [passage.start, passage.len()].map(|n| (n as u32).to_le_bytes());
            let mut row = [0; ROW_BYTES];
            row[..8].copy_from_slice(&entry.to_le_bytes());
            row[8..12].copy_from_slice(&begin);
            row[12..16].copy_from_slice(&bytes);
            row[16..].copy_from_slice(&hash);
            self.rows.push(row);
        }
    }

    /// Writes the segment into its folder.
    pub(in crate::archives) fn write(self, folder: &Path, part: &Part<'_>) -> io::Result<()> {
        let Self { index, rows } = self;
        let docs = rows.len();
        let mut writer = Writer::new(folder)?;
        for row in &rows {
            writer.put(row)?;
        }
        writer.end(Section::Rows);
        for doc in 0..docs {
            writer.put(&[flags_byte(index.flags(doc), index.speaker(doc))])?;
        }
        writer.end(Section::Flags);
        let mut last = None;
        for doc in 0..docs {
            let day = index.day(doc);
            if last.replace(day) != Some(day) {
                writer.put_day(doc as u32, day)?;
            }
        }
        writer.end(Section::Days);
        let mut pairs: u32 = 0;
        for doc in 0..docs {
            pairs += index.pairs_of(doc as u32).len() as u32;
            writer.put(&pairs.to_le_bytes())?;
        }
        writer.end(Section::PairEnds);
        for pair in (0..docs).flat_map(|doc| index.pairs_of(doc as u32)) {
            writer.put(&pair.to_le_bytes())?;
        }
        writer.end(Section::Pairs);
        let mut lists: Vec<(u64, &[u32])> = index.lists().collect();
        lists.sort_unstable_by_key(|(hash, _)| *hash);
        for (hash, list) in lists {
            writer.put_list(hash, list.iter().copied())?;
        }
        let header = Header {
            agent: part.key.agent.to_string(),
            sender: part.key.sender.to_string(),
            docs: docs as u32,
            speakers: index
                .speakers()
                .iter()
                .take(MAX_SPEAKERS)
                .cloned()
                .collect(),
            sessions: vec![part.session.clone()],
            ..Header::default()
        };
        writer.finish(header, &folder.join(part.named.file()))
    }
}

/// Tells whether a turn's text still is what was indexed.
pub(crate) fn text_hash(text: &str) -> u32 {
    let hash = fnv(text.as_bytes());
    (hash ^ hash >> 32) as u32
}

pub(super) fn flags_byte(flags: u8, speaker: u16) -> u8 {
    let speaker = match speaker {
        NO_SPEAKER => MAX_SPEAKERS,
        speaker => usize::from(speaker).min(MAX_SPEAKERS),
    };
    (speaker as u8) << FLAG_BITS | flags & FLAG_MASK
}

/// Puts a file together, section after section.
pub(super) struct Writer {
    out: BufWriter<NamedTempFile>,
    at: u64,
    ends: [u64; SECTIONS],
    /// Terms wait in a file of their own until the postings are complete.
    terms: BufWriter<File>,
    count: u32,
    postings: u64,
    buf: Vec<u8>,
}

impl Writer {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        crabtalk_files::create_folder(folder)?;
        Ok(Self {
            out: BufWriter::new(crabtalk_files::unfinished(folder)?),
            at: 0,
            ends: [0; SECTIONS],
            terms: BufWriter::new(tempfile::tempfile_in(folder)?),
            count: 0,
            postings: 0,
            buf: Vec::new(),
        })
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    pub(super) fn put_day(&mut self, doc: u32, day: i32) -> io::Result<()> {
        self.put(&doc.to_le_bytes())?;
        self.put(&day.to_le_bytes())
    }

    pub(super) fn end(&mut self, section: Section) {
        self.ends[section as usize] = self.at;
    }

    /// Adds a term and its postings. Terms come in the order of their hashes.
    pub(super) fn put_list(
        &mut self,
        hash: u64,
        list: impl Iterator<Item = u32>,
    ) -> io::Result<()> {
        let mut buf = std::mem::take(&mut self.buf);
        buf.clear();
        // Documents count from 1 here, so that each is above the one before.
        let (mut before, mut count) = (0, 0);
        for posting in list {
            let (doc, times) = ((posting >> COUNT_BITS) + 1, posting & MAX_COUNT);
            let more = u32::from(times > 1);
            put_number(&mut buf, (doc - before) << 1 | more);
            if more == 1 {
                put_number(&mut buf, times);
            }
            before = doc;
            count += 1;
        }
        if count > 0 {
            let term = Term {
                hash,
                begin: self.postings,
                bytes: buf.len() as u32,
                count,
            };
            self.terms.write_all(&term.to_bytes())?;
            self.postings += buf.len() as u64;
            self.count += 1;
            self.put(&buf)?;
        }
        self.buf = buf;
        Ok(())
    }

    /// Adds what leads to the terms, and gives the file its name.
    pub(super) fn finish(mut self, header: Header, file: &Path) -> io::Result<()> {
        self.end(Section::Postings);
        let bits = bucket_bits(self.count);
        let mut buckets = vec![0u32; (1 << bits) + 1];
        let mut terms = self.terms.into_inner().map_err(|e| e.into_error())?;
        terms.rewind()?;
        let mut terms = BufReader::new(terms);
        let mut bytes = [0; TERM_BYTES];
        for _ in 0..self.count {
            terms.read_exact(&mut bytes)?;
            self.out.write_all(&bytes)?;
            buckets[bucket_of(Term::from_bytes(&bytes).hash, bits) as usize + 1] += 1;
        }
        self.at += u64::from(self.count) * TERM_BYTES as u64;
        self.ends[Section::Terms as usize] = self.at;
        let mut before = 0;
        for bucket in &buckets {
            before += bucket;
            self.out.write_all(&before.to_le_bytes())?;
        }
        self.at += buckets.len() as u64 * 4;
        self.ends[Section::Buckets as usize] = self.at;
        let header = Header {
            terms: self.count,
            bucket_bits: bits,
            ends: self.ends,
            ..header
        };
        let header = serde_json::to_vec(&header).map_err(io::Error::other)?;
        self.out.write_all(&header)?;
        self.out.write_all(&(header.len() as u32).to_le_bytes())?;
        self.out.write_all(&fnv(&header).to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        let out = self.out.into_inner().map_err(|e| e.into_error())?;
        // Else a power cut may leave a hole where postings were.
        out.as_file().sync_data()?;
        out.persist(file).map_err(|e| e.error)?;
        Ok(())
    }
}

/// Seven bits a byte, the lowest first, the highest bit set but in the last.
fn put_number(out: &mut Vec<u8>, mut n: u32) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}
