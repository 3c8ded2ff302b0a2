//! A query, split into terms of the index.

use crate::text::{DateHint, Words, asks_when, date_hint, term_of};
use jiff::civil::Date;
use std::ops::RangeInclusive;

/// Bytes of a long message that are used, half from its beginning and half from its end,
/// where requests usually are.
const MAX_QUERY_BYTES: usize = 4_000;

/// Terms of a long message with which archives are searched: the longest words, which are
/// the rarest.
const MAX_SEARCHED: usize = 64;

/// Days on each side of a named day, since people remember days approximately.
const DAYS_BESIDE: i32 = 3;

#[derive(Debug, Clone)]
pub(super) struct QueryWord {
    /// Folded.
    pub(super) text: String,
    /// The term; `None` for a stop word.
    pub(super) term: Option<String>,
    /// Whether it is outside the sequence of words.
    pub(super) extra: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub(super) words: Vec<QueryWord>,
    pub(super) date: Option<DateHint>,
    pub(super) when: bool,
    today: Option<Date>,
}

impl Query {
    /// Parses a question or message. `today` resolves words such as "yesterday".
    pub(crate) fn parse(text: &str, today: Option<Date>) -> Self {
        let text = both_ends(text);
        let cut = Words::cut(&text);
        let words = cut.iter().map(|word| QueryWord {
            text: word.text.to_owned(),
            term: term_of(word.text).map(|term| term.into_owned()),
            extra: word.extra,
        });
        Self {
            words: words.collect(),
            date: date_hint(&text, today),
            when: asks_when(&text),
            today,
        }
    }

    /// Whether the query is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.date.is_none() && self.words.iter().all(|word| word.term.is_none())
    }

    /// The terms that show which sentence matches.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter_map(|word| word.term.as_deref())
    }

    /// The terms with which archives are searched.
    pub(crate) fn searched(&self) -> Vec<String> {
        let mut terms: Vec<String> = self.terms().map(str::to_owned).collect();
        terms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        terms.dedup();
        terms.truncate(MAX_SEARCHED);
        terms
    }

    /// The days that the query names; a month without a year is the latest one.
    pub(crate) fn days(&self) -> Option<RangeInclusive<i32>> {
        let hint = self.date?;
        let date = |year, month, day| Date::new(year, month, day).ok();
        let Some(month) = hint.month else {
            let year = hint.year?;
            return Some(crate::days(date(year, 1, 1)?)..=crate::days(date(year, 12, 31)?));
        };
        let last = self.today.map(|today| match month > today.month() {
            true => today.year() - 1,
            false => today.year(),
        });
        let first = date(hint.year.or(last)?, month, 1)?;
        Some(match hint.day {
            None => crate::days(first)..=crate::days(first.last_of_month()),
            Some(day) => {
                let day = crate::days(date(first.year(), month, day)?);
                day - DAYS_BESIDE..=day + DAYS_BESIDE
            }
        })
    }

    /// The position of a speaker's name among the words.
    pub(super) fn find_name(&self, name: &str) -> Option<std::ops::Range<usize>> {
        let parts: Vec<&str> = name.split(' ').collect();
        let same = |(word, part): (&QueryWord, &&str)| word.text == **part;
        let mut places = self.words.windows(parts.len());
        let at = places.position(|words| words.iter().zip(&parts).all(same))?;
        Some(at..at + parts.len())
    }
}

fn both_ends(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= MAX_QUERY_BYTES {
        return text.into();
    }
    let head = &text[..text.floor_char_boundary(MAX_QUERY_BYTES / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - MAX_QUERY_BYTES / 2)..];
    format!("{head} {tail}").into()
}
