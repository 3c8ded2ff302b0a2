//! Implements the storage port of the daemon.

use super::MemoryStore;
use super::log::Log;
use crabtalk_domain::storage::{
    ArchiveInfo, Error, Hit, Hits, LogEntry, LogId, LogPart, NewConversation, Opened, Page, Record,
    RunTrace, Search, Storage, Summary, Tracing,
};
use crabtalk_domain::{BoxFuture, ConversationKey};
use std::future::ready;
use std::sync::Arc;

impl Storage for MemoryStore {
    fn open<'a>(
        &'a self,
        key: &'a ConversationKey,
        create: Option<NewConversation>,
    ) -> BoxFuture<'a, Result<Option<Opened>, Error>> {
        Box::pin(async move {
            loop {
                assert!(!self.panics_in_opens(), "a store that panics");
                let opens = Arc::clone(&self.state().opens);
                let woken = opens.notified();
                if !self.state().hold_opens {
                    return self.open_now(key, create);
                }
                woken.await;
            }
        })
    }

    fn list<'a>(
        &'a self,
        agent: Option<&'a str>,
        sender: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>> {
        let state = self.state();
        let logs = state
            .logs
            .iter()
            .filter(|(key, _)| fits(key, agent, sender));
        let summaries = logs.map(|(key, log)| log.summary(key)).collect();
        Box::pin(ready(Ok(summaries)))
    }

    fn page<'a>(
        &'a self,
        source: &'a LogPart,
        before: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, Error>> {
        let state = self.state();
        let (key, archive) = match source {
            LogPart::Conversation(key) => (key, None),
            LogPart::Archive(key, index) => (key, Some(*index as usize)),
            LogPart::Log(id) => return Box::pin(ready(Err(Error::NotFound(id.to_string())))),
        };
        let log = state.logs.get(key);
        let part = log.and_then(|log| match archive {
            None => Some((log, 0..log.records.len())),
            Some(index) => Some((log, log.archive(index)?)),
        });
        let page = part.map(|(log, part)| log.page(part, before, limit));
        Box::pin(ready(page.ok_or_else(|| absent(key))))
    }

    fn entries<'a>(
        &'a self,
        key: &'a ConversationKey,
        indexes: &'a [u64],
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, Error>> {
        let state = self.state();
        let entries = state.logs.get(key).map(|log| {
            let entry = |index: &u64| log.entry(usize::try_from(*index).ok()?);
            indexes.iter().filter_map(entry).collect()
        });
        Box::pin(ready(entries.ok_or_else(|| absent(key))))
    }

    fn search(&self, search: Search) -> BoxFuture<'_, Result<Hits, Error>> {
        let state = self.state();
        let is_wanted = |key: &ConversationKey| {
            fits(key, search.agent.as_deref(), search.sender.as_deref()) && (search.reach)(key)
        };
        let mut hits = Vec::new();
        for (key, log) in state.logs.iter().filter(|(key, _)| is_wanted(key)) {
            let meta = log.current_meta();
            let hit = |message, at: &str, text: &str| {
                let has = |wanted: &String| begins_a_word(text, &wanted.to_lowercase());
                search.words.iter().all(has).then_some(())?;
                Some(Hit {
                    key: key.clone(),
                    title: meta.title.clone(),
                    message,
                    at: at.to_owned(),
                    snippet: search.snippet(text)?,
                })
            };
            hits.extend(hit(None, &meta.created_at, &meta.title));
            for (at, record) in log.records.iter().enumerate() {
                if let Record::Message(message) = record {
                    let index = Some((at as u64, message.role));
                    hits.extend(hit(index, &message.at, &message.content));
                }
            }
        }
        hits.sort_by(|a, b| b.at.cmp(&a.at));
        let incomplete = hits.len() > search.limit;
        hits.truncate(search.limit);
        Box::pin(ready(Ok(Hits { hits, incomplete })))
    }

    fn trace<'a>(
        &'a self,
        key: &'a ConversationKey,
        run: u64,
    ) -> BoxFuture<'a, Result<Option<RunTrace>, Error>> {
        let state = self.state();
        let Some(log) = state.logs.get(key) else {
            return Box::pin(ready(Err(absent(key))));
        };
        let mut tracing = Tracing::of(run);
        let found = log.records.iter().rev().find_map(|record| match record {
            Record::Message(message) => {
                tracing.message(message);
                None
            }
            Record::Run(run) => tracing.run(run).break_value(),
            _ => None,
        });
        Box::pin(ready(Ok(found.flatten())))
    }

    fn archives<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<ArchiveInfo>, Error>> {
        let state = self.state();
        let archives = state.logs.get(key).map(Log::archives);
        Box::pin(ready(archives.ok_or_else(|| absent(key))))
    }

    fn remove<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<(), Error>> {
        let mut state = self.state();
        let removed = state.logs.remove(key).map(|log| {
            state.trash.push((key.clone(), log));
        });
        Box::pin(ready(removed.ok_or_else(|| absent(key))))
    }

    fn trash<'a>(
        &'a self,
        agent: Option<&'a str>,
        sender: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, Error>> {
        let state = self.state();
        let removed = state.trash.iter().rev();
        let removed = removed.filter(|(key, _)| fits(key, agent, sender));
        let removed = removed.map(|(key, log)| log.summary(key)).collect();
        Box::pin(ready(Ok(removed)))
    }

    fn restore<'a>(
        &'a self,
        key: &'a ConversationKey,
        _log: Option<&'a LogId>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let mut state = self.state();
        if state.logs.contains_key(key) {
            return Box::pin(ready(Err(Error::Taken(key.to_string()))));
        }
        let last = state.trash.iter().rposition(|(removed, _)| removed == key);
        let restored = last.map(|at| {
            let (key, log) = state.trash.remove(at);
            state.logs.insert(key, log);
        });
        Box::pin(ready(restored.ok_or_else(|| absent(key))))
    }

    fn log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<Summary, Error>> {
        Box::pin(ready(Err(Error::NotFound(id.to_string()))))
    }

    fn remove_log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(ready(Err(Error::NotFound(id.to_string()))))
    }
}

fn absent(key: &ConversationKey) -> Error {
    Error::NotFound(format!("conversation {key}"))
}

fn fits(key: &ConversationKey, agent: Option<&str>, sender: Option<&str>) -> bool {
    agent.is_none_or(|agent| agent == key.agent.as_str())
        && sender.is_none_or(|sender| sender == key.sender.as_str())
}

/// Whether a word of the text begins with `wanted`.
fn begins_a_word(text: &str, wanted: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    words.any(|word| word.starts_with(wanted))
}
