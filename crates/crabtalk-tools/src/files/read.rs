//! `read`: shows a part of a file, an image, or the names in a folder.

use super::open::{Opened, open_to_read};
use super::{Error, picture};
use crabtalk_domain::tool::ToolOutput;
use crabtalk_domain::{Image, ImageType, MAX_IMAGE_BYTES};
use rustix::fs::FileType;
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Default and maximum number of lines shown: a few screens.
const MAX_LINES: u64 = 2000;

/// Maximum bytes shown, to limit the share of the context.
const MAX_BYTES: usize = 48 << 10;

/// Maximum bytes shown of one line; minified files have lines of megabytes.
const MAX_LINE_BYTES: usize = 2000;

/// Bytes examined to distinguish text from binary data.
const SNIFF_BYTES: usize = 8 << 10;

/// Maximum names shown of a folder.
const MAX_NAMES: usize = 500;

/// Maximum names read from a folder before sorting.
const MAX_NAMES_SCANNED: usize = 100_000;

/// Maximum bytes of a file that one call reads, including skipped lines and the hidden rest of
/// long ones: a quarter of a second. A sparse file may claim terabytes, which
/// would occupy a thread for minutes.
const MAX_WALKED: u64 = 256 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadArguments {
    pub(crate) path: String,
    pub(crate) offset: Option<u64>,
    pub(crate) limit: Option<u64>,
}

/// Reads a judged path. Ends early if `cancelled` is set.
pub(crate) fn read(
    path: &Path,
    arguments: &ReadArguments,
    cancelled: &AtomicBool,
) -> Result<ToolOutput, Error> {
    let file = match open_to_read(path)? {
        Opened::Folder(folder) => return list(path, &folder).map(ToolOutput::ok),
        Opened::File(file) => file,
    };
    let failed = |e| Error::io("read", path, e);
    let size = file.metadata().map_err(failed)?.len();
    let mut input = BufReader::with_capacity(SNIFF_BYTES, file);
    if let Some(kind) = picture::sniff(input.fill_buf().map_err(failed)?) {
        if let Some(shown) = look(path, kind, size, &mut input)? {
            return Ok(shown);
        }
        input.rewind().map_err(failed)?;
    }
    show(path, size, input, arguments, cancelled).map(ToolOutput::ok)
}

