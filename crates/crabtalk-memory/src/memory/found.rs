//! Search results before the texts of turns are read.

use super::{FoundIn, Hit};
use crate::archives::{Turn, text_hash};
use crate::index::Query;
use crate::render;
use crabtalk_domain::records::Candidate;
use crabtalk_domain::{ConversationKey, Message};

/// Maximum bytes of a hit's text.
pub(super) const MAX_SNIPPET_BYTES: usize = 1_000;

/// Score and coverage of a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rank {
    pub(crate) score: f32,
    pub(crate) coverage: f32,
}

/// A search result without its text.
#[derive(Debug)]
pub(super) enum Match {
    Entry(Hit),
    Turn(Box<FoundTurn>),
}

/// A turn whose text has not been read yet.
#[derive(Debug)]
pub(super) struct FoundTurn {
    pub(super) passage: Candidate,
    pub(super) rank: Rank,
}

impl Match {
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
    /// The number of its conversation, and the index of its entry.
    pub(super) fn place(&self) -> (usize, u64) {
        (self.passage.key, self.passage.passage.entry)
    }

    /// Makes the hit, if the message is still the indexed one.
    pub(super) fn hit(
        &self,
        key: &ConversationKey,
        message: &Message,
        query: &Query,
    ) -> Option<Hit> {
        let Candidate {
            archive, passage, ..
        } = &self.passage;
        let turn = Turn::of(key, &archive.archived_at, message)?;
        if text_hash(&turn.text) != passage.hash {
            return None;
        }
        let begin = passage.begin as usize;
        let text = turn.text.get(begin..begin + passage.bytes as usize)?;
        Some(Hit {
            source: FoundIn::Archive {
                conversation: key.clone(),
                index: archive.index,
                speaker: turn.speaker,
            },
            title: archive.title.clone(),
            snippet: render::snippet(text, query, MAX_SNIPPET_BYTES),
            score: self.rank.score,
            coverage: self.rank.coverage,
            at: turn.at,
        })
    }
}
