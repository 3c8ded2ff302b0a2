//! Numbers for the conversations of members.

use crabtalk_domain::BoxFuture;
use std::sync::atomic::{AtomicU64, Ordering};

/// Gives `delegate:<n>` its numbers (CONV-10).
pub trait DelegateNumbers: Send + Sync {
    /// A number that was never given before, restarts included. The error
    /// says what happened to which file.
    fn next(&self) -> BoxFuture<'_, Result<u64, String>>;
}

/// Numbers of a runtime whose conversations do not outlive it either.
impl DelegateNumbers for AtomicU64 {
    fn next(&self) -> BoxFuture<'_, Result<u64, String>> {
        let number = self.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Ok(number)))
    }
}
