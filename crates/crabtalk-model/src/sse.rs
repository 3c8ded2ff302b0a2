//! Splits a byte stream into server-sent events.
//! Invariants: the result does not depend on the network's splits; every byte is scanned once; no event exceeds
//! [`MAX_EVENT_BYTES`].

use memchr::{memchr, memchr2};

/// Longest event. A whole file in one argument fragment fits.
pub(crate) const MAX_EVENT_BYTES: usize = 4 << 20;

/// An event longer than [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// An event.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// The event type; empty if none is given.
    pub(crate) name: Vec<u8>,
    /// Its data lines, joined by line feeds.
    pub(crate) data: Vec<u8>,
}

/// The decoder. Call `push`, then `next` until it returns `None`.
#[derive(Default)]
pub(crate) struct Decoder {
    buf: Vec<u8>,
    /// The beginning of the unfinished line.
    line: usize,
    /// The end of the searched part.
    searched: usize,
    /// The unfinished event.
    open: Event,
    has_data: bool,
    /// Whether the last line ended in CR; a following LF belongs to it.
    skip_lf: bool,
    /// Whether a line was read; a byte order mark may precede the first one.
    has_line: bool,
}

impl Decoder {
    /// Appends received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buf.drain(..self.line);
        self.searched -= self.line;
        self.line = 0;
        self.buf.extend_from_slice(bytes);
    }

    /// Ends the stream: the last event may lack its empty line.
    pub(crate) fn finish(&mut self) {
        self.push(b"\n\n");
    }

    /// The next complete event.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, TooLong> {
        loop {
            if self.skip_lf && self.line < self.buf.len() {
                self.skip_lf = false;
                if self.buf[self.line] == b'\n' {
                    self.line += 1;
                    self.searched = self.line;
                }
            }
            let Some(found) = memchr2(b'\n', b'\r', &self.buf[self.searched..]) else {
                self.searched = self.buf.len();
                return self.check_size().map(|()| None);
            };
            let (from, to) = (self.line, self.searched + found);
            self.skip_lf = self.buf[to] == b'\r';
            self.line = to + 1;
            self.searched = self.line;
            if self.take_line(from, to) {
                self.check_size()?;
                return Ok(Some(std::mem::take(&mut self.open)));
            }
        }
    }

    /// Reads a line; true when it completes an event.
    fn take_line(&mut self, from: usize, to: usize) -> bool {
        let mut line = &self.buf[from..to];
        if !std::mem::replace(&mut self.has_line, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            if !self.has_data {
                self.open.name.clear();
            }
            return std::mem::take(&mut self.has_data);
        }
        let (field, value) = match memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.open.data.push(b'\n');
                }
                self.open.data.extend_from_slice(value);
            }
            b"event" => value.clone_into(&mut self.open.name),
            _ => {}
        }
        false
    }

    fn check_size(&self) -> Result<(), TooLong> {
        let line = self.buf.len() - self.line;
        let longest = line.max(self.open.data.len()).max(self.open.name.len());
        if longest > MAX_EVENT_BYTES {
            Err(TooLong)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
