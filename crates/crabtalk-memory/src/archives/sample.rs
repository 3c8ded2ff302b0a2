//! Loads candidates of archives into an index in memory, for the ranking.

use crate::index::{Analysed, DocId, Document, Index, Level, Shard, Whole};
use crabtalk_domain::records::{Candidate, Candidates};

/// The candidates of a search. Documents have the same numbers as `candidates`.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    index: Index,
    whole: Whole,
    candidates: Vec<Candidate>,
}

impl Sample {
    /// Creates the index; `terms` are the searched terms in the order of their counts.
    pub(crate) fn new(terms: Vec<String>, found: Candidates) -> Self {
        let counts = found.counts.iter().map(|count| *count as usize);
        let mut sample = Self {
            index: Index::new(),
            whole: Whole {
                docs: found.passages as usize,
                counts: terms.into_iter().zip(counts).collect(),
            },
            candidates: found.found,
        };
        let (mut last, mut session) = (None, 0);
        for candidate in &mut sample.candidates {
            let archive = Some((candidate.key, candidate.archive.index));
            if last.is_some() && last != archive {
                session += 1;
            }
            last = archive;
            let passage = &mut candidate.passage;
            let document = Document {
                conversation: candidate.run,
                session,
                speaker: &passage.speaker,
                day: passage.day,
            };
            let analysed = Analysed {
                terms: std::mem::take(&mut passage.terms),
                flags: passage.flags,
            };
            // An index has room for far more documents than there are candidates.
            let _ = sample.index.append(&document, &analysed);
        }
        sample
    }

    pub(crate) fn shard(&self) -> Shard<'_> {
        Shard {
            index: &self.index,
            level: Level::Document,
            said: true,
            keep: &|_| true,
            whole: Some(&self.whole),
        }
    }

    pub(crate) fn candidate(&self, doc: DocId) -> Option<&Candidate> {
        self.candidates.get(doc as usize)
    }
}
