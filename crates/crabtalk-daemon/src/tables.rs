//! What a node keeps in a file of TOML tables that its owner edits and clients change:
//! cron entries and subscriptions.
//!
//! Invariants: one thread at a time works on what was read, off the runtime's thread, since
//! it may wait for a disk; a change by protocol begins when everything that commands did to
//! the configuration is settled.

use crate::compose::Report;
use crate::error::Error;
use std::sync::{Arc, MutexGuard};

/// A file of tables, and what was read of it.
pub(crate) trait TableFile: Sized + Send + Sync + 'static {
    /// What was read, and what belongs to it.
    type State;

    /// Behind its lock stands a thread that may wait for a disk.
    fn state(&self) -> MutexGuard<'_, Self::State>;

    /// Reads what nobody has read yet.
    fn open(&self, state: &mut Self::State) -> Result<(), Error>;

    /// Works on the state, where that may wait for a disk.
    fn with<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &mut Self::State) -> Result<T, Error> + Send + 'static,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        let this = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let mut state = this.state();
            this.open(&mut state)?;
            work(&this, &mut state)
        });
        async { done.await? }
    }

    /// As [`TableFile::with`], for what writes the file.
    fn change<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &mut Self::State) -> Result<T, Error> + Send + 'static,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        self.with(work)
    }
}

/// Waits for an operation on records, in a thread that may.
pub(crate) fn wait<T>(operation: impl Future<Output = T>) -> T {
    tokio::runtime::Handle::current().block_on(operation)
}

/// What a reload read of a file: why it is not in force, and what is wrong with single tables.
pub(crate) type Reread = Result<(Option<String>, Vec<String>), Error>;

/// Says what a reload read; `kept` is what stays in force where the file is not.
pub(crate) fn report(reread: Reread, kept: &str, report: &mut Report) {
    match reread {
        Ok((broken, found)) => {
            if let Some(broken) = broken {
                report.errors.push(broken);
                report.kept.push(kept.into());
            }
            report.warnings.extend(found);
        }
        Err(error) => report.errors.push(error.to_string()),
    }
}
