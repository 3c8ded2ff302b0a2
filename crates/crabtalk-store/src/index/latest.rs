//! Finds the most recently changed logs.
//!
//! Invariants: a log is checked after each write by the store, and once after
//! each start of the daemon; opening a conversation waits for only a few
//! checks.

use super::{Index, Names};
use crate::derived::{Changed, CheckedLog};
use crate::fs::Access;
use crate::tail::{HeadRead, read_head};
use crabtalk_domain::records;
use crabtalk_domain::storage::Error;
use std::time::UNIX_EPOCH;

/// Logs checked before other callers get the lock on the names: a few
/// milliseconds.
const LOOKS_AT_ONCE: u32 = 1024;

impl Index {
    /// The names of up to `most` logs of an agent or sender, last changed first; `None` if
    /// the table fails.
    pub(crate) fn latest(
        &self,
        agent: Option<&str>,
        sender: Option<&str>,
        most: usize,
    ) -> Result<Option<Vec<String>>, Error> {
        let mut names = self.lock();
        names.refresh()?;
        drop(names);
        self.forget_touched();
        let latest = self
            .look_at_changed()
            .and_then(|()| self.lock().check_some())
            .and_then(|()| self.table.latest(agent, sender, most));
        Ok(latest
            .inspect_err(|error| tracing::warn!(%error, "cannot use the index; reading all logs"))
            .ok())
    }

    fn look_at_changed(&self) -> Result<(), records::Error> {
        loop {
            let changed = self.table.changed(LOOKS_AT_ONCE)?;
            let is_last = changed.len() < LOOKS_AT_ONCE as usize;
            let names = self.lock();
            let looked = changed.into_iter().map(|log| names.look_at(log));
            self.table.looked(looked.collect())?;
            if is_last {
                return Ok(());
            }
        }
    }
}

impl Names {
    /// Checks some logs that were not checked since the daemon started.
    pub(super) fn check_some(&mut self) -> Result<(), records::Error> {
        let Some(from) = &self.unchecked else {
            return Ok(());
        };
        let logs = self.table.behind(from, LOOKS_AT_ONCE)?;
        self.unchecked = logs.last().map(|log| log.name.clone());
        let looked = logs.into_iter().map(|log| self.look_at(log));
        let changed = looked.filter(|looked| looked.modified != looked.log.modified);
        let changed: Vec<CheckedLog> = changed.collect();
        match changed.is_empty() {
            true => Ok(()),
            false => self.table.looked(changed),
        }
    }

    /// Looks when a log changed, and into line 1 where that may be new.
    fn look_at(&self, log: Changed) -> CheckedLog {
        let path = self.dir.join(&log.name);
        // Sort a log whose metadata cannot be read last.
        let modified = self.fs.changed(&path).unwrap_or(Some(UNIX_EPOCH));
        let is_foreign = log.modified.is_some() && log.modified != modified;
        let read = (is_foreign || !log.is_read).then(|| {
            let opened = self.fs.open(&path, Access::Read);
            match opened.and_then(|file| read_head(&*file)) {
                Ok(HeadRead::Good { head, .. }) => head.key(),
                Ok(HeadRead::Torn | HeadRead::Broken(_)) | Err(_) => None,
            }
        });
        CheckedLog {
            log,
            modified,
            is_foreign,
            read: read.map(|key| key.map(|key| (key.agent.to_string(), key.sender.to_string()))),
        }
    }
}
