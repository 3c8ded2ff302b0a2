//! Records security-relevant actions and their principals (REMOTE-2).
//!
//! Invariants: an action that needs an entry is done after the entry is on disk; an
//! action that only stops something does not need its entry; queued entries are
//! bounded, and dropped ones are counted.

mod security;

pub(crate) use security::Security;

use crate::error::Error;
use crabtalk_domain::records::{AuditEntry, AuditLog};
use crabtalk_domain::{Clock, SystemClock, stamp};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;

/// Time limit for writing an entry, after which its action is refused.
const WITHIN: Duration = Duration::from_secs(20);

/// Maximum entries in the queue to the service.
const LATER: usize = 256;

/// Maximum queued entries to write in an hour: a few megabytes a day. Further ones are
/// counted.
const PER_HOUR: u32 = 600;

/// Writes entries to the audit. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Audit {
    pub(crate) log: Arc<dyn AuditLog>,
    queue: mpsc::Sender<AuditEntry>,
    queued: Arc<Mutex<mpsc::Receiver<AuditEntry>>>,
}

/// Creates an entry with the current time.
pub(crate) fn entry(what: &str, by: impl ToString) -> AuditEntry {
    AuditEntry::new(stamp(SystemClock.now()), what, by)
}

impl Audit {
    pub(crate) fn new(log: Arc<dyn AuditLog>) -> Self {
        let (queue, queued) = mpsc::channel(LATER);
        Self {
            log,
            queue,
            queued: Arc::new(Mutex::new(queued)),
        }
    }

    /// The layer of the log that queues security events.
    pub(crate) fn security(&self) -> Security {
        Security(self.queue.clone())
    }

    /// Queues an entry for the service. It is dropped if the queue is full.
    pub(crate) fn queue(&self, entry: AuditEntry) {
        let _ = self.queue.try_send(entry);
    }

    /// Writes an entry and returns its number once it is on disk.
    pub(crate) async fn record(&self, entry: AuditEntry) -> Result<u64, Error> {
        let what = entry.what.clone();
        let written = tokio::time::timeout(WITHIN, self.log.append(entry)).await;
        let why = match written {
            Ok(Ok(n)) => return Ok(n),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the disk did not answer within {} s", WITHIN.as_secs()),
        };
        tracing::error!(what, why, "the audit cannot be written");
        Err(Error::Failed(format!(
            "the operation was refused, because its audit entry cannot be written: {why}"
        )))
    }

    /// Writes the entries of [`Self::queue`] until the daemon ends.
    pub(crate) async fn work(&self) -> anyhow::Result<()> {
        let mut queued = self.queued.lock().await;
        let mut budget = Budget::new();
        while let Some(entry) = queued.recv().await {
            let Some(left_out) = budget.take() else {
                continue;
            };
            let entry = match left_out {
                0 => entry,
                n => entry.with("left_out_before", n),
            };
            // `record` logs a failure.
            let _ = self.record(entry).await;
        }
        Ok(())
    }
}

/// Limits entries to [`PER_HOUR`].
struct Budget {
    begun: Instant,
    used: u32,
    left_out: u64,
}

impl Budget {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            used: 0,
            left_out: 0,
        }
    }

    /// Number of entries dropped before this one; `None` if this one is dropped.
    fn take(&mut self) -> Option<u64> {
        const HOUR: Duration = Duration::from_secs(3600);
        if self.begun.elapsed() >= HOUR {
            (self.begun, self.used) = (Instant::now(), 0);
        }
        if self.used >= PER_HOUR {
            self.left_out += 1;
            return None;
        }
        self.used += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_store::Records;

    #[tokio::test(start_paused = true)]
    async fn budget_bounds_and_counts_entries() {
        let mut budget = Budget::new();
        let written = (0..1000).filter_map(|_| budget.take()).count();
        assert_eq!(written, 600);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(budget.take(), Some(400));
        assert_eq!(budget.take(), Some(0));
    }

    #[tokio::test]
    async fn unwritable_entry_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let audit = Audit::new(Arc::new(Records::in_state(&file.join("below"))));
        let refused = audit.record(entry("login", "token/x")).await.unwrap_err();
        let begin = "the operation was refused, because its audit entry cannot be written";
        assert!(refused.to_string().starts_with(begin), "{refused}");
    }
}