/// Shows an image; `None` if the file is not an image.
fn look(
    path: &Path,
    kind: ImageType,
    size: u64,
    input: &mut BufReader<File>,
) -> Result<Option<ToolOutput>, Error> {
    let name = path.display();
    let refused = |why: String| {
        let hint = "make a smaller one with bash, for instance with `magick` or `ffmpeg`";
        Err(Error::Content(format!(
            "{name} is an image ({kind}) {why}; {hint}"
        )))
    };
    if size > MAX_IMAGE_BYTES as u64 {
        return refused(format!(
            "of {size} bytes, and {MAX_IMAGE_BYTES} can be shown"
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    let read = input
        .take(MAX_IMAGE_BYTES as u64 + 1)
        .read_to_end(&mut bytes);
    read.map_err(|e| Error::io("read", path, e))?;
    let Some((width, height)) = picture::measure(kind, &bytes) else {
        return Ok(None);
    };
    if width.max(height) > picture::MAX_SIDE {
        return refused(format!(
            "of {width} x {height} pixels, and {} a side can be shown",
            picture::MAX_SIDE
        ));
    }
    // The file may have grown.
    let image = Image::new(kind, &bytes).map_err(Error::Content)?;
    let text = format!("{name}: {}, {width} x {height} pixels", image.summary());
    Ok(Some(ToolOutput::ok(text).with_images(vec![image])))
}

fn list(path: &Path, folder: &File) -> Result<String, Error> {
    let failed = |e| Error::io("list", path, e);
    let mut names = Vec::new();
    let mut complete = true;
    for entry in rustix::fs::Dir::read_from(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy();
        if name == "." || name == ".." {
            continue;
        }
        if names.len() == MAX_NAMES_SCANNED {
            complete = false;
            break;
        }
        let kind = entry.file_type();
        let mark = if kind == FileType::Directory {
            "/"
        } else if kind == FileType::Symlink {
            "@"
        } else {
            ""
        };
        names.push(format!("{name}{mark}"));
    }
    names.sort_unstable();
    let count = names.len();
    let plus = if complete { "" } else { "+" };
    let mut shown = format!("{} is a folder with {count}{plus} entries", path.display());
    for name in names.iter().take(MAX_NAMES) {
        shown.push('\n');
        shown.push_str(name);
    }
    if count > MAX_NAMES {
        shown.push_str(&format!("\n[{} more are not shown]", count - MAX_NAMES));
    }
    Ok(shown)
}

fn show(
    path: &Path,
    size: u64,
    mut input: BufReader<File>,
    arguments: &ReadArguments,
    cancelled: &AtomicBool,
) -> Result<String, Error> {
    let failed = |e| Error::io("read", path, e);
    let start = input.fill_buf().map_err(failed)?;
    if start.is_empty() {
        return Ok(format!("[{} is empty]", path.display()));
    }
    if start.contains(&0) {
        return Err(Error::Content(format!(
            "{} is binary ({size} bytes); examine it with bash, for instance `file` or `od -c`",
            path.display()
        )));
    }
    if start.starts_with(b"\xef\xbb\xbf") {
        input.consume(3);
    }
    let first = arguments.offset.unwrap_or(1).max(1);
    let mut lines = Lines {
        input,
        cancelled,
        left: MAX_WALKED,
    };
    for skipped in 0..first - 1 {
        if !lines.skip().map_err(failed)? {
            return Err(Error::Content(format!(
                "{} has {skipped} lines; offset {first} is behind its end",
                path.display()
            )));
        }
    }
    let limit = arguments.limit.unwrap_or(MAX_LINES).clamp(1, MAX_LINES);
    let mut page = Page::default();
    let mut number = first;
    let mut ended = true;
    while let Some(line) = lines.next().map_err(failed)? {
        if number == first + limit || !page.takes(number, &line) {
            ended = false;
            break;
        }
        number += 1;
    }
    if number == first {
        return Err(Error::Content(format!(
            "{} has {} lines; offset {first} is behind its end",
            path.display(),
            first - 1
        )));
    }
    Ok(page.finish(first, number, ended))
}

/// The shown part of a file.
#[derive(Default)]
struct Page {
    text: String,
    lossy: bool,
    crlf: bool,
}

impl Page {
    /// Adds a line; returns false if the page is full.
    fn takes(&mut self, number: u64, line: &Line) -> bool {
        let mut bytes = line.shown.as_slice();
        if let Some(without) = bytes.strip_suffix(b"\r") {
            bytes = without;
            self.crlf = true;
        }
        let decoded = String::from_utf8_lossy(if line.cut > 0 {
            whole_chars(bytes)
        } else {
            bytes
        });
        if !self.text.is_empty() && self.text.len() + decoded.len() > MAX_BYTES {
            return false;
        }
        self.lossy |= matches!(decoded, std::borrow::Cow::Owned(_));
        self.text.push_str(&format!("{number:>6}\t{decoded}"));
        if line.cut > 0 {
            self.text
                .push_str(&format!(" [{} more bytes in this line]", line.cut));
        }
        self.text.push('\n');
        true
    }

    fn finish(mut self, first: u64, next: u64, ended: bool) -> String {
        if !ended {
            self.text.push_str(&format!(
                "[lines {first} to {}; the file goes on: read with offset {next}]\n",
                next - 1
            ));
        }
        if self.lossy {
            self.text
                .push_str("[not all of it is UTF-8: other bytes are shown as \u{fffd}]\n");
        }
        if self.crlf {
            self.text
                .push_str("[lines end with CRLF; `edit` keeps that]\n");
        }
        self.text
    }
}

/// Drops incomplete characters at the cut.
fn whole_chars(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => &bytes[..e.valid_up_to()],
        Ok(_) | Err(_) => bytes,
    }
}

struct Line {
    shown: Vec<u8>,
    cut: u64,
}

/// Reads lines of any file with bounded memory.
struct Lines<'a> {
    input: BufReader<File>,
    cancelled: &'a AtomicBool,
    /// The remaining number of bytes to read.
    left: u64,
}

impl Lines<'_> {
    fn next(&mut self) -> std::io::Result<Option<Line>> {
        let mut line = Line {
            shown: Vec::new(),
            cut: 0,
        };
        let found = self.walk(|part| {
            let room = (MAX_LINE_BYTES - line.shown.len()).min(part.len());
            line.shown.extend_from_slice(&part[..room]);
            line.cut += (part.len() - room) as u64;
        })?;
        Ok(found.then_some(line))
    }

    fn skip(&mut self) -> std::io::Result<bool> {
        self.walk(|_| {})
    }

    /// Passes one line without its end to `take`; `false` at the end of the file.
    fn walk(&mut self, mut take: impl FnMut(&[u8])) -> std::io::Result<bool> {
        let mut any = false;
        loop {
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(std::io::Error::other("cancelled"));
            }
            if self.left == 0 {
                return Err(std::io::Error::other(format!(
                    "more than {} MiB would have to be read; use bash, for \
                     instance with `tail -c` or `sed -n`",
                    MAX_WALKED >> 20
                )));
            }
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(any);
            }
            any = true;
            let end = buffer.iter().position(|b| *b == b'\n');
            take(&buffer[..end.unwrap_or(buffer.len())]);
            let used = end.map_or(buffer.len(), |at| at + 1);
            self.left = self.left.saturating_sub(used as u64);
            self.input.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}
