//! The ranking over the index of archives, as recall uses it.

use super::Conversation;
use crate::archives::Sample;
use crate::index::{Analysed, Query, search};
use crabtalk_domain::ConversationKey;
use crabtalk_domain::records::{IndexedArchive, Passage, PassageQuery, Passages};
use std::ops::Range;
use std::sync::Arc;

/// Conversations that are indexed as the archives of one.
pub(crate) struct Stored {
    passages: Arc<dyn Passages>,
    key: ConversationKey,
    runtime: tokio::runtime::Runtime,
    /// The turns that are asked about.
    own: Range<u64>,
    first_session: u32,
    _home: tempfile::TempDir,
}

impl Stored {
    pub(crate) fn among(all: &[Conversation], own: &Conversation) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let mut stored = Self {
            passages: crabtalk_store::Indexes::in_state(home.path()).passages(),
            key: ConversationKey::new("crab", "user").expect("valid"),
            runtime: runtime.expect("a runtime"),
            own: 0..0,
            first_session: 1,
            _home: home,
        };
        let (mut session, mut entry) = (1, 0);
        for conversation in all {
            if conversation == own {
                stored.own = entry..entry + conversation.turns.len() as u64;
                stored.first_session = session;
            }
            for archive in conversation.turns.chunk_by(|a, b| a.session == b.session) {
                stored.add(session, entry, archive);
                session += 1;
                entry += archive.len() as u64;
            }
        }
        stored
    }

    fn add(&self, index: u32, first: u64, turns: &[super::Turn]) {
        let passage = |(entry, turn): (u64, &super::Turn)| {
            let Analysed { terms, flags } = Analysed::of(&turn.text);
            Passage {
                entry,
                speaker: turn.speaker.clone(),
                day: turn.day,
                flags,
                terms,
                ..Passage::default()
            }
        };
        let archive = IndexedArchive {
            index,
            ..IndexedArchive::default()
        };
        let passages = (first..).zip(turns).map(passage).collect();
        let adding = self.passages.add(&self.key, archive, passages);
        self.runtime.block_on(adding).expect("added");
    }

    /// Entries that are found, each with the number of its archive.
    fn find(&self, question: &str, k: usize) -> Vec<(u64, u32)> {
        let query = Query::parse(question, None);
        let wanted = PassageQuery {
            keys: vec![self.key.clone()],
            terms: query.searched(),
            days: query.days(),
        };
        let found = self.runtime.block_on(self.passages.find(wanted));
        let sample = Sample::new(query.searched(), found.expect("searched"));
        let found = search(&[sample.shard()], &query, k).into_iter();
        let found = found.filter_map(|found| sample.candidate(found.doc));
        found
            .map(|it| (it.passage.entry, it.archive.index))
            .collect()
    }

    /// The best `k` turns.
    pub(crate) fn turns(&self, question: &str, k: usize) -> Vec<usize> {
        let found = self.find(question, k).into_iter();
        let own = |entry: u64| entry.checked_sub(self.own.start);
        let turn = |(entry, _)| own(entry).map_or(usize::MAX - 1, |turn| turn as usize);
        found.map(turn).collect()
    }

    /// The best `k` sessions.
    pub(crate) fn sessions(&self, question: &str, k: usize) -> Vec<u32> {
        // Several turns of a session may be found.
        let found = self.find(question, k * 3).into_iter();
        let session = |(_, archive): (u64, u32)| archive.wrapping_sub(self.first_session);
        let mut sessions: Vec<u32> = found.map(session).collect();
        let mut seen = std::collections::HashSet::new();
        sessions.retain(|session| seen.insert(*session));
        sessions.truncate(k);
        sessions
    }
}
