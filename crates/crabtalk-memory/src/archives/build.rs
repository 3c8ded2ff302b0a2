//! Adds missing archives to the index, a bounded step at a time.

use super::turn::text_hash;
use super::{ArchiveIndex, Turn};
use crate::index::Analysed;
use crate::text::passages;
use crabtalk_domain::ConversationKey;
use crabtalk_domain::records::{IndexedArchive, Passage};
use crabtalk_domain::storage::{self, ArchiveInfo, LogPart};

/// Maximum bytes of text to index in one step: some hundredths of a second of work.
const STEP_TEXT_BYTES: usize = 256 * 1024;

/// Maximum bytes of messages to read in one step, including skipped tool results.
const STEP_READ_BYTES: usize = 4 * 1024 * 1024;

/// Intended bytes of messages in a page, from which the size of the next page follows.
const PAGE_BYTES: usize = 64 * 1024;

/// Number of entries in a page: in the first one, and at most.
const PAGE: (usize, usize) = (16, 256);

/// The default name of a sender.
const NAMELESS: &str = "user";

impl ArchiveIndex {
    /// Runs one step of indexing a conversation, and returns whether another is needed.
    pub(super) async fn step(&self, key: &ConversationKey) -> Result<bool, crate::Error> {
        let _building = self.0.building.lock().await;
        let infos = match self.0.storage.archives(key).await {
            Err(storage::Error::NotFound(_)) => Vec::new(),
            other => other?,
        };
        let mut indexed = self.0.passages.archives(key).await?;
        let is_wrong = self.0.state().wrong.remove(key);
        let fits = |it: &IndexedArchive| infos.iter().any(|info| is_of(it, info));
        if !indexed.is_empty() && (is_wrong || !indexed.iter().all(fits)) {
            self.0.passages.clear(key).await?;
            indexed.clear();
        }
        for info in infos.iter().rev() {
            let known = indexed.iter().find(|known| known.index == info.index);
            if known.is_none_or(|known| known.before.is_some()) {
                let before = known.and_then(|known| known.before);
                self.index(key, info, before).await?;
                return Ok(true);
            }
        }
        self.0.checked(key);
        Ok(false)
    }

    /// Indexes the newest unindexed part of an archive.
    async fn index(
        &self,
        key: &ConversationKey,
        info: &ArchiveInfo,
        mut before: Option<u64>,
    ) -> Result<(), crate::Error> {
        let source = LogPart::Archive(key.clone(), info.index);
        let (mut newest_first, mut text, mut read, mut limit) = (Vec::new(), 0, 0, PAGE.0);
        loop {
            let page = self.0.storage.page(&source, before, limit).await?;
            let mut bytes = 0;
            for entry in page.entries.iter().rev() {
                bytes += entry.message.content.len();
                if entry.compact {
                    continue;
                }
                if let Some(turn) = Turn::of(key, &info.archived_at, &entry.message) {
                    text += turn.text.len();
                    newest_first.push((entry.index, turn));
                }
            }
            read += bytes;
            let first = page.entries.first().map(|entry| entry.index);
            before = first.filter(|_| page.more);
            if before.is_none() || text >= STEP_TEXT_BYTES || read >= STEP_READ_BYTES {
                break;
            }
            let mean = bytes / page.entries.len().max(1) + 1;
            limit = (PAGE_BYTES / mean).clamp(1, PAGE.1);
        }
        let turns = newest_first.into_iter().rev();
        let analysed = move || {
            turns
                .flat_map(|(entry, turn)| analysed(entry, &turn))
                .collect()
        };
        let passages: Vec<Passage> = match tokio::task::spawn_blocking(analysed).await {
            Ok(passages) => passages,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        };
        let archive = IndexedArchive {
            index: info.index,
            title: info.title.clone(),
            archived_at: info.archived_at.clone(),
            messages: info.message_count,
            before,
        };
        Ok(self.0.passages.add(key, archive, passages).await?)
    }
}

/// Whether an archive is unchanged since it was indexed, as far as a list shows.
fn is_of(indexed: &IndexedArchive, info: &ArchiveInfo) -> bool {
    info.index == indexed.index
        && info.title == indexed.title
        && info.archived_at == indexed.archived_at
        && info.message_count == indexed.messages
}

fn analysed(entry: u64, turn: &Turn) -> Vec<Passage> {
    let speaker = match turn.speaker.as_str() {
        NAMELESS => "",
        name => name,
    };
    let passage = |range: std::ops::Range<usize>| {
        let Analysed { terms, flags } = Analysed::of(&turn.text[range.clone()]);
        // Lines of a log are far shorter than 4 GiB.
        Passage {
            entry,
            begin: range.start as u32,
            bytes: range.len() as u32,
            hash: text_hash(&turn.text),
            speaker: speaker.to_owned(),
            day: turn.day(),
            flags,
            terms,
        }
    };
    passages(&turn.text).into_iter().map(passage).collect()
}
