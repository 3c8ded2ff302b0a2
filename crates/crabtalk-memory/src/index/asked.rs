//! A query to an index: its words, their weights, and further scoring
//! conditions.

/// Parts of the recipe that depend on the kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {
    /// Speakers' names in the query become a bonus.
    pub speakers: bool,
    /// Dates in the query, and asking when, become a bonus.
    pub dates: bool,
}

impl Features {
    /// For what people and agents said.
    pub(crate) const ALL: Self = Self {
        speakers: true,
        dates: true,
    };
}

/// The unit of ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Document,
    /// Sessions, each by the best of its documents.
    Session,
}

/// A term with its weight over everything that is searched.
pub(super) struct Weighted<'q> {
    pub(super) term: &'q str,
    /// Place of its first occurrence in the query.
    pub(super) at: usize,
    pub(super) idf: f32,
    /// Its part in what was asked.
    pub(super) weight: f32,
}
