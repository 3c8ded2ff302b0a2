//! Opening a log, appending to it and syncing it.

use super::MemoryStore;
use super::log::Log;
use crabtalk_domain::storage::{
    ConversationLog, Error, Meta, NewConversation, Opened, Position, Record,
};
use crabtalk_domain::{BoxFuture, ConversationKey};
use std::future::ready;

struct Handle {
    store: MemoryStore,
    key: ConversationKey,
    /// The end of the log after the handle's last append.
    end: usize,
}

impl Handle {
    fn append_now(&mut self, records: &[Record]) -> Result<Position, Error> {
        let mut state = self.store.state();
        if let Some(left) = state.appends_left.as_mut() {
            *left = left.checked_sub(1).ok_or_else(full)?;
        }
        let log = state.logs.entry(self.key.clone()).or_default();
        let is_stored = |record: &&Record| match record {
            Record::Message(message) => !message.auto_injected,
            _ => true,
        };
        log.records
            .extend(records.iter().filter(is_stored).cloned());
        self.end = log.records.len();
        Ok(Position(log.records.len() as u64))
    }
}

fn full() -> Error {
    Error::Unwritable {
        object: "memory".to_owned(),
        source: std::io::ErrorKind::StorageFull.into(),
    }
}

impl ConversationLog for Handle {
    fn append(&mut self, records: &[Record]) -> BoxFuture<'static, Result<Position, Error>> {
        Box::pin(ready(self.append_now(records)))
    }

    fn synced(&self, upto: Position) -> BoxFuture<'static, Result<(), Error>> {
        let mut state = self.store.state();
        if state.hold_syncs {
            return Box::pin(std::future::pending());
        }
        if let Some(log) = state.logs.get_mut(&self.key) {
            log.synced = log.synced.max(upto.0 as usize);
        }
        Box::pin(ready(Ok(())))
    }

    fn is_current(&self) -> BoxFuture<'static, bool> {
        let state = self.store.state();
        let log = state.logs.get(&self.key);
        Box::pin(ready(log.is_some_and(|log| log.records.len() == self.end)))
    }
}

impl MemoryStore {
    pub(super) fn open_now(
        &self,
        key: &ConversationKey,
        create: Option<NewConversation>,
    ) -> Result<Option<Opened>, Error> {
        let mut state = self.state();
        if !state.logs.contains_key(key) {
            let Some(new) = create else {
                return Ok(None);
            };
            if state.appends_left == Some(0) {
                return Err(full());
            }
            let meta = Meta {
                created_at: new.created_at,
                cwd: new.cwd,
                ..Meta::default()
            };
            state.logs.insert(
                key.clone(),
                Log {
                    meta,
                    ..Log::default()
                },
            );
        }
        let log = &state.logs[key];
        let working = log.working();
        let in_history = working.history.len() - usize::from(working.has_summary);
        let opened = Opened {
            log: Box::new(Handle {
                store: self.clone(),
                key: key.clone(),
                end: log.records.len(),
            }),
            meta: log.current_meta(),
            history: working.history,
            has_summary: working.has_summary,
            kept: working.kept,
            archived_messages: (log.messages().len() - in_history) as u64,
            last_run: log.runs().map(|run| run.id).max().unwrap_or(0),
            open_run: log.open_run(),
            requests: log.requests(),
            last_end: log.last_end(),
            waiting: log.waiting(),
            steers: log.steers(),
        };
        Ok(Some(opened))
    }
}
