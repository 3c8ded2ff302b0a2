//! The journal of changes that runs made to files, used for undo.

use super::Error;
use crate::{BoxFuture, ConversationKey};

/// Stores the journal. Entries are JSON of the tools' types.
pub trait ChangeJournal: Send + Sync {
    /// Appends entries of a run in order, all or none.
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

    /// Numbers of a conversation's runs with entries, highest first.
    fn runs(&self, key: &ConversationKey) -> BoxFuture<'static, Result<Vec<u64>, Error>>;

    /// All runs with entries, the least recently changed first.
    fn by_age(&self) -> BoxFuture<'static, Result<Vec<(ConversationKey, u64)>, Error>>;

    /// Removes the entries of a run, or those of all runs of a conversation.
    fn remove(
        &self,
        key: &ConversationKey,
        run: Option<u64>,
    ) -> BoxFuture<'static, Result<(), Error>>;
}
