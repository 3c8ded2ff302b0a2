//! The index of archived turns: passages that are found by their terms.

use super::Error;
use crate::{BoxFuture, ConversationKey};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// An archive with indexed passages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexedArchive {
    /// Its number, from 1.
    pub index: u32,
    /// The archive's title when it was indexed.
    pub title: String,
    /// RFC 3339 instant; empty if unknown.
    pub archived_at: String,
    /// Number of messages when it was indexed.
    pub messages: u64,
    /// The entry before which the archive is not indexed yet; `None` if it is
    /// indexed completely.
    pub before: Option<u64>,
}

/// An indexed part of a turn, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Passage {
    /// Index of the entry in the log.
    pub entry: u64,
    /// Offset of the passage in the turn's text.
    pub begin: u32,
    /// Length of the passage in bytes.
    pub bytes: u32,
    /// Hash of the turn's text.
    pub hash: u32,
    /// The speaker; empty if it does not matter.
    pub speaker: String,
    /// Days since 1970-01-01, if known.
    pub day: Option<i32>,
    /// Flags that the ranking defines.
    pub flags: u8,
    /// Terms in order, separated by blanks, without ASCII punctuation.
    pub terms: String,
}

/// A search for passages.
#[derive(Debug, Clone, Default)]
pub struct PassageQuery {
    /// The conversations to search.
    pub keys: Vec<ConversationKey>,
    /// Terms, at least one of which a passage must contain.
    pub terms: Vec<String>,
    /// Range of days since 1970-01-01; `None` for all.
    pub days: Option<RangeInclusive<i32>>,
}

/// Passages to rank, in the order of the conversations and their logs.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    /// Number of passages in the conversations.
    pub passages: u64,
    /// For each term, the number of passages that contain it; estimated for common
    /// terms.
    pub counts: Vec<u64>,
    /// The best matches with their neighbours.
    pub found: Vec<Candidate>,
}

/// A passage to rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Index of its conversation in the query.
    pub key: usize,
    /// Number of the group of adjacent passages, which increases at each gap.
    pub run: u32,
    /// The archive of the passage.
    pub archive: Arc<IndexedArchive>,
    /// The passage.
    pub passage: Passage,
}

/// An index of archived turns.
pub trait Passages: Send + Sync {
    /// Conversations of an agent, or of all, with indexed archives, the first indexed last.
    fn conversations<'a>(
        &'a self,
        agent: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, Error>>;

    /// Indexed archives of a conversation, oldest first.
    fn archives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<IndexedArchive>, Error>>;

    /// Adds passages of an archive in the order of the log, in front of those already
    /// indexed, and records how far the archive is indexed.
    fn add<'a>(
        &'a self,
        key: &'a ConversationKey,
        archive: IndexedArchive,
        passages: Vec<Passage>,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Removes all passages of a conversation.
    fn clear<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<(), Error>>;

    /// Finds the passages to rank.
    fn find(&self, wanted: PassageQuery) -> BoxFuture<'_, Result<Candidates, Error>>;
}
