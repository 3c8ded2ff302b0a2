//! Entries of the audit and their hash chain.
//!
//! Invariant: an entry and the head that names it are written in one transaction.

use super::{Records, begin_import};
use crabtalk_domain::BoxFuture;
use crabtalk_domain::records::{AuditCheck, AuditEntry, AuditLog, AuditPage, Error};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The hash before the first entry.
const NONE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// An entry with its place in the chain.
#[derive(Serialize, Deserialize)]
struct Line {
    n: i64,
    #[serde(flatten)]
    entry: AuditEntry,
    prev: String,
}

/// The last entry of a chain.
struct Head {
    chain: i64,
    n: i64,
    hash: String,
}

impl Head {
    fn of_chain(chain: i64) -> Self {
        Self {
            chain,
            n: 0,
            hash: NONE.to_owned(),
        }
    }
}

impl AuditLog for Records {
    fn append(&self, entry: AuditEntry) -> BoxFuture<'static, Result<u64, Error>> {
        let written = self.0.write(move |c| {
            let head = head(c)?.unwrap_or_else(|| Head::of_chain(1));
            if let Some(problem) = broken_end(c, &head)? {
                return Ok(Err(Error::BrokenChain(problem)));
            }
            append(c, head, entry).map(Ok)
        });
        Box::pin(async move { written.await? })
    }

    fn latest(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'static, Result<AuditPage, Error>> {
        let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
        // One more than requested shows whether older entries exist.
        let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        Box::pin(self.0.read(move |c| {
            let mut rows = c.prepare_cached(
                "SELECT entry FROM audit
                 WHERE chain = coalesce((SELECT chain FROM audit_head),
                                        (SELECT max(chain) FROM audit)) AND n < ?1
                 ORDER BY n DESC LIMIT ?2",
            )?;
            let rows = rows.query_map([before, most], |row| row.get(0))?;
            let mut lines = rows.collect::<rusqlite::Result<Vec<String>>>()?;
            let more = lines.len() > limit;
            lines.truncate(limit);
            lines.reverse();
            Ok(AuditPage { lines, more })
        }))
    }

    fn verify(&self) -> BoxFuture<'static, Result<AuditCheck, Error>> {
        Box::pin(self.0.read(|c| {
            // Makes all statements read the same state of the database.
            c.execute_batch("SAVEPOINT audit_check")?;
            let checked = check(c);
            c.execute_batch("RELEASE audit_check")?;
            checked
        }))
    }

    fn begin_chain(&self, first: AuditEntry) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(self.0.write(move |c| {
            let last: Option<i64> = c.query_row(
                "SELECT max(chain) FROM
                 (SELECT chain FROM audit UNION ALL SELECT chain FROM audit_head)",
                [],
                |row| row.get(0),
            )?;
            let head = Head::of_chain(last.unwrap_or_default() + 1);
            append(c, head, first).map(drop)
        }))
    }
}

impl Records {
    /// Imports the entries of the audit's old files, as numbers and texts, and the number
    /// and hash of the last one. New entries continue that chain unless another one exists.
    /// Returns `false` and changes nothing after the first import.
    pub fn import_audit(
        &self,
        lines: Vec<(i64, String)>,
        last: Option<(i64, String)>,
    ) -> BoxFuture<'static, Result<bool, Error>> {
        Box::pin(self.0.write(move |c| {
            if !begin_import(c, "audit")? {
                return Ok(false);
            }
            let mut row = c.prepare("INSERT OR IGNORE INTO audit VALUES (0, ?1, ?2)")?;
            for line in &lines {
                row.execute(params![line.0, line.1])?;
            }
            let last = last.or_else(|| {
                let (n, text) = lines.last()?;
                Some((*n, hash(text)))
            });
            if let Some((n, hash)) = last {
                c.execute(
                    "INSERT OR IGNORE INTO audit_head VALUES (1, 0, ?1, ?2)",
                    params![n, hash],
                )?;
            }
            Ok(true)
        }))
    }
}

