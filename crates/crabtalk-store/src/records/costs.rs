//! Costs of model calls, one row per call.

use super::{Records, begin_import};
use crabtalk_domain::records::{
    COST_DAYS, CostOf, CostReport, CostRow, Costs, Error, ReservedCost,
};
use crabtalk_domain::{BoxFuture, CallTotal, Cost, Usage};
use jiff::civil::Date;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, ToSql, params};

/// The columns of a total, for [`total`].
const SUMS: &str = "sum(calls), sum(prompt_tokens), sum(completion_tokens), sum(cache_hit_tokens), \
                    sum(money), sum(unpriced_tokens)";

/// Rows that count: calls, and reservations of other lives.
const COUNTED: &str = "code IS NULL AND (life IS NULL OR life <> :life)";

impl Costs for Records {
    fn add(
        &self,
        row: CostRow,
        settles: Option<ReservedCost>,
    ) -> BoxFuture<'static, Result<(), Error>> {
        let work = move |c: &Connection| {
            if let Some(settled) = settles {
                release(c, settled)?;
            }
            insert(c, &row)
        };
        Box::pin(self.0.write(work))
    }

    fn release(&self, reserved: ReservedCost) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(self.0.write(move |c| release(c, reserved)))
    }

    fn of_day(
        &self,
        day: Date,
        life: i64,
    ) -> BoxFuture<'static, Result<Vec<(String, CallTotal)>, Error>> {
        // On the writer's thread, after all rows that were added before.
        Box::pin(self.0.write(move |c| {
            c.execute(
                "DELETE FROM cost WHERE day <=
                 (SELECT DISTINCT day FROM cost ORDER BY day DESC LIMIT 1 OFFSET ?1)",
                [COST_DAYS],
            )?;
            let mut rows = c.prepare_cached(&format!(
                "SELECT speaker, {SUMS} FROM cost WHERE day = :day AND {COUNTED} GROUP BY speaker"
            ))?;
            let of = params![day.to_string(), life];
            rows.query_map(of, |row| Ok((row.get(0)?, total(row, 1)?)))?
                .collect()
        }))
    }

    fn report(
        &self,
        from: Date,
        to: Date,
        life: i64,
        limit: u32,
    ) -> BoxFuture<'static, Result<CostReport, Error>> {
        let (from, to) = (from.to_string(), to.to_string());
        Box::pin(self.0.read(move |c| {
            let of: [(&str, &dyn ToSql); 4] = [
                (":from", &from),
                (":to", &to),
                (":life", &life),
                (":limit", &limit),
            ];
            Ok(CostReport {
                days: sums(c, "day", "day DESC", &of[..3], |row| {
                    Ok((date(row, 0)?, total(row, 1)?))
                })?,
                agents: costliest(c, "speaker", &of, |row| Ok((row.get(0)?, total(row, 1)?)))?,
                models: costliest(c, "provider, model", &of, pair)?,
                conversations: costliest(c, "agent, sender", &of, pair)?,
                runs: runs(c, &from, &to, limit)?,
            })
        }))
    }
}

impl Records {
    /// Imports the rows of a day from its old file. Returns `false` and changes nothing after
    /// the first import.
    pub fn import_costs(
        &self,
        day: Date,
        rows: Vec<CostRow>,
    ) -> BoxFuture<'static, Result<bool, Error>> {
        Box::pin(self.0.write(move |c| {
            let is_first = begin_import(c, &format!("ledger/{day}"))?;
            if is_first {
                for row in &rows {
                    insert(c, row)?;
                }
            }
            Ok(is_first)
        }))
    }
}

fn release(c: &Connection, reserved: ReservedCost) -> rusqlite::Result<()> {
    let mut row = c.prepare_cached("DELETE FROM cost WHERE life = ?1 AND number = ?2")?;
    row.execute([reserved.life, signed(reserved.number)])?;
    Ok(())
}

