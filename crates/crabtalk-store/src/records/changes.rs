//! The journal of changes to files.

use super::Records;
use crabtalk_domain::records::{ChangeJournal, Error};
use crabtalk_domain::{BoxFuture, ConversationKey};
use rusqlite::params;

impl ChangeJournal for Records {
    fn append(
        &self,
        key: &ConversationKey,
        run: u64,
        entries: Vec<String>,
    ) -> BoxFuture<'static, Result<(), Error>> {
        let key = key.clone();
        Box::pin(self.0.write(move |c| {
            let mut row = c.prepare_cached(
                "INSERT INTO change_entry (agent, sender, run, entry) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for entry in entries {
                let (agent, sender) = (key.agent.as_str(), key.sender.as_str());
                row.execute(params![agent, sender, run.cast_signed(), entry])?;
            }
            Ok(())
        }))
    }

    fn entries(
        &self,
        key: &ConversationKey,
        run: u64,
    ) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        let key = key.clone();
        Box::pin(self.0.read(move |c| {
            let mut rows = c.prepare_cached(
                "SELECT entry FROM change_entry
                 WHERE agent = ?1 AND sender = ?2 AND run = ?3 ORDER BY id",
            )?;
            let of_run = params![key.agent.as_str(), key.sender.as_str(), run.cast_signed()];
            rows.query_map(of_run, |row| row.get(0))?.collect()
        }))
    }

    fn runs(&self, key: &ConversationKey) -> BoxFuture<'static, Result<Vec<u64>, Error>> {
        let key = key.clone();
        Box::pin(self.0.read(move |c| {
            let mut rows = c.prepare_cached(
                "SELECT DISTINCT run FROM change_entry
                 WHERE agent = ?1 AND sender = ?2 ORDER BY run DESC",
            )?;
            rows.query_map([key.agent.as_str(), key.sender.as_str()], |row| {
                Ok(row.get::<_, i64>(0)?.cast_unsigned())
            })?
            .collect()
        }))
    }

    fn by_age(&self) -> BoxFuture<'static, Result<Vec<(ConversationKey, u64)>, Error>> {
        Box::pin(self.0.read(|c| {
            let mut rows = c.prepare_cached(
                "SELECT agent, sender, run FROM change_entry
                 GROUP BY agent, sender, run ORDER BY max(id)",
            )?;
            let mut rows = rows.query([])?;
            let mut runs = Vec::new();
            while let Some(row) = rows.next()? {
                let (agent, sender): (String, String) = (row.get(0)?, row.get(1)?);
                if let Ok(key) = ConversationKey::new(&agent, &sender) {
                    runs.push((key, row.get::<_, i64>(2)?.cast_unsigned()));
                }
            }
            Ok(runs)
        }))
    }

    fn remove(
        &self,
        key: &ConversationKey,
        run: Option<u64>,
    ) -> BoxFuture<'static, Result<(), Error>> {
        let (key, run) = (key.clone(), run.map(u64::cast_signed));
        Box::pin(self.0.write(move |c| {
            let mut row = c.prepare_cached(
                "DELETE FROM change_entry
                 WHERE agent = ?1 AND sender = ?2 AND (?3 IS NULL OR run = ?3)",
            )?;
            row.execute(params![key.agent.as_str(), key.sender.as_str(), run])
                .map(drop)
        }))
    }
}
