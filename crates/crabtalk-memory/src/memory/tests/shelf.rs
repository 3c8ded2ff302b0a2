//! A store of archives alone.

use super::*;
use crabtalk_domain::storage::{ArchiveInfo, LogId, NewConversation, Opened, Page, Summary};

/// From an archive's first index to the next one's.
const FAR: u64 = 1 << 32;

/// Archives as a store would give them, and how many pages were read.
#[derive(Default)]
pub(super) struct Shelf {
    pub(super) archives: Mutex<BTreeMap<ConversationKey, Vec<Vec<Message>>>>,
    pub(super) pages: AtomicUsize,
    /// Whether reading a line fails.
    pub(super) broken: AtomicBool,
}

impl Storage for Shelf {
    fn open<'a>(
        &'a self,
        _: &'a ConversationKey,
        _: Option<NewConversation>,
    ) -> BoxFuture<'a, Result<Option<Opened>, storage::Error>> {
        Box::pin(ready(Ok(None)))
    }

    fn list<'a>(
        &'a self,
        _: Option<&'a str>,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, storage::Error>> {
        let keys: Vec<_> = self.archives.lock().unwrap().keys().cloned().collect();
        let summary = |key| Summary {
            key,
            seq: 1,
            superseded: false,
            meta: storage::Meta::default(),
            id: LogId::default(),
            message_count: 0,
            has_open_run: false,
            failed: None,
            modified: std::time::SystemTime::UNIX_EPOCH,
        };
        Box::pin(ready(Ok(keys.into_iter().map(summary).collect())))
    }

    fn page<'a>(
        &'a self,
        source: &'a storage::LogPart,
        before: Option<u64>,
        _: usize,
    ) -> BoxFuture<'a, Result<Page, storage::Error>> {
        self.pages.fetch_add(1, Ordering::Relaxed);
        if self.broken.load(Ordering::Relaxed) {
            let broken = storage::Error::Broken {
                log: "crab_user_1.jsonl".into(),
                line: 7,
                reason: "is no JSON".into(),
            };
            return Box::pin(ready(Err(broken)));
        }
        let storage::LogPart::Archive(key, index) = source else {
            unreachable!("archives only")
        };
        let archives = self.archives.lock().unwrap();
        let messages = &archives[key][*index as usize - 1];
        let first = u64::from(*index) * FAR;
        // Two entries a page, with a marker before the first message.
        let entry = |(at, message): (usize, &Message)| LogEntry {
            index: first + at as u64,
            message: message.clone(),
            compact: at == 0,
        };
        let summary = Message::user("compactedsummary of everything before");
        let all = std::iter::once(&summary)
            .chain(messages)
            .enumerate()
            .map(entry);
        let mut entries: Vec<LogEntry> = all
            .filter(|entry| before.is_none_or(|before| entry.index < before))
            .collect();
        let older = entries.len().saturating_sub(2);
        let page = Page {
            entries: entries.split_off(older),
            more: older > 0,
            ..Page::default()
        };
        Box::pin(ready(Ok(page)))
    }

    fn entries<'a>(
        &'a self,
        key: &'a ConversationKey,
        indexes: &'a [u64],
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, storage::Error>> {
        let archives = self.archives.lock().unwrap();
        let entry = |index: &u64| {
            let archive = archives.get(key)?.get((index / FAR) as usize - 1)?;
            // The first entry is the marker.
            let message = archive.get(((index % FAR) as usize).checked_sub(1)?)?;
            Some(LogEntry {
                index: *index,
                message: message.clone(),
                compact: false,
            })
        };
        Box::pin(ready(Ok(indexes.iter().filter_map(entry).collect())))
    }

    fn archives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<ArchiveInfo>, storage::Error>> {
        let archives = self.archives.lock().unwrap();
        let infos = archives
            .get(key)
            .into_iter()
            .flatten()
            .enumerate()
            .map(|(at, messages)| ArchiveInfo {
                index: at as u32 + 1,
                marker: 0,
                title: format!("Archive {}", at + 1),
                archived_at: "2026-01-01T00:00:00Z".into(),
                message_count: messages.len() as u64,
                summary: "compactedsummary".into(),
            });
        Box::pin(ready(Ok(infos.collect())))
    }

    fn remove<'a>(&'a self, _: &'a ConversationKey) -> BoxFuture<'a, Result<(), storage::Error>> {
        Box::pin(ready(Ok(())))
    }

    fn log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<Summary, storage::Error>> {
        Box::pin(ready(Err(storage::Error::NotFound(id.to_string()))))
    }

    fn remove_log<'a>(&'a self, _: &'a LogId) -> BoxFuture<'a, Result<(), storage::Error>> {
        Box::pin(ready(Ok(())))
    }
}
