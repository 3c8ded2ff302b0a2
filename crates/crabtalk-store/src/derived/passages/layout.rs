//! Ids of passages, and their positions among all searched passages.

use super::conversation;
use crabtalk_domain::ConversationKey;
use crabtalk_domain::records::IndexedArchive;
use rusqlite::{Connection, Row};
use std::ops::Range;
use std::sync::Arc;

/// Bits of an id for the numbers of the passage and the archive.
const PASSAGE_BITS: u32 = 22;
const ARCHIVE_BITS: u32 = 20;

/// All ids of a conversation.
pub(super) fn conversation_ids(conversation: i64) -> Range<i64> {
    const BITS: u32 = ARCHIVE_BITS + PASSAGE_BITS;
    conversation << BITS..(conversation + 1) << BITS
}

/// All ids of an archive.
pub(super) fn archive_ids(conversation: i64, archive: u32) -> Range<i64> {
    let begin = conversation_ids(conversation).start + (i64::from(archive) << PASSAGE_BITS);
    begin..begin + (1 << PASSAGE_BITS)
}

/// Searched archives in the order of ids. The position of a passage is the number of
/// passages before it.
pub(super) struct Layout {
    pub(super) parts: Vec<Part>,
    /// Number of passages in all parts.
    pub(super) passages: usize,
}

pub(super) struct Part {
    /// Index of the conversation in the query.
    pub(super) key: usize,
    pub(super) archive: Arc<IndexedArchive>,
    ids: Range<i64>,
    /// Position of the first passage.
    begin: usize,
}

impl Layout {
    pub(super) fn of(c: &Connection, keys: &[ConversationKey]) -> rusqlite::Result<Self> {
        let mut found = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            let own = parts(c, key)?.into_iter();
            found.extend(own.map(|(archive, ids)| (at, archive, ids)));
        }
        found.sort_by_key(|(_, _, ids)| ids.start);
        let mut layout = Self {
            parts: Vec::with_capacity(found.len()),
            passages: 0,
        };
        for (key, archive, ids) in found {
            let count = (ids.end - ids.start) as usize;
            layout.parts.push(Part {
                key,
                archive: Arc::new(archive),
                ids,
                begin: layout.passages,
            });
            layout.passages += count;
        }
        Ok(layout)
    }

    /// The position of a passage, if its archive is searched.
    pub(super) fn place(&self, id: i64) -> Option<usize> {
        let behind = self.parts.partition_point(|part| part.ids.start <= id);
        let part = &self.parts[behind.checked_sub(1)?];
        (id < part.ids.end).then(|| part.begin + (id - part.ids.start) as usize)
    }

    /// The part that contains a position below `passages`.
    pub(super) fn part(&self, place: usize) -> &Part {
        let behind = self.parts.partition_point(|part| part.begin <= place);
        &self.parts[behind - 1]
    }

    /// The lowest and highest id of all parts.
    pub(super) fn bounds(&self) -> Option<(i64, i64)> {
        let (first, last) = (self.parts.first()?, self.parts.last()?);
        Some((first.ids.start, last.ids.end - 1))
    }
}

impl Part {
    /// The id at a position in this part.
    pub(super) fn id(&self, place: usize) -> i64 {
        self.ids.start + (place - self.begin) as i64
    }
}

/// Indexed parts of a conversation: archives with the ids of their passages,
/// oldest first.
pub(super) fn parts(
    c: &Connection,
    key: &ConversationKey,
) -> rusqlite::Result<Vec<(IndexedArchive, Range<i64>)>> {
    let Some(conversation) = conversation(c, key)? else {
        return Ok(Vec::new());
    };
    let part = |row: &Row<'_>| {
        let index = row.get(0)?;
        let archive = IndexedArchive {
            index,
            title: row.get(1)?,
            archived_at: row.get(2)?,
            messages: row.get::<_, i64>(3)?.unsigned_abs(),
            before: row.get::<_, Option<i64>>(4)?.map(i64::unsigned_abs),
        };
        Ok((archive, row.get(5)?..archive_ids(conversation, index).end))
    };
    c.prepare_cached(
        "SELECT archive, title, archived_at, messages, before, first FROM passage_archive
         WHERE conversation = ?1 ORDER BY archive",
    )?
    .query_map([conversation], part)?
    .collect()
}
