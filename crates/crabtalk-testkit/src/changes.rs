//! A journal of file changes in memory.

use crabtalk_domain::records::{ChangeJournal, Error};
use crabtalk_domain::{BoxFuture, ConversationKey};
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A [`ChangeJournal`] in memory.
#[derive(Debug, Default)]
pub struct MemoryChanges(Mutex<Vec<((ConversationKey, u64), String)>>);

impl MemoryChanges {
    fn entries(&self) -> MutexGuard<'_, Vec<((ConversationKey, u64), String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn done<T: Send + 'static>(value: T) -> BoxFuture<'static, Result<T, Error>> {
    Box::pin(ready(Ok(value)))
}

impl ChangeJournal for MemoryChanges {
    fn append(
        &self,
        key: &ConversationKey,
        run: u64,
        entries: Vec<String>,
    ) -> BoxFuture<'static, Result<(), Error>> {
        let of_run = entries.into_iter().map(|entry| ((key.clone(), run), entry));
        self.entries().extend(of_run);
        done(())
    }

    fn entries(
        &self,
        key: &ConversationKey,
        run: u64,
    ) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        let all = self.entries();
        let of_run = all.iter().filter(|((k, r), _)| k == key && *r == run);
        done(of_run.map(|(_, entry)| entry.clone()).collect())
    }

    fn runs(&self, key: &ConversationKey) -> BoxFuture<'static, Result<Vec<u64>, Error>> {
        let all = self.entries();
        let mut runs: Vec<u64> = all
            .iter()
            .filter(|((k, _), _)| k == key)
            .map(|((_, r), _)| *r)
            .collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        runs.dedup();
        done(runs)
    }

    fn by_age(&self) -> BoxFuture<'static, Result<Vec<(ConversationKey, u64)>, Error>> {
        let mut latest_first = Vec::new();
        for (run, _) in self.entries().iter().rev() {
            if !latest_first.contains(run) {
                latest_first.push(run.clone());
            }
        }
        latest_first.reverse();
        done(latest_first)
    }

    fn remove(
        &self,
        key: &ConversationKey,
        run: Option<u64>,
    ) -> BoxFuture<'static, Result<(), Error>> {
        let is_removed =
            |(k, r): &(ConversationKey, u64)| k == key && run.is_none_or(|run| run == *r);
        self.entries().retain(|(of, _)| !is_removed(of));
        done(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::records;

    #[tokio::test]
    async fn journal_in_memory_fulfils_the_contract() {
        let journal = MemoryChanges::default();
        records::changes(|| &journal).await;
    }
}
