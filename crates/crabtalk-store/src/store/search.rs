//! Searches the messages of all conversations.
//!
//! Invariant: a hit is read from its log before it is returned, so that a stale index
//! yields neither missing messages nor those of another conversation.

use super::Inner;
use super::read::{ReadLog, is_of};
use crate::derived::FoundTurn;
use crate::page::entry_of;
use crate::summary::{Digest, digest};
use crate::tail::line_at;
use crabtalk_domain::storage::{Error, Hit, Hits, Search};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Time limit for indexing the latest messages at the beginning of a search.
const CATCH_UP: Duration = Duration::from_secs(1);

/// Maximum time for reading candidates.
const MAX_TIME: Duration = Duration::from_secs(5);

/// Number of candidates to read from the index at a time.
const BATCH: usize = 128;

/// A log with candidates; `None` if it cannot be read.
type OpenLog = Option<(ReadLog, Digest)>;

impl Inner {
    pub(super) fn search(&self, search: &Search) -> Result<Hits, Error> {
        let mut found = Hits::default();
        let begun = Instant::now();
        while self.index.catch_up(false)? {
            if begun.elapsed() >= CATCH_UP {
                found.incomplete = true;
                break;
            }
        }
        let begun = Instant::now();
        let (mut below, mut logs) = (i64::MAX, HashMap::new());
        loop {
            let batch = match self.index.table().search(search, below, BATCH) {
                Ok(batch) => batch,
                Err(error) => {
                    tracing::warn!(%error, "cannot search the index of conversations");
                    found.incomplete = true;
                    return Ok(found);
                }
            };
            let is_last = batch.len() < BATCH;
            for candidate in batch {
                below = candidate.id;
                if found.hits.len() >= search.limit || begun.elapsed() >= MAX_TIME {
                    found.incomplete = true;
                    return Ok(found);
                }
                let log = logs
                    .entry(candidate.log.clone())
                    .or_insert_with(|| self.open_candidate(search, &candidate.log));
                found.hits.extend(hit(search, log, &candidate));
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    fn open_candidate(&self, search: &Search, name: &str) -> OpenLog {
        let log = self.open_to_read(name).ok()?;
        let digest = digest(&*log.file).ok()?;
        let (agent, sender) = (search.agent.as_deref(), search.sender.as_deref());
        let is_wanted = is_of(&digest.key, agent, sender) && (search.reach)(&digest.key);
        is_wanted.then_some((log, digest))
    }
}

/// Reads the candidate from its log.
fn hit(search: &Search, log: &OpenLog, candidate: &FoundTurn) -> Option<Hit> {
    let (log, digest) = log.as_ref()?;
    let hit = |message, at, snippet| Hit {
        key: digest.key.clone(),
        title: digest.meta.title.clone(),
        message,
        at,
        snippet,
    };
    let Some(offset) = candidate.entry else {
        let snippet = search.snippet(&digest.meta.title)?;
        return Some(hit(None, digest.meta.created_at.clone(), snippet));
    };
    let len = log.file.stat().ok()?.len;
    let line = line_at(&*log.file, offset, len).ok()??;
    let message = entry_of(offset, &line)
        .filter(|entry| !entry.compact)?
        .message;
    let snippet = search.snippet(&message.content)?;
    Some(hit(Some((offset, message.role)), message.at, snippet))
}
