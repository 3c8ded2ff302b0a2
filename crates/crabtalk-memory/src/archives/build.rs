//! Makes the index: what is missing, a bounded step at a time.
//!
//! Invariant: a step reads and holds a bounded part of an archive, writes one
//! file whole, and may be cut off anywhere.

use super::segment::{Draft, Part, Segment, Session, merge};
use super::span::{Named, Span, in_order, newest_gap};
use super::{ArchiveIndex, Inner, Turn, names};
use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::{self, ArchiveInfo, LogPart};
use std::io;
use std::sync::Arc;

/// Bytes of text that one step indexes, and a segment holds before any merge:
/// some hundredths of a second of work, and few megabytes of memory.
const STEP_TEXT_BYTES: usize = 256 * 1024;

/// Bytes of messages that one step reads: tool results are passed over.
const STEP_READ_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of messages that a page should have: its size follows from the last one.
const PAGE_BYTES: usize = 64 * 1024;

/// Entries of a page, the first one and at most.
const PAGE: (usize, usize) = (16, 256);

/// Segments of one size that are made one.
const MERGED: usize = 8;

/// Documents of the largest segment. A search holds some bytes for each; of
/// twice as many it took half as long again, since they left the processor's
/// cache.
const MAX_DOCS: u32 = 1 << 17;

/// What is to be done next for a conversation.
enum Step {
    Nothing,
    Merge(Vec<Named>),
    Index(Span),
}

impl ArchiveIndex {
    /// Brings the index of a conversation one step further, and says whether
    /// more is to be done. `tidy`: merges too, which only saves time later.
    pub(super) async fn step(
        &self,
        key: &ConversationKey,
        tidy: bool,
    ) -> Result<bool, crate::Error> {
        let _building = self.0.building.lock().await;
        let infos: Arc<[ArchiveInfo]> = match self.0.storage.archives(key).await {
            Err(storage::Error::NotFound(_)) => Arc::default(),
            other => other?.into(),
        };
        let (index, of, archives) = (self.clone(), key.clone(), Arc::clone(&infos));
        let next = self.blocking(move |inner| inner.next_step(&index, &of, &archives, tidy));
        match next.await {
            Step::Nothing => {
                self.0.checked(key);
                Ok(false)
            }
            Step::Merge(parts) => {
                let of = key.clone();
                let merged = self.blocking(move |inner| inner.merge(&of, &parts)).await;
                merged
                    .map(|()| true)
                    .map_err(|error| self.failed(key, error))
            }
            Step::Index(span) => {
                let (archive, _) = span.last();
                let info = infos.iter().find(|info| info.index == archive);
                let Some(info) = info else { return Ok(false) };
                self.index(key, info, span).await?;
                Ok(true)
            }
        }
    }

    /// Indexes the newest part of a gap.
    async fn index(
        &self,
        key: &ConversationKey,
        info: &ArchiveInfo,
        gap: Span,
    ) -> Result<(), crate::Error> {
        let (archive, mut before) = gap.last();
        let floor = if gap.from.0 == archive { gap.from.1 } else { 0 };
        let source = LogPart::Archive(key.clone(), archive);
        let (mut newest_first, mut text, mut read, mut limit) = (Vec::new(), 0, 0, PAGE.0);
        let from = loop {
            let page = self.0.storage.page(&source, before, limit).await?;
            let first = page.entries.first().map(|entry| entry.index);
            let mut bytes = 0;
            for entry in page.entries.iter().rev() {
                bytes += entry.message.content.len();
                if entry.compact || entry.index < floor {
                    continue;
                }
                if let Some(turn) = Turn::of(key, &info.archived_at, &entry.message) {
                    text += turn.text.len();
                    newest_first.push((entry.index, turn));
                }
            }
            read += bytes;
            match first.filter(|first| page.more && *first > floor) {
                None => break floor,
                Some(first) if text >= STEP_TEXT_BYTES || read >= STEP_READ_BYTES => break first,
                first => before = first,
            }
            let mean = bytes / page.entries.len().max(1) + 1;
            limit = (PAGE_BYTES / mean).clamp(1, PAGE.1);
        };
        let span = Span {
            from: (archive, from),
            ..gap
        };
        let session = Session {
            first_doc: 0,
            archive,
            title: info.title.clone(),
            archived_at: info.archived_at.clone(),
            messages: info.message_count,
        };
        let of = key.clone();
        let written = self.blocking(move |inner| {
            let named = Named { span, level: 0 };
            let part = Part {
                key: &of,
                named,
                session,
            };
            let folder = inner.folder_of(&of);
            // One that is there is a folder, or somebody else's thing.
            if std::fs::symlink_metadata(&folder).is_ok_and(|it| !it.is_dir()) {
                super::put_aside(&folder);
            }
            let written = Draft::of(newest_first.into_iter().rev()).write(&folder, &part);
            inner.state().open.remove(&of);
            written
        });
        written.await.map_err(|error| self.failed(key, error))
    }

