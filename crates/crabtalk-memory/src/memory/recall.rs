//! Recall: selects archives, applies limits, makes excerpts.

use super::found::{Match, Rank};
use super::{Hit, MAX_HITS, Memory, RecallScope, Recalled};
use crate::archives::Sample;
use crate::index::Query;
use crate::{Viewer, archives};
use crabtalk_domain::ConversationKey;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of an agent's conversations that a recall searches.
const MAX_CONVERSATIONS: usize = 256;

/// Time limit for indexing at the beginning of an explicit recall. Usually everything is
/// indexed; otherwise this suffices for some hundred megabytes, and the rest is indexed
/// later.
const ASKED_WAIT: Duration = Duration::from_secs(5);

impl Memory {
    /// Searches entries and archives. Unreadable archives are logged and omitted.
    pub async fn recall(&self, viewer: &Viewer, query: &str, limit: usize) -> Recalled {
        let keys = self.conversations(viewer).await;
        let until = Instant::now() + ASKED_WAIT;
        let mut complete = true;
        for key in &keys {
            complete &= self.archives().catch_up(key, until).await;
        }
        let look = self.look(viewer, keys, query, limit, |_, _| true);
        Recalled {
            hits: look.await,
            complete,
            only_common: self.query(query).is_empty(),
        }
    }

    /// Searches entries and the indexed part of these archives. `keep` gets each result and the
    /// best one; the text of results that it drops is not read.
    pub(crate) async fn look(
        &self,
        viewer: &Viewer,
        keys: Vec<ConversationKey>,
        query: &str,
        limit: usize,
        keep: impl Fn(Rank, Rank) -> bool,
    ) -> Vec<Hit> {
        let limit = limit.min(MAX_HITS);
        let query = Arc::new(self.query(query));
        if limit == 0 || query.is_empty() {
            return Vec::new();
        }
        let candidates = self.archives().find(&keys, &query).await;
        let (viewer, asked) = (viewer.clone(), Arc::clone(&query));
        let mut found = self
            .blocking(move |inner| {
                let sample = Sample::new(asked.searched(), candidates);
                inner.find(&viewer, &asked, limit, &sample)
            })
            .await;
        if let Some(best) = found.first().map(Match::rank) {
            found.retain(|candidate| keep(candidate.rank(), best));
        }
        self.read_turns(found, &keys, &query).await
    }

    /// Reads the texts of turns. Drops results whose turns no longer exist, and rebuilds the
    /// index.
    async fn read_turns(
        &self,
        found: Vec<Match>,
        keys: &[ConversationKey],
        query: &Query,
    ) -> Vec<Hit> {
        let mut texts = HashMap::new();
        for (at, key) in keys.iter().enumerate() {
            let own = found.iter().filter_map(Match::turn);
            let indexes: Vec<u64> = own
                .filter(|t| t.passage.key == at)
                .map(|t| t.passage.passage.entry)
                .collect();
            if indexes.is_empty() {
                continue;
            }
            let entries = self.0.parts.storage.entries(key, &indexes).await;
            let entries = entries.unwrap_or_else(|error| {
                tracing::warn!(conversation = %key, %error, "recall skips archives of a conversation");
                Vec::new()
            });
            texts.extend(entries.into_iter().map(|e| ((at, e.index), e.message)));
        }
        let mut hits = Vec::with_capacity(found.len());
        let mut wrong = HashSet::new();
        for candidate in found {
            match candidate {
                Match::Entry(hit) => hits.push(hit),
                Match::Turn(turn) => {
                    let message = texts.get(&turn.place());
                    let key = &keys[turn.passage.key];
                    match message.and_then(|message| turn.hit(key, message, query)) {
                        Some(hit) => hits.push(hit),
                        None => {
                            wrong.insert(key);
                        }
                    }
                }
            }
        }
        for key in wrong {
            self.archives().discard(key);
        }
        hits
    }

    fn query(&self, text: &str) -> Query {
        let now = self.0.parts.clock.now();
        let today = now.to_zoned(crabtalk_files::local_zone()).date();
        Query::parse(&archives::without_recalled(text), Some(today))
    }

    /// The conversations whose archives the viewer may search.
    pub(crate) async fn conversations(&self, viewer: &Viewer) -> Vec<ConversationKey> {
        let own = &viewer.conversation;
        if self.settings().recall_scope == RecallScope::Conversation {
            return vec![own.clone()];
        }
        let agent = own.agent.as_str();
        let mut keys = self
            .archives()
            .conversations(agent, MAX_CONVERSATIONS)
            .await;
        keys.retain(|key| key != own);
        keys.insert(0, own.clone());
        keys.truncate(MAX_CONVERSATIONS);
        keys
    }
}
