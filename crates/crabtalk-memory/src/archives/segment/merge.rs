//! Makes one segment of neighbours, so that a search opens few files.
//!
//! Invariant: it reads and writes in order and holds one term's postings at a
//! time, whatever the size of the segments.

use super::read::{day, decode};
use super::write::{Writer, flags_byte};
use super::*;
use crate::index::{COUNT_BITS, NO_SPEAKER};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// A section, read from its beginning.
struct Stream {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let most = buf.len().min(left);
        let n = self.file.read_at(&mut buf[..most], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

fn stream(segment: &Segment, section: Section) -> BufReader<Stream> {
    let (at, end) = segment.range(section);
    let file = Arc::clone(&segment.file);
    BufReader::new(Stream { file, at, end })
}

/// Writes the segments, which follow each other, as one.
pub(in crate::archives) fn merge(
    segments: &[Segment],
    folder: &Path,
    file: &Path,
) -> io::Result<()> {
    let mut writer = Writer::new(folder)?;
    let mut header = Header::default();
    let mut firsts = Vec::with_capacity(segments.len());
    for segment in segments {
        let own = &segment.header;
        (header.agent, header.sender) = (own.agent.clone(), own.sender.clone());
        let first = header.docs;
        for session in &own.sessions {
            // Parts of one archive become one again.
            let last = header.sessions.last();
            if last.is_none_or(|last| last.archive != session.archive) {
                header.sessions.push(Session {
                    first_doc: session.first_doc + first,
                    ..session.clone()
                });
            }
        }
        header.docs += own.docs;
        firsts.push(first);
        copy(&mut writer, stream(segment, Section::Rows))?;
    }
    writer.end(Section::Rows);
    for segment in segments {
        put_flags(&mut writer, segment, &mut header.speakers)?;
    }
    writer.end(Section::Flags);
    for (segment, first) in segments.iter().zip(&firsts) {
        let days = segment.whole(Section::Days)?;
        for (doc, day) in days.as_chunks::<8>().0.iter().map(day) {
            writer.put_day(doc + first, day)?;
        }
    }
    writer.end(Section::Days);
    let mut pairs = 0;
    for segment in segments {
        let mut ends = stream(segment, Section::PairEnds);
        let mut end = [0; 4];
        for _ in 0..segment.header.docs {
            ends.read_exact(&mut end)?;
            writer.put(&(pairs + u32::from_le_bytes(end)).to_le_bytes())?;
        }
        pairs += u32::from_le_bytes(end);
    }
    writer.end(Section::PairEnds);
    for segment in segments {
        copy(&mut writer, stream(segment, Section::Pairs))?;
    }
    writer.end(Section::Pairs);
    put_lists(&mut writer, segments, &firsts)?;
    writer.finish(header, file)
}

fn copy(writer: &mut Writer, mut from: BufReader<Stream>) -> io::Result<()> {
    let mut buf = [0; 4096];
    loop {
        match from.read(&mut buf)? {
            0 => return Ok(()),
            n => writer.put(&buf[..n])?,
        }
    }
}

/// Flags stay, speakers get their numbers in the merged list.
fn put_flags(writer: &mut Writer, segment: &Segment, speakers: &mut Vec<String>) -> io::Result<()> {
    let mut numbers = Vec::with_capacity(segment.header.speakers.len());
    for name in &segment.header.speakers {
        let known = speakers.iter().position(|known| known == name);
        let at = known.unwrap_or(speakers.len());
        if known.is_none() && at < MAX_SPEAKERS {
            speakers.push(name.clone());
        }
        numbers.push(at as u16);
    }
    for byte in segment.whole(Section::Flags)? {
        let speaker = numbers.get(usize::from(byte >> FLAG_BITS)).copied();
        writer.put(&[flags_byte(byte & FLAG_MASK, speaker.unwrap_or(NO_SPEAKER))])?;
    }
    Ok(())
}

/// One segment's terms, in order, with their postings.
struct Lists {
    terms: BufReader<Stream>,
    postings: BufReader<Stream>,
    bytes: u64,
    left: u32,
    docs: u32,
    first: u32,
    next: Option<Term>,
}

impl Lists {
    fn advance(&mut self) -> io::Result<()> {
        self.next = None;
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            let mut bytes = [0; TERM_BYTES];
            self.terms.read_exact(&mut bytes)?;
            self.next = Some(Term::from_bytes(&bytes));
        }
        Ok(())
    }

    /// Adds the postings of a term that is next.
    fn take(&mut self, term: Term, out: &mut Vec<u32>) -> io::Result<()> {
        if u64::from(term.bytes) > self.bytes {
            return Err(io::Error::from(ErrorKind::InvalidData));
        }
        let mut bytes = vec![0; term.bytes as usize];
        self.postings.read_exact(&mut bytes)?;
        let list = decode(&bytes, term.count, self.docs)?;
        out.extend(list.into_iter().map(|p| p + (self.first << COUNT_BITS)));
        self.advance()
    }
}

fn put_lists(writer: &mut Writer, segments: &[Segment], firsts: &[u32]) -> io::Result<()> {
    let mut all = Vec::with_capacity(segments.len());
    for (segment, first) in segments.iter().zip(firsts) {
        let (begin, end) = segment.range(Section::Postings);
        let mut lists = Lists {
            terms: stream(segment, Section::Terms),
            postings: stream(segment, Section::Postings),
            bytes: end - begin,
            left: segment.header.terms,
            docs: segment.header.docs,
            first: *first,
            next: None,
        };
        lists.advance()?;
        all.push(lists);
    }
    let next = |all: &[Lists]| all.iter().filter_map(|l| l.next).map(|t| t.hash).min();
    let mut merged = Vec::new();
    while let Some(hash) = next(&all) {
        merged.clear();
        for lists in &mut all {
            if let Some(term) = lists.next.filter(|term| term.hash == hash) {
                lists.take(term, &mut merged)?;
            }
        }
        writer.put_list(hash, merged.iter().copied())?;
    }
    Ok(())
}
