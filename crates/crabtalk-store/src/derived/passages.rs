//! Passages of archived turns, in two tables: positions and terms.
//!
//! Invariant: ids of passages increase in the order of their conversation's log.

mod find;
mod layout;

use crate::db::Database;
use crabtalk_domain::records::{
    Candidates, Error, IndexedArchive, Passage, PassageQuery, Passages,
};
use crabtalk_domain::{BoxFuture, ConversationKey};
use layout::{archive_ids, conversation_ids};
use rusqlite::{Connection, OptionalExtension, Row, params};

/// The tables of passages.
pub(super) struct PassageTable(pub(super) Database);

impl Passages for PassageTable {
    fn conversations<'a>(
        &'a self,
        agent: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, Error>> {
        let agent = agent.map(str::to_owned);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let pairs = self.0.read(move |c| {
            let mut rows = c.prepare_cached(
                "SELECT agent, sender FROM passage_conversation WHERE ?1 IS NULL OR agent = ?1
                 ORDER BY id DESC LIMIT ?2",
            )?;
            let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let pairs = rows.query_map(params![agent, limit], pair)?;
            pairs.collect::<rusqlite::Result<Vec<(String, String)>>>()
        });
        Box::pin(async move {
            let pairs = pairs.await?.into_iter();
            let key =
                |(agent, sender): (String, String)| ConversationKey::new(&agent, &sender).ok();
            Ok(pairs.filter_map(key).collect())
        })
    }

    fn archives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<IndexedArchive>, Error>> {
        let key = key.clone();
        let parts = self.0.read(move |c| layout::parts(c, &key));
        Box::pin(async move {
            let parts = parts.await?.into_iter();
            Ok(parts.map(|(archive, _)| archive).collect())
        })
    }

    fn add<'a>(
        &'a self,
        key: &'a ConversationKey,
        archive: IndexedArchive,
        passages: Vec<Passage>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let key = key.clone();
        Box::pin(self.0.write(move |c| add(c, &key, &archive, &passages)))
    }

    fn clear<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<(), Error>> {
        let key = key.clone();
        Box::pin(self.0.write(move |c| clear(c, &key)))
    }

    fn find(&self, wanted: PassageQuery) -> BoxFuture<'_, Result<Candidates, Error>> {
        Box::pin(self.0.read(move |c| find::find(c, &wanted)))
    }
}

fn add(
    c: &Connection,
    key: &ConversationKey,
    archive: &IndexedArchive,
    passages: &[Passage],
) -> rusqlite::Result<()> {
    c.prepare_cached("INSERT OR IGNORE INTO passage_conversation (agent, sender) VALUES (?1, ?2)")?
        .execute([key.agent.as_str(), key.sender.as_str()])?;
    let Some(conversation) = conversation(c, key)? else {
        return Ok(());
    };
    let ids = archive_ids(conversation, archive.index);
    let known: Option<i64> = c
        .prepare_cached(
            "SELECT first FROM passage_archive WHERE conversation = ?1 AND archive = ?2",
        )?
        .query_row(params![conversation, archive.index], |row| row.get(0))
        .optional()?;
    let end = known.unwrap_or(ids.end);
    // An archive with more passages than available ids omits the oldest.
    let ids = ids.start.max(end - signed(passages.len() as u64))..end;
    c.prepare_cached("INSERT OR REPLACE INTO passage_archive VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
        .execute(params![
            conversation,
            archive.index,
            archive.title,
            archive.archived_at,
            signed(archive.messages),
            archive.before.map(signed),
            ids.start,
        ])?;
    let mut row =
        c.prepare_cached("INSERT INTO passage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    let mut terms = c.prepare_cached("INSERT INTO passage_terms (rowid, terms) VALUES (?1, ?2)")?;
    for (id, passage) in ids.rev().zip(passages.iter().rev()) {
        row.execute(params![
            id,
            signed(passage.entry),
            passage.begin,
            passage.bytes,
            passage.hash,
            passage.speaker,
            passage.day,
            passage.flags,
            passage.terms
        ])?;
        terms.execute(params![id, passage.terms])?;
    }
    Ok(())
}

fn clear(c: &Connection, key: &ConversationKey) -> rusqlite::Result<()> {
    let Some(conversation) = conversation(c, key)? else {
        return Ok(());
    };
    let ids = conversation_ids(conversation);
    let ids = [ids.start, ids.end];
    c.prepare_cached(
        "DELETE FROM passage_terms
         WHERE rowid IN (SELECT id FROM passage WHERE id >= ?1 AND id < ?2)",
    )?
    .execute(ids)?;
    c.prepare_cached("DELETE FROM passage WHERE id >= ?1 AND id < ?2")?
        .execute(ids)?;
    c.prepare_cached("DELETE FROM passage_archive WHERE conversation = ?1")?
        .execute([conversation])?;
    c.prepare_cached("DELETE FROM passage_conversation WHERE id = ?1")?
        .execute([conversation])?;
    Ok(())
}

/// The number of a conversation with indexed passages.
fn conversation(c: &Connection, key: &ConversationKey) -> rusqlite::Result<Option<i64>> {
    c.prepare_cached("SELECT id FROM passage_conversation WHERE agent = ?1 AND sender = ?2")?
        .query_row([key.agent.as_str(), key.sender.as_str()], |row| row.get(0))
        .optional()
}

/// Offsets and counts are far below 2^63.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