fn insert(c: &Connection, row: &CostRow) -> rusqlite::Result<()> {
    let (code, reserved) = match row.of {
        CostOf::Call => (None, None),
        CostOf::Run(code) => (Some(code), None),
        CostOf::Reservation(reserved) => (None, Some(reserved)),
    };
    let CallTotal { calls, usage, cost } = &row.total;
    let mut statement = c.prepare_cached(
        "INSERT INTO cost (day, at, code, life, number, speaker, agent, sender, provider, model,
             run, calls, prompt_tokens, completion_tokens, cache_hit_tokens, money,
             unpriced_tokens)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?;
    statement.execute(params![
        row.day.to_string(),
        row.at,
        code,
        reserved.map(|reserved| reserved.life),
        reserved.map(|reserved| signed(reserved.number)),
        row.speaker,
        row.agent,
        row.sender,
        row.provider,
        row.model,
        signed(row.run),
        signed(*calls),
        summable(usage.prompt_tokens),
        summable(usage.completion_tokens),
        usage.cache_hit_tokens.map(summable),
        cost.money,
        summable(cost.unpriced_tokens),
    ])?;
    Ok(())
}

fn costliest<K>(
    c: &Connection,
    key: &str,
    of: &[(&str, &dyn ToSql)],
    read: fn(&Row<'_>) -> rusqlite::Result<(K, CallTotal)>,
) -> rusqlite::Result<Vec<(K, CallTotal)>> {
    let order = "total(money) DESC, sum(prompt_tokens + completion_tokens) DESC LIMIT :limit";
    sums(c, key, order, of, read)
}

fn sums<K>(
    c: &Connection,
    key: &str,
    order: &str,
    of: &[(&str, &dyn ToSql)],
    read: fn(&Row<'_>) -> rusqlite::Result<(K, CallTotal)>,
) -> rusqlite::Result<Vec<(K, CallTotal)>> {
    let mut rows = c.prepare_cached(&format!(
        "SELECT {key}, {SUMS} FROM cost WHERE day BETWEEN :from AND :to AND {COUNTED}
         GROUP BY {key} ORDER BY {order}"
    ))?;
    rows.query_map(of, read)?.collect()
}

fn runs(c: &Connection, from: &str, to: &str, limit: u32) -> rusqlite::Result<Vec<CostRow>> {
    let mut rows = c.prepare_cached(
        "SELECT day, at, code, agent, sender, run, calls, prompt_tokens, completion_tokens,
             cache_hit_tokens, money, unpriced_tokens
         FROM cost WHERE code IS NOT NULL AND day BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3",
    )?;
    let run = |row: &Row<'_>| {
        Ok(CostRow {
            day: date(row, 0)?,
            at: row.get(1)?,
            of: CostOf::Run(row.get(2)?),
            agent: row.get(3)?,
            sender: row.get(4)?,
            run: unsigned(row.get(5)?),
            total: total(row, 6)?,
            ..CostRow::default()
        })
    };
    rows.query_map(params![from, to, limit], run)?.collect()
}

fn pair(row: &Row<'_>) -> rusqlite::Result<((String, String), CallTotal)> {
    Ok(((row.get(0)?, row.get(1)?), total(row, 2)?))
}

fn total(row: &Row<'_>, at: usize) -> rusqlite::Result<CallTotal> {
    Ok(CallTotal {
        calls: unsigned(row.get(at)?),
        usage: Usage {
            prompt_tokens: unsigned(row.get(at + 1)?),
            completion_tokens: unsigned(row.get(at + 2)?),
            cache_hit_tokens: row.get::<_, Option<i64>>(at + 3)?.map(unsigned),
            ..Usage::default()
        },
        cost: Cost {
            money: row.get(at + 4)?,
            unpriced_tokens: unsigned(row.get(at + 5)?),
        },
    })
}

fn date(row: &Row<'_>, at: usize) -> rusqlite::Result<Date> {
    let text: String = row.get(at)?;
    text.parse().map_err(|error: jiff::Error| {
        rusqlite::Error::FromSqlConversionFailure(at, Type::Text, error.into())
    })
}

/// Limits a provider's figure, so that sums do not overflow.
fn summable(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn unsigned(n: i64) -> u64 {
    n.max(0).unsigned_abs()
}

#[cfg(test)]
mod tests;
