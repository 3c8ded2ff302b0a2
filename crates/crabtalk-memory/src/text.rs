//! Turns text into index terms: words, questions, times.
//!
//! Invariants: documents and queries are processed equally, so that equal text matches.
//! No step reads anything but the text, so that the index can be rebuilt at any time.
//! All word lists were written for this project.

mod fold;
mod irregular;
mod passage;
mod stop;
mod times;
mod words;

pub(crate) use passage::{cut, passages, sentences};
pub(crate) use times::{DateHint, date_hint};
pub(crate) use words::Words;

pub(crate) use times::{asks_when, tells_time};
pub(crate) use words::term_of;

/// Whether the text contains a question.
pub(crate) fn has_question(text: &str) -> bool {
    text.contains(['?', '？', '؟'])
}

/// The terms of a text in order: folded, without stop words, stemmed.
pub(crate) fn terms(text: &str) -> Vec<String> {
    Words::cut(text)
        .iter()
        .filter(|word| !word.extra)
        .filter_map(|word| term_of(word.text).map(Into::into))
        .collect()
}

#[cfg(test)]
mod tests;
