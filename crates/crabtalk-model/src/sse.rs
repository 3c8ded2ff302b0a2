//! Splits a byte stream into server-sent events.
//! Invariants: the result does not depend on the network's splits; every byte is scanned once; no event exceeds
//! [`MAX_EVENT_BYTES`].

use memchr::memchr2;

/// Longest event. A whole file in one argument fragment fits.
pub(crate) const MAX_EVENT_BYTES: usize = 4 << 20;

/// Capacity kept for the next event after a large one.
const KEEP_BYTES: usize = 16 << 10;

/// An event longer than [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// An event, borrowed from the decoder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// Its type, empty where none was given.
    pub(crate) name: &'a [u8],
    /// Its data lines, joined by line feeds.
    pub(crate) data: &'a [u8],
}

/// The data of the open event.
#[derive(Clone, Copy)]
enum Data {
    None,
    /// One line, still in the buffer.
    Line(usize, usize),
    /// In `joined`.
    Joined,
}

/// The decoder. Feed it with `push`, then call `next` until `None`.
pub(crate) struct Decoder {
    buf: Vec<u8>,
    /// The beginning of the unfinished line.
    line: usize,
    /// The end of the searched part.
    searched: usize,
    data: Data,
    joined: Vec<u8>,
    name: Vec<u8>,
    /// The last line ended in CR, so that an LF belongs to it.
    skip_lf: bool,
    /// No line was seen yet, so that a byte order mark may follow.
    first_line: bool,
    /// The open event was returned.
    handed_out: bool,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self {
            buf: Vec::new(),
            line: 0,
            searched: 0,
            data: Data::None,
            joined: Vec::new(),
            name: Vec::new(),
            skip_lf: false,
            first_line: true,
            handed_out: false,
        }
    }

    /// Appends received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.forget_handed_out();
        if let Data::Line(from, to) = self.data {
            self.joined.extend_from_slice(&self.buf[from..to]);
            self.data = Data::Joined;
        }
        if self.line == self.buf.len() {
            self.buf.clear();
            self.buf.shrink_to(KEEP_BYTES);
        } else if self.line > 0 {
            self.buf.drain(..self.line);
        }
        self.searched -= self.line;
        self.line = 0;
        self.buf.extend_from_slice(bytes);
    }

    /// Ends the stream: a last event may lack its empty line.
    pub(crate) fn finish(&mut self) {
        self.push(b"\n\n");
    }

    /// The next whole event.
    pub(crate) fn next(&mut self) -> Result<Option<Event<'_>>, TooLong> {
        self.forget_handed_out();
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
                return Ok(Some(self.hand_out()));
            }
        }
    }

    /// Reads a line; true when it completes an event.
    fn take_line(&mut self, mut from: usize, to: usize) -> bool {
        if std::mem::take(&mut self.first_line) && self.buf[from..to].starts_with(b"\xef\xbb\xbf") {
            from += 3;
        }
        if from == to {
            if matches!(self.data, Data::None) {
                self.name.clear();
                return false;
            }
            return true;
        }
        let line = &self.buf[from..to];
        if let Some(rest) = line.strip_prefix(b"data") {
            match rest {
                [] => self.add_data(to, to),
                [b':', b' ', ..] => self.add_data(from + 6, to),
                [b':', ..] => self.add_data(from + 5, to),
                _ => {}
            }
        } else if let Some(value) = line.strip_prefix(b"event:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            self.name.clear();
            self.name.extend_from_slice(value);
        }
        false
    }

    fn add_data(&mut self, from: usize, to: usize) {
        match self.data {
            Data::None => {
                self.data = Data::Line(from, to);
                return;
            }
            Data::Line(first, end) => self.joined.extend_from_slice(&self.buf[first..end]),
            Data::Joined => {}
        }
        self.joined.push(b'\n');
        self.joined.extend_from_slice(&self.buf[from..to]);
        self.data = Data::Joined;
    }

    fn hand_out(&mut self) -> Event<'_> {
        self.handed_out = true;
        let data = match self.data {
            Data::None => &[],
            Data::Line(from, to) => &self.buf[from..to],
            Data::Joined => &self.joined,
        };
        Event {
            name: &self.name,
            data,
        }
    }

    fn forget_handed_out(&mut self) {
        if std::mem::take(&mut self.handed_out) {
            self.data = Data::None;
            self.name.clear();
            self.joined.clear();
            self.joined.shrink_to(KEEP_BYTES);
        }
    }

    fn check_size(&self) -> Result<(), TooLong> {
        let line = self.buf.len() - self.line;
        let held = match self.data {
            Data::None => 0,
            Data::Line(from, to) => to - from,
            Data::Joined => self.joined.len(),
        };
        if line.max(held).max(self.name.len()) > MAX_EVENT_BYTES {
            Err(TooLong)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
