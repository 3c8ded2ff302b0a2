//! Finds time expressions in a text.

use super::Words;
use jiff::civil::Date;

/// The date that a query names, possibly incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DateHint {
    pub year: Option<i16>,
    /// The month, from 1.
    pub month: Option<i8>,
    /// The day of the month, from 1; only with a month.
    pub day: Option<i8>,
}

const MONTHS: [(&str, &str); 12] = [
    ("january", "jan"),
    ("february", "feb"),
    ("march", "mar"),
    ("april", "apr"),
    ("may", "may"),
    ("june", "jun"),
    ("july", "jul"),
    ("august", "aug"),
    ("september", "sep"),
    ("october", "oct"),
    ("november", "nov"),
    ("december", "dec"),
];

/// Words after which "may", "march" and "mar" are months.
const BEFORE_MONTH: &str =
    " in of last this next since until till by from during early late mid before after around on ";

/// The date that a query names. `today` resolves words such as "yesterday".
pub(crate) fn date_hint(text: &str, today: Option<Date>) -> Option<DateHint> {
    let words = Words::cut(text);
    let words: Vec<&str> = words.iter().filter(|w| !w.extra).map(|w| w.text).collect();
    let hint = numeric(&words).or_else(|| named(&words));
    let hint = hint.or_else(|| today.and_then(|today| relative(&words, today)));
    hint.or_else(|| {
        let year = words.iter().find_map(|w| year(w))?;
        Some(DateHint {
            year: Some(year),
            ..DateHint::default()
        })
    })
}

/// Parses 2023-05-07, 2023/5/7 or 2023年5月7日.
fn numeric(words: &[&str]) -> Option<DateHint> {
    let bare: Vec<&str> = words
        .iter()
        .map(|w| w.trim_start_matches(['年', '月', '日']))
        .collect();
    let bare: Vec<&str> = bare.into_iter().filter(|w| !w.is_empty()).collect();
    bare.windows(2).enumerate().find_map(|(at, pair)| {
        let (year, month) = (year(pair[0])?, number(pair[1], 12)?);
        let day = bare.get(at + 2).and_then(|w| number(w, 31));
        let marked = words.iter().any(|w| w.starts_with('年'));
        (day.is_some() || marked).then_some(DateHint {
            year: Some(year),
            month: Some(month),
            day,
        })
    })
}

/// Parses 7 May 2023, May 7th, in May, or last March.
fn named(words: &[&str]) -> Option<DateHint> {
    words.iter().enumerate().find_map(|(at, word)| {
        let month = month(word)?;
        let next = words.get(at + 1).copied().unwrap_or_default();
        let prev = at.checked_sub(1).map(|at| words[at]).unwrap_or_default();
        let prev_day = match prev {
            "of" => at.checked_sub(2).and_then(|at| ordinal(words[at])),
            _ => ordinal(prev),
        };
        let next_day = ordinal(next);
        let after = words.get(at + 2).copied().unwrap_or_default();
        let year = year(next).or_else(|| year(after));
        let beside = prev_day.is_some() || next_day.is_some() || year.is_some();
        let ambiguous = word.len() <= 4 && *word != "june" && *word != "july" || *word == "march";
        if ambiguous && !beside && !BEFORE_MONTH.contains(&format!(" {prev} ")) {
            return None;
        }
        let year = year.or_else(|| words.iter().find_map(|w| self::year(w)));
        Some(DateHint {
            year,
            month: Some(month),
            day: prev_day.or(next_day),
        })
    })
}

fn relative(words: &[&str], today: Date) -> Option<DateHint> {
    let full = |date: Date| DateHint {
        year: Some(date.year()),
        month: Some(date.month()),
        day: Some(date.day()),
    };
    words.iter().enumerate().find_map(|(at, word)| {
        let prev = at.checked_sub(1).map(|at| words[at]).unwrap_or_default();
        match (prev, *word) {
            (_, "yesterday") => today.yesterday().ok().map(full),
            (_, "today") => Some(full(today)),
            ("this", "month") => Some(DateHint {
                day: None,
                ..full(today)
            }),
            ("last", "month") => {
                let month = today.first_of_month().yesterday().ok()?;
                Some(DateHint {
                    day: None,
                    ..full(month)
                })
            }
            ("this", "year") => Some(DateHint {
                month: None,
                day: None,
                ..full(today)
            }),
            ("last", "year") => Some(DateHint {
                year: Some(today.year() - 1),
                ..DateHint::default()
            }),
            _ => None,
        }
    })
}

fn month(word: &str) -> Option<i8> {
    let at = MONTHS
        .iter()
        .position(|(full, short)| word == *full || word == *short);
    let at = at.or_else(|| (word == "sept").then_some(8))?;
    i8::try_from(at + 1).ok()
}

fn year(word: &str) -> Option<i16> {
    let digits = word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
    word.parse()
        .ok()
        .filter(|year| digits && (1900..2100).contains(year))
}

fn number(word: &str, most: i8) -> Option<i8> {
    word.parse().ok().filter(|n| (1..=most).contains(n))
}

fn ordinal(word: &str) -> Option<i8> {
    let bare = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|end| word.strip_suffix(end));
    number(bare.unwrap_or(word), 31)
}

/// Whether a query asks for a time.
pub(crate) fn asks_when(text: &str) -> bool {
    let words = Words::cut(text);
    let words: Vec<&str> = words.iter().map(|w| w.text).collect();
    words.contains(&"when")
        || words.windows(2).any(|pair| {
            matches!(pair[0], "what" | "which")
                && matches!(pair[1], "date" | "day" | "time" | "year" | "month" | "week")
        })
        || words.windows(2).any(|pair| pair == ["how", "long"])
}

/// Words that name a time.
const MOMENTS: &str = "yesterday tomorrow tonight today ago monday tuesday wednesday thursday friday saturday \
    sunday noon midnight 昨日 今日 明日 昨天 今天 明天 去年 来年";

/// Words that name a time after a word such as "last".
const PERIODS: &str = "week weekend month year night day days weeks months years morning afternoon evening \
    spring summer autumn fall winter";

/// Whether a turn mentions a time.
pub(crate) fn tells_time<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let mut prev = "";
    for word in words {
        let alone = MOMENTS.split(' ').any(|one| one == word);
        let period = PERIODS.split(' ').any(|one| one == word);
        let pointed = matches!(
            prev,
            "last" | "next" | "this" | "past" | "coming" | "every" | "few"
        ) || prev.bytes().next().is_some_and(|b| b.is_ascii_digit());
        let named = month(word).is_some() && (word.len() > 4 && word != "march" || in_month(prev));
        if alone || (period && pointed) || named || year(word).is_some() {
            return true;
        }
        prev = word;
    }
    false
}

fn in_month(prev: &str) -> bool {
    ordinal(prev).is_some() || BEFORE_MONTH.contains(&format!(" {prev} "))
}
