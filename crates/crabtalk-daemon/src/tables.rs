//! Files of TOML tables that owners edit and clients change: cron entries and
//! subscriptions.
//!
//! Invariant: one thread at a time works on the state of a file, and never a runtime
//! thread, since it may wait for the disk.

use crate::compose::Report;
use crate::error::Error;
use std::sync::{Arc, MutexGuard};

/// A file of tables and its state.
pub(crate) trait TableFile: Sized + Send + Sync + 'static {
    /// The parsed file and its derived state.
    type State;

    /// Locks the state, in a thread that may wait for the disk.
    fn state(&self) -> MutexGuard<'_, Self::State>;

    /// Reads the file if it has not been read.
    fn open(&self, state: &mut Self::State) -> Result<(), Error>;

    /// Works on the state in a thread that may wait for the disk.
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
}

/// Waits for an operation on records. Blocks.
pub(crate) fn wait<T>(operation: impl Future<Output = T>) -> T {
    tokio::runtime::Handle::current().block_on(operation)
}

/// The result of reading a file again: its error, and the errors of single tables.
pub(crate) type Reread = Result<(Option<String>, Vec<String>), Error>;

/// Adds the result to a report; `kept` names what stays in force after an error.
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
