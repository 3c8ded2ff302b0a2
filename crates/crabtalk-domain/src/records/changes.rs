//! The journal of changes that runs made to files, from which they are undone.

use super::Error;
use crate::{BoxFuture, ConversationKey};

/// Keeps the journal. Entries are JSON of the tools' own types.
pub trait ChangeJournal: Send + Sync {
    /// Adds entries of a run in order, all or none.
    fn append(
        &self,
        key: &ConversationKey,
        run: u64,
        entries: Vec<String>,
    ) -> BoxFuture<'static, Result<(), Error>>;

    /// The entries of a run, oldest first.
    fn entries(
        &self,
        key: &ConversationKey,
        run: u64,
    ) -> BoxFuture<'static, Result<Vec<String>, Error>>;

    /// Numbers of the runs of a conversation that have entries, highest first.
    fn runs(&self, key: &ConversationKey) -> BoxFuture<'static, Result<Vec<u64>, Error>>;

    /// All runs that have entries, the least recently changed first.
    fn by_age(&self) -> BoxFuture<'static, Result<Vec<(ConversationKey, u64)>, Error>>;

    /// Removes the entries of a run, or those of all runs of a conversation.
    fn remove(
        &self,
        key: &ConversationKey,
        run: Option<u64>,
    ) -> BoxFuture<'static, Result<(), Error>>;
}
