//! Which part of a conversation's archives a segment holds, as its file is
//! named.
//!
//! Invariant: a place is an archive's number and the index of an entry in it, 0
//! for its beginning, so that an archive ends where the next one begins.

use std::path::PathBuf;

/// A place in the archives of a conversation.
pub(super) type Place = (u32, u64);

/// From a place up to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) from: Place,
    pub(super) to: Place,
}

impl Span {
    /// The archive that the last part of it is of, and the entry before which
    /// to read it.
    pub(super) fn last(&self) -> (u32, Option<u64>) {
        match self.to {
            (archive, 0) => (archive - 1, None),
            (archive, entry) => (archive, Some(entry)),
        }
    }

    fn holds(&self, other: &Self) -> bool {
        self.from <= other.from && other.to <= self.to
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) span: Span,
    /// How often it was merged.
    pub(super) level: u8,
}

impl Named {
    pub(super) fn file(&self) -> PathBuf {
        let Span { from, to } = self.span;
        format!(
            "{:08x}{:016x}-{:08x}{:016x}.{}.idx",
            from.0, from.1, to.0, to.1, self.level
        )
        .into()
    }

    pub(super) fn parse(file: &str) -> Option<Self> {
        let (span, level) = file.strip_suffix(".idx")?.split_once('.')?;
        let (from, to) = span.split_once('-')?;
        let place = |text: &str| {
            if text.len() != 24 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
                return None;
            }
            let archive = u32::from_str_radix(&text[..8], 16).ok()?;
            Some((archive, u64::from_str_radix(&text[8..], 16).ok()?))
        };
        let span = Span {
            from: place(from)?,
            to: place(to)?,
        };
        let level = level.parse().ok()?;
        (span.from.0 > 0 && span.from < span.to).then_some(Self { span, level })
    }
}

/// Parts those that count, in order, from those that a merge made superfluous
/// and did not come to delete.
pub(super) fn in_order(mut all: Vec<Named>) -> (Vec<Named>, Vec<Named>) {
    all.sort_by_key(|named| (named.span.from, std::cmp::Reverse(named.span.to)));
    let mut kept: Vec<Named> = Vec::with_capacity(all.len());
    let mut rest = Vec::new();
    for named in all {
        match kept.last() {
            Some(last) if last.span.holds(&named.span) || named.span.from < last.span.to => {
                rest.push(named);
            }
            _ => kept.push(named),
        }
    }
    (kept, rest)
}

/// The newest part of `archives` archives that no segment holds.
pub(super) fn newest_gap(kept: &[Named], archives: u32) -> Option<Span> {
    let mut to: Place = (archives.checked_add(1)?, 0);
    for named in kept.iter().rev() {
        if named.span.to < to {
            return Some(Span {
                from: named.span.to,
                to,
            });
        }
        to = named.span.from;
    }
    (to > (1, 0)).then_some(Span { from: (1, 0), to })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(from: Place, to: Place, level: u8) -> Named {
        let span = Span { from, to };
        Named { span, level }
    }

    #[test]
    fn a_name_says_what_is_in_the_file() {
        let it = named((1, 0), (3, 77), 2);
        let file = it.file();
        let file = file.to_str().unwrap();
        assert_eq!(
            file,
            "000000010000000000000000-00000003000000000000004d.2.idx"
        );
        assert_eq!(Named::parse(file), Some(it));
        for wrong in ["", "x.idx", ".crabtalk-1.tmp", "é-é.0.idx"] {
            assert_eq!(Named::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn gaps_are_found_from_the_newest_on() {
        let gap =
            |kept: &[Named], archives| newest_gap(kept, archives).map(|span| (span.from, span.to));
        assert_eq!(gap(&[], 0), None);
        assert_eq!(gap(&[], 2), Some(((1, 0), (3, 0))));
        let newest = named((2, 90), (3, 0), 0);
        assert_eq!(
            gap(std::slice::from_ref(&newest), 2),
            Some(((1, 0), (2, 90)))
        );
        let oldest = named((1, 0), (2, 10), 0);
        assert_eq!(gap(&[oldest, newest], 2), Some(((2, 10), (2, 90))));
        let all = named((1, 0), (3, 0), 1);
        assert_eq!(gap(std::slice::from_ref(&all), 2), None);
        assert_eq!(gap(&[all], 3), Some(((3, 0), (4, 0))));
    }

    #[test]
    fn what_was_merged_does_not_count_twice() {
        let parts = [named((1, 0), (1, 50), 0), named((1, 50), (2, 0), 0)];
        let whole = named((1, 0), (2, 0), 1);
        let all = [&parts[..], std::slice::from_ref(&whole)].concat();
        assert_eq!(in_order(all), (vec![whole], parts.to_vec()));
    }
}
