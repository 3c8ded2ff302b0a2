//! Splits text into words, and converts words to terms.

use super::fold::{Class, class, composed, push_folded};
use super::{irregular, stop};
use rust_stemmers::{Algorithm, Stemmer};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Longest indexed word: longer ones are keys, hashes and encoded files, which would only
/// fill the vocabulary.
const MAX_WORD_BYTES: usize = 64;

static ENGLISH: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));
static RUSSIAN: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::Russian));
static GREEK: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::Greek));

/// A folded word, or a pair of characters of a script without spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    /// The word in lower case, without accents and clitics.
    pub text: &'a str,
    /// Whether it is a single ideograph beside its pairs, outside the sequence of words.
    pub extra: bool,
}

/// The words of a text, in order.
pub(crate) struct Words {
    folded: String,
    spans: Vec<(u32, u32, bool)>,
}

impl Words {
    pub(crate) fn cut(text: &str) -> Self {
        let mut words = Self {
            folded: String::with_capacity(text.len()),
            spans: Vec::new(),
        };
        let text = composed(text);
        let mut run = Vec::new();
        let mut start = 0;
        for c in text.chars() {
            let kind = class(c);
            if kind != Class::Unspaced && !run.is_empty() {
                words.pairs(&run);
                run.clear();
                start = words.folded.len();
            }
            match kind {
                Class::Word => push_folded(c, &mut words.folded),
                Class::Apostrophe if words.folded.len() > start => words.folded.push('\''),
                Class::Unspaced => {
                    words.close(start);
                    run.push(c);
                    start = words.folded.len();
                }
                Class::Apostrophe | Class::Gap => {
                    words.close(start);
                    start = words.folded.len();
                }
            }
        }
        words.pairs(&run);
        if run.is_empty() {
            words.close(start);
        }
        words
    }

    /// Iterates over the words.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Word<'_>> {
        self.spans.iter().map(|&(from, to, extra)| Word {
            text: &self.folded[from as usize..to as usize],
            extra,
        })
    }

    /// Ends the word that begins at `start`, and removes clitics.
    fn close(&mut self, start: usize) {
        let mut from = start;
        for part in self.folded[start..].split('\'') {
            let here = (from, from + part.len());
            from = here.1 + 1;
            let last = from > self.folded.len();
            if part.is_empty() || (here.0 == start && !last && is_elision(part)) {
                continue;
            }
            if here.0 > start && is_clitic(part) {
                // In "don't" and "isn't", the n belongs to the clitic.
                if part == "t"
                    && let Some(span) = self.spans.last_mut()
                    && self.folded[..span.1 as usize].ends_with('n')
                    && span.1 - span.0 > 2
                {
                    span.1 -= 1;
                }
                continue;
            }
            if part.len() <= MAX_WORD_BYTES {
                self.spans.push((offset(here.0), offset(here.1), false));
            }
        }
    }

    /// Adds the pairs of a run without spaces, and its ideographs as extras, since each may
    /// be a word.
    fn pairs(&mut self, run: &[char]) {
        let mut ends = Vec::with_capacity(run.len() + 1);
        ends.push(self.folded.len());
        for c in run {
            c.to_lowercase().for_each(|c| self.folded.push(c));
            ends.push(self.folded.len());
        }
        for at in 0..run.len() {
            let (from, to) = (offset(ends[at]), offset(ends[at + 1]));
            if run.len() == 1 || is_ideograph(run[at]) {
                self.spans.push((from, to, run.len() > 1));
            }
            if at + 2 < ends.len() {
                self.spans.push((from, offset(ends[at + 2]), false));
            }
        }
    }
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

/// Texts are cut into passages far shorter than this limit.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Whether a part is an English clitic at the end of a word.
fn is_clitic(part: &str) -> bool {
    matches!(
        part,
        "s" | "t" | "re" | "ve" | "ll" | "d" | "m" | "em" | "all"
    )
}

/// Whether a part is a French or Italian clitic at the beginning of a word.
fn is_elision(part: &str) -> bool {
    matches!(
        part,
        "l" | "d" | "j" | "m" | "t" | "s" | "c" | "n" | "qu" | "un" | "dell" | "all"
    )
}

/// The term of a word; `None` for a stop word.
pub(crate) fn term_of(word: &str) -> Option<Cow<'_, str>> {
    if stop::is_stop_word(word) {
        return None;
    }
    let word = irregular::base(word).unwrap_or(word);
    let first = word.chars().next()?;
    Some(match first {
        'a'..='z' => ENGLISH.stem(word),
        '\u{0400}'..='\u{04ff}' => RUSSIAN.stem(word),
        '\u{0370}'..='\u{03ff}' => GREEK.stem(word),
        _ => Cow::Borrowed(word),
    })
}