    fn failed(&self, key: &ConversationKey, source: io::Error) -> crate::Error {
        crate::Error::Io {
            action: "write",
            file: self.0.folder_of(key),
            source,
        }
    }
}

impl Inner {
    /// Compares what is there with the archives.
    fn next_step(
        &self,
        index: &ArchiveIndex,
        key: &ConversationKey,
        infos: &[ArchiveInfo],
        tidy: bool,
    ) -> Step {
        let folder = self.folder_of(key);
        let segments = index.segments(key);
        let fits = |session: &Session| {
            infos.iter().any(|info| {
                info.index == session.archive
                    && info.title == session.title
                    && info.archived_at == session.archived_at
                    && info.message_count == session.messages
            })
        };
        let fit = segments.iter().flat_map(Segment::sessions).all(fits);
        let wrong = self.state().wrong.remove(key);
        if !fit || wrong || infos.is_empty() {
            self.clear(key);
        }
        let (kept, superfluous) = in_order(names(&folder));
        for named in superfluous {
            let _ = std::fs::remove_file(folder.join(named.file()));
        }
        if tidy && let Some(parts) = mergeable(&kept, &segments) {
            return Step::Merge(parts);
        }
        match newest_gap(&kept, infos.len() as u32) {
            Some(gap) => Step::Index(gap),
            None => Step::Nothing,
        }
    }

    fn merge(&self, key: &ConversationKey, parts: &[Named]) -> io::Result<()> {
        let folder = self.folder_of(key);
        let [first, .., last] = parts else {
            return Ok(());
        };
        let named = Named {
            span: Span {
                from: first.span.from,
                to: last.span.to,
            },
            level: first.level + 1,
        };
        let open = |part: &Named| Segment::open(&folder.join(part.file()), key);
        let segments: Vec<Segment> = parts.iter().map(open).collect::<io::Result<_>>()?;
        let merged = merge(&segments, &folder, &folder.join(named.file()));
        if merged.is_ok() {
            for part in parts {
                // What stays is passed over and deleted by a later step.
                let _ = std::fs::remove_file(folder.join(part.file()));
            }
        }
        self.state().open.remove(key);
        merged
    }
}

/// Neighbours of one size that are enough to be made one, and not too much.
fn mergeable(kept: &[Named], segments: &[Segment]) -> Option<Vec<Named>> {
    if kept.len() != segments.len() {
        return None;
    }
    (0..kept.len().checked_sub(MERGED - 1)?).find_map(|at| {
        let run = &kept[at..at + MERGED];
        let docs: u64 = segments[at..at + MERGED]
            .iter()
            .map(|segment| u64::from(segment.docs()))
            .sum();
        let alike = run
            .windows(2)
            .all(|two| two[0].level == two[1].level && two[0].span.to == two[1].span.from);
        (alike && run[0].level < u8::MAX && docs <= u64::from(MAX_DOCS)).then(|| run.to_vec())
    })
}
