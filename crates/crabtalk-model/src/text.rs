//! Writes texts into JSON many bytes at a time.
//! Invariant: a text is written as serde_json writes a string.
//!
//! serde_json looks for what must be escaped byte by byte, and the texts of a long
//! history are nearly all of its request: of 10,000 messages of prose that takes 38
//! million instructions, and 16 million here; of code, in which every tenth byte is
//! escaped, 61 and 52 million.

use serde::{Serialize, Serializer};
use serde_json::ser::{CharEscape, Formatter};
use std::borrow::Cow;
use std::io;

/// A text that may be long. Only [`json`] writes it as a string.
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'a, T: Into<Cow<'a, str>>> From<T> for Text<'a> {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0.as_bytes())
    }
}

/// JSON of plain data with texts in it, for which there is room for `about` so many bytes
/// from the start.
pub(crate) fn json(data: &impl Serialize, about: usize) -> Vec<u8> {
    let mut json = Vec::with_capacity(about);
    let mut serializer = serde_json::Serializer::with_formatter(&mut json, Texts);
    let written = data.serialize(&mut serializer);
    written.expect("plain data always serializes");
    json
}

/// Writes bytes, which only a [`Text`] gives, as a string.
struct Texts;

impl Formatter for Texts {
    fn write_byte_array<W: ?Sized + io::Write>(
        &mut self,
        json: &mut W,
        mut text: &[u8],
    ) -> io::Result<()> {
        json.write_all(b"\"")?;
        loop {
            let (plain, rest) = text.split_at(plain(text));
            json.write_all(plain)?;
            let Some((byte, rest)) = rest.split_first() else {
                return json.write_all(b"\"");
            };
            self.write_char_escape(json, escape(*byte))?;
            text = rest;
        }
    }
}

/// How many bytes stand in a string as they are until one does not.
fn plain(text: &[u8]) -> usize {
    let first = |escaped: u64| escaped.trailing_zeros() as usize / 8;
    let (words, rest) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let escaped = escaped(*word);
        if escaped != 0 {
            return 8 * at + first(escaped);
        }
    }
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    8 * words.len() + first(escaped(last)).min(rest.len())
}

/// Marks the bytes that must be escaped: control characters, quotes and
/// backslashes. The first mark is right; those behind it may not be.
fn escaped(bytes: [u8; 8]) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    let word = u64::from_le_bytes(bytes);
    // A byte below the limit borrows from its highest bit, and from those behind it.
    let below = |word: u64, limit: u8| word.wrapping_sub(EACH * u64::from(limit)) & !word;
    let is = |byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    (below(word, b' ') | is(b'"') | is(b'\\')) & (EACH << 7)
}

fn escape(byte: u8) -> CharEscape {
    match byte {
        b'"' => CharEscape::Quote,
        b'\\' => CharEscape::ReverseSolidus,
        b'\n' => CharEscape::LineFeed,
        b'\r' => CharEscape::CarriageReturn,
        b'\t' => CharEscape::Tab,
        0x08 => CharEscape::Backspace,
        0x0c => CharEscape::FormFeed,
        control => CharEscape::AsciiControl(control),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(text: &str) {
        let plain = serde_json::to_vec(&[text]).unwrap();
        assert_eq!(json(&[Text::from(text)], 0), plain, "{text:?}");
    }

    #[test]
    fn whatever_is_escaped_is_escaped_wherever_it_stands() {
        for at in 0..20 {
            for c in ('\0'..='\u{100}').chain(['\u{2028}', '\u{1f980}']) {
                holds(&format!("{}{c}{}", "x".repeat(at), "y".repeat(20)));
            }
        }
    }

    proptest! {
        #[test]
        fn a_text_is_written_as_a_string_is(text in any::<String>()) {
            holds(&text);
        }
    }
}
