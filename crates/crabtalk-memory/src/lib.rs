//! Memory of CrabTalk: entries as files, an index of its own, recall.

pub mod index;
pub mod text;

/// Days since 1970-01-01.
fn days(date: jiff::civil::Date) -> i32 {
    date.since(jiff::civil::date(1970, 1, 1))
        .map_or(0, |span| span.get_days())
}
