//! Reads a log from its end, block by block, so that lines before the last marker are not
//! read.

use crate::fs::{LogFile, read_exact};
use crate::line::{Head, parse_head};
use memchr::{memchr, memchr2, memrchr, memrchr2};
use std::io;

/// Size of the first block: a short conversation fits, and listing ten thousand files is
/// fast.
const FIRST_BLOCK: u64 = 8 * 1024;

/// Largest block: few reads for a long tail, and little memory.
const MAX_BLOCK: u64 = 256 * 1024;

/// Separators of lines: the newline, and the zero bytes that a disk returns for lost
/// content. No line contains zero bytes, so that other lines stay readable.
const END: u8 = b'\n';
const LOST: u8 = 0;

/// Largest block of a line with images, which is itself longer than [`MAX_BLOCK`].
const LONG_BLOCK: u64 = 8 << 20;

/// Block size for line 1, in which a sender of 4 KiB, escaped, needs only a few.
const HEAD_BLOCK: usize = 1024;

/// Longest line 1. A file with a longer one is not a log, and need not be read
/// completely.
const MAX_HEAD: usize = 256 * 1024;

/// Result of reading the beginning of a file.
pub(crate) enum HeadRead {
    /// Line 1 and the offset after it. `terminated` unless its newline is missing.
    Good {
        head: Head,
        end: u64,
        terminated: bool,
    },
    /// The creation was interrupted: the file ends within line 1.
    Torn,
    /// Line 1 is not valid; holds the fault.
    Broken(String),
}

/// Reads line 1.
pub(crate) fn read_head(file: &dyn LogFile) -> io::Result<HeadRead> {
    let mut bytes = Vec::new();
    loop {
        let from = bytes.len();
        bytes.resize(from + HEAD_BLOCK, 0);
        let n = match file.read_at(&mut bytes[from..], from as u64) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                bytes.truncate(from);
                continue;
            }
            result => result?,
        };
        bytes.truncate(from + n);
        if let Some(at) = memchr(b'\n', &bytes[from..]) {
            let line = &bytes[..from + at];
            return Ok(match parse_head(line) {
                Ok(head) => HeadRead::Good {
                    head,
                    end: line.len() as u64 + 1,
                    terminated: true,
                },
                Err(reason) => HeadRead::Broken(reason),
            });
        }
        if n == 0 {
            return Ok(match parse_head(&bytes) {
                Ok(head) => HeadRead::Good {
                    head,
                    end: bytes.len() as u64,
                    terminated: false,
                },
                Err(_) => HeadRead::Torn,
            });
        }
        if bytes.len() > MAX_HEAD {
            return Ok(HeadRead::Broken(
                "line 1 is too long for the metadata of a log".into(),
            ));
        }
    }
}

/// Reads the lines of a part of a file, last one first.
pub(crate) struct Backward<'a> {
    file: &'a dyn LogFile,
    floor: u64,
    /// Offset of `buf[0]`.
    start: u64,
    buf: Vec<u8>,
    /// End of the bytes not returned yet.
    cut: usize,
    block: u64,
}

impl<'a> Backward<'a> {
    /// The lines in `floor..end`, both of which are beginnings of lines or the end of the
    /// file.
    pub(crate) fn new(file: &'a dyn LogFile, floor: u64, end: u64) -> Self {
        let start = end.max(floor);
        Self {
            file,
            floor,
            start,
            buf: Vec::new(),
            cut: 0,
            block: FIRST_BLOCK,
        }
    }

    /// The line before the last returned one: its offset and its bytes, without the newline.
    pub(crate) fn prev(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        loop {
            if self.cut == 0 {
                if self.start == self.floor {
                    return Ok(None);
                }
                self.fill()?;
            }
            let unread = &self.buf[..self.cut];
            let ended = matches!(unread.last(), Some(&(END | LOST)));
            let body = self.cut - usize::from(ended);
            let from = match memrchr2(END, LOST, &unread[..body]) {
                Some(at) => at + 1,
                None if self.start == self.floor => 0,
                None => {
                    self.fill()?;
                    continue;
                }
            };
            self.cut = from;
            return Ok(Some((self.start + from as u64, &self.buf[from..body])));
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let n = self.block.min(self.start - self.floor);
        let len = usize::try_from(n).expect("a block fits memory");
        let mut buf = vec![0; len + self.cut];
        read_exact(self.file, &mut buf[..len], self.start - n)?;
        buf[len..].copy_from_slice(&self.buf[..self.cut]);
        self.buf = buf;
        self.start -= n;
        self.cut += len;
        let doubled = (self.block * 2).min(MAX_BLOCK);
        self.block = doubled.max((self.cut as u64).min(LONG_BLOCK));
        Ok(())
    }
}

/// The line that begins at an offset, without its newline. `None` if no line can begin
/// there.
pub(crate) fn line_at(file: &dyn LogFile, offset: u64, end: u64) -> io::Result<Option<Vec<u8>>> {
    if offset == 0 || offset >= end {
        return Ok(None);
    }
    let mut before = [0];
    read_exact(file, &mut before, offset - 1)?;
    if !matches!(before, [END | LOST]) {
        return Ok(None);
    }
    let (mut line, mut at, mut block) = (Vec::new(), offset, FIRST_BLOCK);
    while at < end {
        let n = usize::try_from(block.min(end - at)).expect("a block fits memory");
        let from = line.len();
        line.resize(from + n, 0);
        read_exact(file, &mut line[from..], at)?;
        if let Some(newline) = memchr2(END, LOST, &line[from..]) {
            line.truncate(from + newline);
            return Ok(Some(line));
        }
        at += n as u64;
        block = (block * 2).min(MAX_BLOCK);
    }
    Ok(Some(line))
}

/// The complete lines from the start of a line: about `most` bytes, more if a line is
/// longer. `None` if the rest contains no complete line.
pub(crate) fn whole_lines(
    file: &dyn LogFile,
    from: u64,
    end: u64,
    most: u64,
) -> io::Result<Vec<u8>> {
    let mut size = most.max(FIRST_BLOCK);
    loop {
        let n = usize::try_from(size.min(end.saturating_sub(from))).expect("a block fits memory");
        let mut block = vec![0; n];
        read_exact(file, &mut block, from)?;
        if let Some(at) = memrchr(END, &block) {
            block.truncate(at + 1);
            return Ok(block);
        }
        if from + n as u64 >= end {
            return Ok(Vec::new());
        }
        size *= 2;
    }
}

/// The end of a file without trailing zero bytes, which the disk never received.
pub(crate) fn written(file: &dyn LogFile, floor: u64, len: u64) -> io::Result<u64> {
    let (mut end, mut block) = (len, 1);
    while end > floor {
        let n = usize::try_from((end - floor).min(block)).expect("a block fits memory");
        let mut bytes = vec![0; n];
        read_exact(file, &mut bytes, end - n as u64)?;
        if let Some(last) = bytes.iter().rposition(|byte| *byte != LOST) {
            return Ok(end - (n - last - 1) as u64);
        }
        end -= n as u64;
        block = MAX_BLOCK;
    }
    Ok(end)
}
