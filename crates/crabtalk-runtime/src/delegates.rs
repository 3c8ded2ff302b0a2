//! The port for the numbers of members' conversations.

use crabtalk_domain::BoxFuture;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers for the senders `delegate:<n>` (CONV-10).
pub trait DelegateNumbers: Send + Sync {
    /// Returns a number that was never returned before, also across restarts. The error
    /// names the file and its fault.
    fn next(&self) -> BoxFuture<'_, Result<u64, String>>;
}

/// Numbers for a runtime whose conversations end with it.
impl DelegateNumbers for AtomicU64 {
    fn next(&self) -> BoxFuture<'_, Result<u64, String>> {
        let number = self.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Ok(number)))
    }
}
