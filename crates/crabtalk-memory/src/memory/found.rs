//! What a search found, before the texts of turns are read.

use super::{FoundIn, Hit};
use crate::archives::{Turn, text_hash};
use crate::index::Query;
use crate::render;
use crabtalk_domain::{ConversationKey, Message};
use std::ops::Range;

/// Bytes of a hit's text.
pub(super) const MAX_SNIPPET_BYTES: usize = 1_000;

/// How good something is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rank {
    pub(crate) score: f32,
    pub(crate) coverage: f32,
}

/// Something that was found.
#[derive(Debug)]
pub(super) enum Candidate {
    Entry(Hit),
    Turn(Box<FoundTurn>),
}

/// A turn whose text is still to be read.
#[derive(Debug)]
pub(super) struct FoundTurn {
    /// Which of the conversations that were searched.
    pub(super) key: usize,
    /// Index of the entry in its log.
    pub(super) entry: u64,
    pub(super) passage: Range<usize>,
    pub(super) text_hash: u32,
    pub(super) archive: u32,
    pub(super) title: String,
    pub(super) archived_at: String,
    pub(super) rank: Rank,
}

impl Candidate {
    pub(super) fn rank(&self) -> Rank {
        match self {
            Self::Entry(hit) => Rank {
                score: hit.score,
                coverage: hit.coverage,
            },
            Self::Turn(turn) => turn.rank,
        }
    }

    pub(super) fn turn(&self) -> Option<&FoundTurn> {
        match self {
            Self::Entry(_) => None,
            Self::Turn(turn) => Some(turn),
        }
    }
}

impl FoundTurn {
    /// The hit, if the message still is the one that was indexed.
    pub(super) fn hit(
        &self,
        key: &ConversationKey,
        message: &Message,
        query: &Query,
    ) -> Option<Hit> {
        let turn = Turn::of(key, &self.archived_at, message)?;
        if text_hash(&turn.text) != self.text_hash {
            return None;
        }
        let passage = turn.text.get(self.passage.clone())?;
        Some(Hit {
            source: FoundIn::Archive {
                conversation: key.clone(),
                index: self.archive,
                speaker: turn.speaker,
            },
            title: self.title.clone(),
            snippet: render::snippet(passage, query, MAX_SNIPPET_BYTES),
            score: self.rank.score,
            coverage: self.rank.coverage,
            at: turn.at,
        })
    }
}
