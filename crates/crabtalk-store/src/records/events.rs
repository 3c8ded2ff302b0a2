//! Waiting events, and the numbers in use.

use super::{Records, begin_import};
use crabtalk_domain::BoxFuture;
use crabtalk_domain::records::{Error, Event, Events};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, params};

const EVENT: &str = "event";
const SUBSCRIPTION: &str = "subscription";

impl Events for Records {
    fn waiting(&self) -> BoxFuture<'static, Result<Vec<Event>, Error>> {
        // On the writer's thread, after all events that were published before.
        Box::pin(self.0.write(|c| {
            let mut rows = c.prepare_cached("SELECT * FROM event ORDER BY id")?;
            rows.query_map([], event)?.collect()
        }))
    }

    fn publish(&self, event: Event, at_least: u64) -> BoxFuture<'static, Result<u64, Error>> {
        Box::pin(self.0.write(move |c| {
            let id = next(c, EVENT, at_least)?;
            insert(c, &Event { id, ..event })?;
            Ok(id)
        }))
    }

    fn done(&self, id: u64) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(self.0.write(move |c| {
            let mut row = c.prepare_cached("DELETE FROM event WHERE id = ?1")?;
            row.execute([id.cast_signed()]).map(drop)
        }))
    }

    fn next_subscription(&self, at_least: u64) -> BoxFuture<'static, Result<u64, Error>> {
        Box::pin(self.0.write(move |c| next(c, SUBSCRIPTION, at_least)))
    }
}

impl Records {
    /// Imports the waiting events of the old file, and the next numbers. Returns `false` and
    /// changes nothing after the first import.
    pub fn import_events(
        &self,
        events: Vec<Event>,
        next_event: u64,
        next_subscription: u64,
    ) -> BoxFuture<'static, Result<bool, Error>> {
        Box::pin(self.0.write(move |c| {
            if !begin_import(c, "events")? {
                return Ok(false);
            }
            for event in &events {
                insert(c, event)?;
            }
            reach(c, EVENT, next_event.saturating_sub(1).cast_signed())?;
            let last = next_subscription.saturating_sub(1);
            reach(c, SUBSCRIPTION, last.cast_signed())?;
            Ok(true)
        }))
    }

    /// Removes all waiting events.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn drop_events(&self) -> Result<(), Error> {
        if !self.0.path().exists() {
            return Ok(());
        }
        let dropped = self.0.write(|c| c.execute("DELETE FROM event", []));
        dropped.await.map(drop)
    }
}

fn insert(c: &Connection, event: &Event) -> rusqlite::Result<()> {
    let mut row =
        c.prepare_cached("INSERT OR IGNORE INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let fires = serde_json::to_string(&event.fires).expect("numbers are JSON");
    row.execute(params![
        event.id.cast_signed(),
        event.source,
        event.payload,
        event.depth,
        fires,
        event.about
    ])?;
    Ok(())
}

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    let fires: String = row.get("fires")?;
    let fires = serde_json::from_str(&fires)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(4, Type::Text, e.into()))?;
    let id: i64 = row.get("id")?;
    Ok(Event {
        id: id.cast_unsigned(),
        source: row.get("source")?,
        payload: row.get("payload")?,
        depth: row.get("depth")?,
        fires,
        about: row.get("about")?,
    })
}

/// Records that numbers of a series were used up to this one.
pub(super) fn reach(c: &Connection, series: &str, last: i64) -> rusqlite::Result<()> {
    let mut row = c.prepare_cached(
        "INSERT INTO series VALUES (?1, ?2)
         ON CONFLICT DO UPDATE SET last = max(last, excluded.last)",
    )?;
    row.execute(params![series, last]).map(drop)
}

/// The next number of a series.
fn next(c: &Connection, name: &str, at_least: u64) -> rusqlite::Result<u64> {
    let mut row = c.prepare_cached(
        "INSERT INTO series VALUES (?1, ?2)
         ON CONFLICT DO UPDATE SET last = max(last + 1, excluded.last) RETURNING last",
    )?;
    let last = row.query_row(params![name, at_least.cast_signed()], |row| {
        row.get::<_, i64>(0)
    })?;
    Ok(last.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(source: &str) -> Event {
        Event {
            source: source.into(),
            payload: "it\nhappened".into(),
            depth: 1,
            fires: vec![1, 2],
            ..Event::default()
        }
    }

    #[tokio::test]
    async fn dropped_events_leave_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let records = Records::in_state(folder.path());
        assert_eq!(records.publish(event("a"), 100).await, Ok(100));
        records.drop_events().await.unwrap();
        assert_eq!(records.waiting().await, Ok(Vec::new()));
        assert_eq!(records.publish(event("b"), 1).await, Ok(101));
    }

    #[tokio::test]
    async fn import_twice_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let records = Records::in_state(folder.path());
        for is_first in [true, false] {
            let events = vec![Event {
                id: 3,
                ..event("a")
            }];
            let imported = records.import_events(events, 5, 9).await.unwrap();
            assert_eq!(imported, is_first);
            assert_eq!(
                records.waiting().await.unwrap().len(),
                usize::from(is_first)
            );
            records.done(3).await.unwrap();
        }
        assert_eq!(records.publish(event("b"), 1).await.unwrap(), 5);
        assert_eq!(records.next_subscription(1).await.unwrap(), 9);
    }
}
