//! The table of messages and titles with their terms.
//!
//! All operations block, and belong in the blocking pool.

use super::logs::{nanos, time};
use super::{LogTable, terms};
use crabtalk_domain::records::Error;
use crabtalk_domain::storage::Search;
use rusqlite::{Connection, params};
use std::time::SystemTime;

/// Bits of an id for the number of a message within its second.
const NUMBER_BITS: u32 = 24;

/// A log that may have unindexed messages.
#[derive(Debug, Clone)]
pub(crate) struct Unindexed {
    id: i64,
    touched: i64,
    pub(crate) name: String,
    /// Number of indexed bytes.
    pub(crate) indexed: u64,
    /// Time of the log's last change when it was last indexed completely.
    pub(crate) indexed_at: SystemTime,
}

/// A message or title to index.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Seconds since 1970.
    pub(crate) at: i64,
    /// Offset in the log; `None` for the title.
    pub(crate) entry: Option<u64>,
    pub(crate) text: String,
}

/// New turns of a log, which follow the indexed ones.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) log: Unindexed,
    /// Agent and sender.
    pub(crate) pair: Option<(String, String)>,
    /// Whether these turns replace the indexed ones.
    pub(crate) anew: bool,
    pub(crate) turns: Vec<Turn>,
    /// Number of indexed bytes, including these turns.
    pub(crate) indexed: u64,
    /// Time of the log's last change, if it is now indexed completely.
    pub(crate) complete_at: Option<SystemTime>,
}

/// A turn that a search found.
#[derive(Debug)]
pub(crate) struct FoundTurn {
    /// The id below which older turns are.
    pub(crate) id: i64,
    /// The name of the log.
    pub(crate) log: String,
    pub(crate) entry: Option<u64>,
}

impl LogTable {
    /// Logs that may have unindexed messages, after all queued changes.
    pub(crate) fn unindexed(&self, most: u32) -> Result<Vec<Unindexed>, Error> {
        self.0.write_now(move |c| {
            let mut rows = c.prepare_cached(
                "SELECT id, touched, name, indexed, indexed_at FROM log
                 WHERE modified IS NOT indexed_at LIMIT ?1",
            )?;
            rows.query_map([most], |row| {
                Ok(Unindexed {
                    id: row.get(0)?,
                    touched: row.get(1)?,
                    name: row.get(2)?,
                    indexed: row.get::<_, i64>(3)?.unsigned_abs(),
                    indexed_at: time(row.get(4)?),
                })
            })?
            .collect()
        })
    }

    /// Adds turns, and records how far their logs are indexed.
    pub(crate) fn add_turns(&self, mut parts: Vec<Indexed>) -> Result<(), Error> {
        let mut turns = Vec::new();
        for part in &mut parts {
            let (agent, sender) = part.pair.clone().unwrap_or_default();
            let scope = format!("{} {}", terms::of_agent(&agent), terms::of_sender(&sender));
            let own = part.turns.drain(..).map(|turn| {
                let terms = format!("{scope} {}", terms::of_text(&turn.text));
                (turn.at, part.log.id, turn.entry, terms)
            });
            turns.extend(own);
        }
        // FTS5 writes a segment whenever an id is lower than the previous one.
        turns.sort_unstable_by_key(|turn| (turn.0, turn.1, turn.2));
        self.0.write_now(move |c| {
            for part in &parts {
                note(c, part)?;
            }
            for (at, log, entry, terms) in turns {
                let id = next_id(c, at)?;
                c.prepare_cached("INSERT INTO turn VALUES (?1, ?2, ?3)")?
                    .execute(params![id, log, entry.map(u64::cast_signed)])?;
                c.prepare_cached("INSERT INTO turn_terms (rowid, terms) VALUES (?1, ?2)")?
                    .execute(params![id, terms])?;
            }
            Ok(())
        })
    }

    /// Turns that contain all words, newest first, with an id below this one.
    pub(crate) fn search(
        &self,
        search: &Search,
        below: i64,
        most: usize,
    ) -> Result<Vec<FoundTurn>, Error> {
        let words = terms::of_query(&search.words);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let agent = search.agent.as_deref().map(terms::of_agent);
        let sender = search.sender.as_deref().map(terms::of_sender);
        let scope = agent.into_iter().chain(sender).map(|term| (term, false));
        // Terms consist of letters and digits.
        let parts = scope.chain(words).map(|(term, is_prefix)| match is_prefix {
            true => format!("\"{term}\"*"),
            false => format!("\"{term}\""),
        });
        let expression = parts.collect::<Vec<_>>().join(" AND ");
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.0.read_now(move |c| {
            let mut rows = c.prepare_cached(
                "SELECT turn.id, log.name, turn.entry FROM turn_terms
                 CROSS JOIN turn ON turn.id = turn_terms.rowid
                 CROSS JOIN log ON log.id = turn.log
                 WHERE turn_terms MATCH ?1 AND turn_terms.rowid < ?2
                 ORDER BY turn_terms.rowid DESC LIMIT ?3",
            )?;
            rows.query_map(params![expression, below, most], |row| {
                Ok(FoundTurn {
                    id: row.get(0)?,
                    log: row.get(1)?,
                    entry: row.get::<_, Option<i64>>(2)?.map(i64::cast_unsigned),
                })
            })?
            .collect()
        })
    }
}

fn note(c: &Connection, part: &Indexed) -> rusqlite::Result<()> {
    let log = &part.log;
    if part.anew {
        clear(c, log.id)?;
    } else if part.turns.iter().any(|turn| turn.entry.is_none()) {
        clear_titles(c, log.id)?;
    }
    let (agent, sender) = part.pair.as_ref().map(|(a, s)| (a, s)).unzip();
    c.prepare_cached("UPDATE log SET indexed = ?2, agent = ?3, sender = ?4 WHERE id = ?1")?
        .execute(params![log.id, part.indexed.cast_signed(), agent, sender])?;
    if let Some(at) = part.complete_at {
        c.prepare_cached(
            "UPDATE log SET modified = ?3, indexed_at = ?3 WHERE id = ?1 AND touched = ?2",
        )?
        .execute(params![log.id, log.touched, nanos(at)])?;
    }
    Ok(())
}

/// Removes all turns of a log.
pub(super) fn clear(c: &Connection, log: i64) -> rusqlite::Result<()> {
    c.prepare_cached("DELETE FROM turn_terms WHERE rowid IN (SELECT id FROM turn WHERE log = ?1)")?
        .execute([log])?;
    c.prepare_cached("DELETE FROM turn WHERE log = ?1")?
        .execute([log])?;
    Ok(())
}

fn clear_titles(c: &Connection, log: i64) -> rusqlite::Result<()> {
    c.prepare_cached(
        "DELETE FROM turn_terms
         WHERE rowid IN (SELECT id FROM turn WHERE log = ?1 AND entry IS NULL)",
    )?
    .execute([log])?;
    c.prepare_cached("DELETE FROM turn WHERE log = ?1 AND entry IS NULL")?
        .execute([log])?;
    Ok(())
}

/// The next free id of a second.
fn next_id(c: &Connection, at: i64) -> rusqlite::Result<i64> {
    // Message times lie between 1970 and 9999.
    let first = at.clamp(0, 1 << 38) << NUMBER_BITS;
    let mut last = c.prepare_cached("SELECT max(id) FROM turn WHERE id < ?1")?;
    let last: Option<i64> = last.query_row([first + (1 << NUMBER_BITS)], |row| row.get(0))?;
    Ok(last.map_or(first, |last| first.max(last + 1)))
}
