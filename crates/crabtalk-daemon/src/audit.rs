//! The record of who did what (REMOTE-2).
//!
//! Invariants: what needs an entry has it on the disk before it is done, or is not
//! done; what only stops something is never refused for want of an entry; what
//! nobody waits for is bounded, and says how much was left out.

mod security;

pub(crate) use security::Security;

use crabtalk_audit::{AuditEntry, Check, Error, Log, Page};
use crabtalk_domain::{Clock, SystemClock, stamp};
use crabtalk_proto::{Status, code};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

/// How long an entry may take. A disk that does not answer gets no action.
const WITHIN: Duration = Duration::from_secs(20);

/// Entries that nobody waits for and that wait for the disk.
const LATER: usize = 256;

/// So many of them are written in an hour; what is beyond is counted. A day of
/// that is a few megabytes, whoever wants to fill the disk.
const PER_HOUR: u32 = 600;

/// To the service that writes what nobody waits for.
static TELL: OnceLock<mpsc::Sender<AuditEntry>> = OnceLock::new();

/// Writes the record. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Audit(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    log: Mutex<Log>,
    /// One turn at the log: a thread waits for the disk, and no second one for it.
    turn: Arc<Semaphore>,
    /// What nobody waits for, until the service takes it.
    later: Mutex<Option<mpsc::Receiver<AuditEntry>>>,
}

/// A new entry, now.
pub(crate) fn entry(what: &str, by: impl ToString) -> AuditEntry {
    AuditEntry::new(stamp(SystemClock.now()), what, by)
}

/// Tells something that nobody waits for. What there is no room for is lost, and
/// the log has it all the same.
pub(crate) fn tell(entry: AuditEntry) {
    if let Some(tell) = TELL.get() {
        let _ = tell.try_send(entry);
    }
}

impl Audit {
    /// Of a folder; nothing is read or made before the first entry.
    pub(crate) fn new(folder: &Path) -> Self {
        let (tell, told) = mpsc::channel(LATER);
        // A second daemon in one process, as tests have it, keeps the first.
        let later = TELL.set(tell).is_ok().then_some(told);
        Self(Arc::new(Inner {
            folder: folder.to_owned(),
            log: Mutex::new(Log::new(folder)),
            turn: Arc::new(Semaphore::new(1)),
            later: Mutex::new(later),
        }))
    }

    /// Writes an entry: it is on the disk when this returns.
    pub(crate) async fn record(&self, entry: AuditEntry) -> Result<u64, Status> {
        let what = entry.what.clone();
        let written = tokio::time::timeout(WITHIN, self.append(entry)).await;
        let why = match written {
            Ok(Ok(n)) => return Ok(n),
            Ok(Err(error)) => error,
            Err(_) => format!("the disk did not answer within {} s", WITHIN.as_secs()),
        };
        tracing::error!(what, why, "the audit cannot be written");
        Err(Status::new(
            code::INTERNAL,
            format!("nothing was done, because it cannot be recorded: the audit: {why}"),
        ))
    }

    async fn append(&self, entry: AuditEntry) -> Result<u64, String> {
        let turn = Arc::clone(&self.0.turn).acquire_owned().await;
        let turn = turn.map_err(|e| e.to_string())?;
        let inner = Arc::clone(&self.0);
        let writing = tokio::task::spawn_blocking(move || {
            // Also if nobody waits any more.
            let _turn = turn;
            let mut log = inner.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.append(entry)
        });
        let written = writing.await.map_err(|e| e.to_string())?;
        written.map_err(|e: Error| e.to_string())
    }

    pub(crate) async fn latest(&self, before: Option<u64>, limit: usize) -> Result<Page, Status> {
        let folder = self.0.folder.clone();
        read(move || crabtalk_audit::latest(&folder, before, limit)).await
    }

    pub(crate) async fn check(&self) -> Result<Check, Status> {
        let turn = Arc::clone(&self.0.turn).acquire_owned().await;
        let turn = turn.map_err(|e| Status::internal(e.to_string()))?;
        let folder = self.0.folder.clone();
        read(move || {
            // Not while a line is being written.
            let _turn = turn;
            crabtalk_audit::check(&folder)
        })
        .await
    }

    fn take_later(&self) -> Option<mpsc::Receiver<AuditEntry>> {
        let mut later = self.0.later.lock().unwrap_or_else(PoisonError::into_inner);
        later.take()
    }

    /// Writes what nobody waits for, for as long as the daemon runs.
    pub(crate) async fn work(&self) -> anyhow::Result<()> {
        let Some(mut later) = self.take_later() else {
            return std::future::pending().await;
        };
        let mut budget = Budget::new();
        while let Some(entry) = later.recv().await {
            let Some(left_out) = budget.take() else {
                continue;
            };
            let entry = match left_out {
                0 => entry,
                n => entry.with("left_out_before", n),
            };
            // It is in the log, which `record` has told too.
            let _ = self.record(entry).await;
        }
        Ok(())
    }
}

async fn read<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Status> {
    let read = tokio::task::spawn_blocking(read).await;
    let read = read.map_err(|e| Status::internal(e.to_string()))?;
    read.map_err(|e| Status::internal(format!("the audit cannot be read: {e}")))
}

/// So many in an hour.
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

    /// How many were left out before this one; `None` if this one is.
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

    #[tokio::test(start_paused = true)]
    async fn what_nobody_waits_for_is_bounded_and_counted() {
        let mut budget = Budget::new();
        let written = (0..1000).filter_map(|_| budget.take()).count();
        assert_eq!(written, 600);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(budget.take(), Some(400));
        assert_eq!(budget.take(), Some(0));
    }

    #[tokio::test]
    async fn what_cannot_be_recorded_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let audit = Audit::new(&file.join("below"));
        let refused = audit.record(entry("login", "token/x")).await.unwrap_err();
        assert_eq!(refused.code, 500);
        let begin = "nothing was done, because it cannot be recorded";
        assert!(refused.message.starts_with(begin), "{}", refused.message);
        let audit = Audit::new(folder.path());
        assert_eq!(audit.record(entry("login", "token/x")).await.unwrap(), 1);
        assert_eq!(audit.check().await.unwrap().lines, 1);
    }
}
