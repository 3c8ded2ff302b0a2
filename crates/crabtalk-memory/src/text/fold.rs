//! Folds characters to the form in which they are compared.

use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Character class of the tokeniser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Part of a word.
    Word,
    /// A character of a script without spaces, indexed in pairs.
    Unspaced,
    /// An apostrophe, which joins or ends a word.
    Apostrophe,
    /// A separator of words.
    Gap,
}

/// Composes decomposed characters, so that equal texts have equal bytes.
pub(super) fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfkc().collect())
    }
}

pub(super) fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => Class::Word,
        '\'' | '\u{2019}' | '\u{2bc}' => Class::Apostrophe,
        _ if c.is_ascii() => Class::Gap,
        _ if is_unspaced(c) => Class::Unspaced,
        _ if c.is_alphanumeric() || is_combining_mark(c) => Class::Word,
        // These join letters in Persian and Indic words.
        '\u{200c}' | '\u{200d}' => Class::Word,
        _ => Class::Gap,
    }
}

/// Whether a character is Han, kana, Hangul, Thai, Lao, Khmer or Myanmar: these have no
/// spaces or, in Hangul, endings joined to the word, so that pairs match better.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3105}'..='\u{312f}'
        | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        && c.is_alphanumeric()
}

/// Appends a character in lower case and without accents.
pub(super) fn push_folded(c: char, out: &mut String) {
    match c {
        'A'..='Z' => out.push(c.to_ascii_lowercase()),
        _ if c.is_ascii() => out.push(c),
        // A separate letter in Cyrillic, which the stemmer needs.
        'й' | 'Й' => out.push('й'),
        '\u{200c}' | '\u{200d}' => {}
        _ => c.to_lowercase().for_each(|lower| {
            decompose_compatible(lower, |part| match part {
                _ if is_accent(part) => {}
                'ß' => out.push_str("ss"),
                'æ' => out.push_str("ae"),
                'œ' => out.push_str("oe"),
                'ø' => out.push('o'),
                'ł' => out.push('l'),
                'đ' | 'ð' => out.push('d'),
                'þ' => out.push_str("th"),
                'ı' => out.push('i'),
                'ς' => out.push('σ'),
                _ => out.push(part),
            });
        }),
    }
}

/// Whether a mark is optional in writing: accents, and the points of Hebrew and Arabic.
/// The marks of Indic scripts are vowels and stay.
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{0300}'..='\u{036f}' | '\u{0591}'..='\u{05bd}' | '\u{05bf}'..='\u{05c7}'
        | '\u{064b}'..='\u{065f}' | '\u{0670}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}
