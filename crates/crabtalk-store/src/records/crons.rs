//! The books of cron.

use super::events::reach;
use super::{Records, begin_import};
use crabtalk_domain::BoxFuture;
use crabtalk_domain::records::{
    CronBooks, CronBooksChange, CronBooksContent, CronFact, CronRow, Error,
};
use rusqlite::{Connection, OptionalExtension, params};

/// Number of rows to store.
const MAX_ROWS: i64 = 50_000;

const ENTRY: &str = "cron_entry";
const RUN: &str = "cron_run";

impl CronBooks for Records {
    fn load(&self) -> BoxFuture<'static, Result<CronBooksContent, Error>> {
        Box::pin(self.0.write(|c| {
            let mut rows = c.prepare_cached("SELECT id, account FROM cron_entry")?;
            let accounts = rows.query_map([], |row| {
                Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
            })?;
            Ok(CronBooksContent {
                accounts: accounts.collect::<rusqlite::Result<_>>()?,
                last_entry: last(c, ENTRY)?,
                last_run: last(c, RUN)?,
            })
        }))
    }

    fn write(&self, change: CronBooksChange) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(self.0.write(move |c| apply(c, &change)))
    }

    fn latest(
        &self,
        entry: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<CronRow>, Error>> {
        let entry = entry.map(u64::cast_signed);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Box::pin(self.0.read(move |c| {
            let of_entry = if entry.is_some() {
                "entry = ?1"
            } else {
                "?1 IS NULL"
            };
            let mut rows = c.prepare_cached(&format!(
                "SELECT begun, ended, skipped FROM cron_run WHERE {of_entry}
                 ORDER BY id DESC LIMIT ?2"
            ))?;
            rows.query_map(params![entry, limit], |row| {
                Ok(match row.get(0)? {
                    Some(begun) => CronRow::Run(begun, row.get(1)?),
                    None => CronRow::Skipped(row.get(2)?),
                })
            })?
            .collect()
        }))
    }
}

impl Records {
    /// Imports the old books, and the highest numbers of their entries and runs. Returns
    /// `false` and changes nothing after the first import.
    pub fn import_crons(
        &self,
        books: CronBooksChange,
        last_entry: u64,
        last_run: u64,
    ) -> BoxFuture<'static, Result<bool, Error>> {
        Box::pin(self.0.write(move |c| {
            if !begin_import(c, "cron")? {
                return Ok(false);
            }
            apply(c, &books)?;
            reach(c, ENTRY, last_entry.cast_signed())?;
            reach(c, RUN, last_run.cast_signed())?;
            Ok(true)
        }))
    }
}

fn apply(c: &Connection, change: &CronBooksChange) -> rusqlite::Result<()> {
    for (id, account) in &change.accounts {
        let id = id.cast_signed();
        match account {
            Some(account) => c
                .prepare_cached("INSERT OR REPLACE INTO cron_entry VALUES (?1, ?2)")?
                .execute(params![id, account])?,
            None => c
                .prepare_cached("DELETE FROM cron_entry WHERE id = ?1")?
                .execute([id])?,
        };
        reach(c, ENTRY, id)?;
    }
    for fact in &change.facts {
        add(c, fact)?;
    }
    c.prepare_cached("DELETE FROM cron_run WHERE id <= (SELECT max(id) FROM cron_run) - ?1")?
        .execute([MAX_ROWS])
        .map(drop)
}

fn add(c: &Connection, fact: &CronFact) -> rusqlite::Result<()> {
    match fact {
        // A run that begins again gets a new position, and loses its earlier end.
        CronFact::Begun { entry, run, text } => {
            reach(c, RUN, run.cast_signed())?;
            c.prepare_cached(
                "INSERT OR REPLACE INTO cron_run (entry, run, begun) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![entry.cast_signed(), run.cast_signed(), text])?
        }
        CronFact::Ended { run, text } => c
            .prepare_cached("UPDATE cron_run SET ended = ?2 WHERE run = ?1")?
            .execute(params![run.cast_signed(), text])?,
        CronFact::Skipped { entry, text } => c
            .prepare_cached("INSERT INTO cron_run (entry, skipped) VALUES (?1, ?2)")?
            .execute(params![entry.cast_signed(), text])?,
    };
    Ok(())
}

fn last(c: &Connection, series: &str) -> rusqlite::Result<u64> {
    let last = c
        .query_row("SELECT last FROM series WHERE name = ?1", [series], |row| {
            row.get::<_, i64>(0)
        })
        .optional()?;
    Ok(last.unwrap_or_default().cast_unsigned())
}
