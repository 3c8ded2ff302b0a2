//! `state/delegates`: the numbers of delegates' conversations (CONV-10).
//!
//! Invariant: the file reserves a number before it is used, so that no number is used
//! twice, even after a crash or a removal.

use crabtalk_config::{read_limited, write_atomic};
use crabtalk_domain::BoxFuture;
use crabtalk_domain::storage::Storage;
use crabtalk_runtime::DelegateNumbers;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;

/// Numbers to reserve in one write. Unused ones are lost when the daemon ends.
const BLOCK: u64 = 64;

/// Largest file: one decimal number.
const MAX_BYTES: u64 = 64;

/// The prefix of delegates' senders.
const PREFIX: &str = "delegate:";

pub(crate) struct DelegateFile {
    path: PathBuf,
    storage: Arc<dyn Storage>,
    block: Mutex<Block>,
}

/// Reserved numbers that are unused.
#[derive(Default)]
struct Block {
    next: u64,
    end: u64,
}

impl DelegateFile {
    pub(crate) fn new(path: PathBuf, storage: Arc<dyn Storage>) -> Self {
        Self {
            path,
            storage,
            block: Mutex::default(),
        }
    }

    /// Returns the first free number from the file or, if that is absent, from the
    /// conversations.
    async fn first_free(&self) -> Result<u64, String> {
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || read(&path)).await;
        if let Some(free) = read.map_err(|e| e.to_string())?? {
            return Ok(free);
        }
        let known = self.storage.list(None, None).await;
        let known = known.map_err(|e| e.to_string())?;
        let last = known
            .iter()
            .filter_map(|summary| {
                summary
                    .key
                    .sender
                    .as_str()
                    .strip_prefix(PREFIX)?
                    .parse()
                    .ok()
            })
            .max();
        Ok(last.map_or(1, |last: u64| last.saturating_add(1)))
    }
}

fn read(path: &Path) -> Result<Option<u64>, String> {
    let Some(text) = read_limited(path, MAX_BYTES).map_err(|e| e.with_causes())? else {
        return Ok(None);
    };
    let number = text.trim().parse().map_err(|_| {
        format!(
            "{} does not contain a number: write one above all delegate:<n> that ever existed",
            path.display()
        )
    })?;
    Ok(Some(number))
}

impl DelegateNumbers for DelegateFile {
    fn next(&self) -> BoxFuture<'_, Result<u64, String>> {
        Box::pin(async move {
            let mut block = self.block.lock().await;
            if block.next == block.end {
                let free = self.first_free().await?;
                let (path, end) = (self.path.clone(), free.saturating_add(BLOCK));
                let written = tokio::task::spawn_blocking(move || {
                    write_atomic(&path, &format!("{end}\n")).map_err(|e| e.with_causes())
                });
                written.await.map_err(|e| e.to_string())??;
                *block = Block { next: free, end };
            }
            let number = block.next;
            block.next += 1;
            Ok(number)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::ConversationKey;
    use crabtalk_domain::storage::NewConversation;
    use crabtalk_testkit::MemoryStore;

    #[tokio::test]
    async fn numbers_are_unique_over_restarts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("delegates");
        let storage = Arc::new(MemoryStore::default());
        let open = || DelegateFile::new(path.clone(), Arc::clone(&storage) as _);
        let first = open();
        let mut given = Vec::new();
        for _ in 0..70 {
            given.push(first.next().await.unwrap());
        }
        given.push(open().next().await.unwrap());
        assert_eq!(given[0], 1);
        assert!(given.is_sorted_by(|a, b| a < b), "{given:?}");
    }

    #[tokio::test]
    async fn missing_file_is_replaced_by_the_conversations() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Arc::new(MemoryStore::default());
        for sender in ["user", "delegate:7", "delegate:x"] {
            let key = ConversationKey::new("crab", sender).unwrap();
            let opened = storage.open(&key, Some(NewConversation::default())).await;
            assert!(opened.unwrap().is_some());
        }
        let numbers = DelegateFile::new(dir.path().join("delegates"), storage as _);
        assert_eq!(numbers.next().await.unwrap(), 8);
    }

    #[tokio::test]
    async fn invalid_file_is_an_error_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("delegates");
        std::fs::write(&path, "many").unwrap();
        let numbers = DelegateFile::new(path.clone(), Arc::new(MemoryStore::default()));
        assert!(
            numbers
                .next()
                .await
                .unwrap_err()
                .contains("does not contain a number")
        );
        assert_eq!(std::fs::read_to_string(path).unwrap(), "many");
    }
}
