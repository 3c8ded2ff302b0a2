//! The index of archived turns: passages, found by their terms.

use super::Error;
use crate::{BoxFuture, ConversationKey};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// An archive of which passages are indexed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexedArchive {
    /// Its number, from 1.
    pub index: u32,
    /// Its title when it was indexed.
    pub title: String,
    /// RFC 3339 instant; empty if unknown.
    pub archived_at: String,
    /// Its messages when it was indexed.
    pub messages: u64,
    /// The entry before which the archive is not indexed yet; `None` if it is
    /// indexed completely.
    pub before: Option<u64>,
}

/// A part of a turn, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Passage {
    /// Index of the entry in the log.
    pub entry: u64,
    /// Offset of the passage in the turn's text.
    pub begin: u32,
    /// Bytes of the passage.
    pub bytes: u32,
    /// Hash of the turn's text.
    pub hash: u32,
    /// Who spoke; empty if that does not matter.
    pub speaker: String,
    /// Days since 1970-01-01, if known.
    pub day: Option<i32>,
    /// Properties that the ranking knows.
    pub flags: u8,
    /// Terms in order, separated by blanks. ASCII punctuation is not part of a
    /// term.
    pub terms: String,
}

/// A search request.
#[derive(Debug, Clone, Default)]
pub struct PassageQuery {
    /// The conversations to search.
    pub keys: Vec<ConversationKey>,
    /// Passages with any of these terms.
    pub terms: Vec<String>,
    /// Passages of these days, since 1970-01-01.
    pub days: Option<RangeInclusive<i32>>,
}

/// Passages to rank, in the order of the conversations and their logs.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    /// All passages of the conversations.
    pub passages: u64,
    /// For each term, the number of passages with it; estimated for a term that
    /// is common.
    pub counts: Vec<u64>,
    /// The passages that match best, with their neighbours.
    pub found: Vec<Candidate>,
}

/// A passage to rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The number of its conversation among those that were searched.
    pub key: usize,
    /// Grows with every gap between candidates: those of one run are adjacent in
    /// their conversation.
    pub run: u32,
    /// Its archive.
    pub archive: Arc<IndexedArchive>,
    /// The passage.
    pub passage: Passage,
}

/// An index of archived turns.
pub trait Passages: Send + Sync {
    /// Conversations of an agent, or of all, with indexed archives: those that were indexed
    /// first come last.
    fn conversations<'a>(
        &'a self,
        agent: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, Error>>;

    /// The archives of a conversation that are indexed, oldest first.
    fn archives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<IndexedArchive>, Error>>;

    /// Adds passages of an archive in the order of the log, in front of those
    /// that are indexed of it, and notes how far it is indexed.
    fn add<'a>(
        &'a self,
        key: &'a ConversationKey,
        archive: IndexedArchive,
        passages: Vec<Passage>,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Removes all passages of a conversation.
    fn clear<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<(), Error>>;

    /// Finds the passages that are worth ranking.
    fn find(&self, wanted: PassageQuery) -> BoxFuture<'_, Result<Candidates, Error>>;
}