fn head(c: &Connection) -> rusqlite::Result<Option<Head>> {
    let mut row = c.prepare_cached("SELECT chain, n, hash FROM audit_head")?;
    let head = row.query_row([], |row| {
        Ok(Head {
            chain: row.get(0)?,
            n: row.get(1)?,
            hash: row.get(2)?,
        })
    });
    head.optional()
}

/// Why the last entry does not match the head.
fn broken_end(c: &Connection, head: &Head) -> rusqlite::Result<Option<String>> {
    let mut row =
        c.prepare_cached("SELECT n, entry FROM audit WHERE chain = ?1 ORDER BY n DESC LIMIT 1")?;
    let last: Option<(i64, String)> = row
        .query_row([head.chain], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (n, last) = last.map_or((0, NONE.to_owned()), |(n, text)| (n, hash(&text)));
    let written = head.n;
    Ok(match n.cmp(&written) {
        std::cmp::Ordering::Less => Some(format!(
            "the last entry is {n}, but {written} were written: entries were removed"
        )),
        std::cmp::Ordering::Greater => Some(format!(
            "the last entry is {n}, but {written} were written: entries were added"
        )),
        std::cmp::Ordering::Equal if last != head.hash => {
            Some(format!("the last entry, {n}, was changed"))
        }
        std::cmp::Ordering::Equal => None,
    })
}

fn append(c: &Connection, head: Head, entry: AuditEntry) -> rusqlite::Result<u64> {
    let n = head.n + 1;
    let line = Line {
        n,
        entry,
        prev: head.hash,
    };
    let text = serde_json::to_string(&line).expect("string keys and finite numbers are JSON");
    let mut row = c.prepare_cached("INSERT INTO audit VALUES (?1, ?2, ?3)")?;
    row.execute(params![head.chain, n, text])?;
    let mut row = c.prepare_cached("INSERT OR REPLACE INTO audit_head VALUES (1, ?1, ?2, ?3)")?;
    row.execute(params![head.chain, n, hash(&text)])?;
    Ok(n.unsigned_abs())
}

fn check(c: &Connection) -> rusqlite::Result<AuditCheck> {
    let head = head(c)?.unwrap_or_else(|| Head::of_chain(1));
    let mut rows = c.prepare("SELECT n, entry FROM audit WHERE chain = ?1 ORDER BY n")?;
    let mut rows = rows.query([head.chain])?;
    let mut last = Head::of_chain(head.chain);
    while let Some(row) = rows.next()? {
        let (n, text): (i64, String) = (row.get(0)?, row.get(1)?);
        if let Some(problem) = misfit(&last, n, &text) {
            return Ok(AuditCheck {
                entries: last.n.unsigned_abs(),
                problem: Some(problem),
            });
        }
        (last.n, last.hash) = (n, hash(&text));
    }
    Ok(AuditCheck {
        entries: last.n.unsigned_abs(),
        problem: broken_end(c, &head)?,
    })
}

/// Why an entry does not follow the previous one.
fn misfit(before: &Head, n: i64, text: &str) -> Option<String> {
    let expected = before.n + 1;
    match serde_json::from_str::<Line>(text) {
        Err(error) => Some(format!("entry {n} cannot be read: {error}")),
        Ok(line) if n != expected || line.n != n => {
            Some(format!("found entry {}, expected entry {expected}", line.n))
        }
        Ok(line) if line.prev == before.hash => None,
        Ok(_) => Some(match before.n {
            0 => "entry 1 has the hash of an earlier entry".to_owned(),
            before => format!("entry {before} or {n} was changed"),
        }),
    }
}

fn hash(text: &str) -> String {
    let mut hash = String::with_capacity(NONE.len());
    for byte in Sha256::digest(text) {
        // Writing into a string never fails.
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}

#[cfg(test)]
mod tests;
