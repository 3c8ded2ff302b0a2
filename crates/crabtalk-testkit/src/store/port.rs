//! Implements the storage port of the daemon.

use super::MemoryStore;
use super::log::Log;
use crabtalk_domain::storage::{
    ArchiveInfo, Error, Hit, Hits, LogEntry, LogId, LogPart, NewConversation, Opened, Page, Record,
    RunTrace, Search, Storage, Summary, Tracing,
};
use crabtalk_domain::{BoxFuture, ConversationKey, Message};
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
        let fits = |(key, _): &(&ConversationKey, &Log)| {
            agent.is_none_or(|agent| agent == key.agent.as_str())
                && sender.is_none_or(|sender| sender == key.sender.as_str())
        };
        let summary = |(key, log): (&ConversationKey, &Log)| Summary {
            key: key.clone(),
            seq: 1,
            superseded: false,
            meta: log.current_meta(),
            id: LogId(key.to_string()),
            message_count: log.messages().len() as u64,
            has_open_run: log.open_run().is_some(),
            failed: None,
            modified: std::time::SystemTime::UNIX_EPOCH,
        };
        Box::pin(ready(Ok(state
            .logs
            .iter()
            .filter(fits)
            .map(summary)
            .collect())))
    }

    fn page<'a>(
        &'a self,
        source: &'a LogPart,
        before: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, Error>> {
        let state = self.state();
        let (LogPart::Conversation(key) | LogPart::Archive(key, _)) = source else {
            return Box::pin(ready(Err(Error::NotFound("a file in memory".into()))));
        };
        let Some(log) = state.logs.get(key) else {
            return Box::pin(ready(Err(Error::NotFound(format!("conversation {key}")))));
        };
        let older = |at: &usize| before.is_none_or(|before| (*at as u64) < before);
        let messages = log
            .records
            .iter()
            .enumerate()
            .rev()
            .filter_map(|(at, r)| match r {
                Record::Message(message) if older(&at) => Some((at, message)),
                _ => None,
            });
        let mut entries: Vec<LogEntry> = messages
            .take(limit + 1)
            .map(|(at, message)| LogEntry {
                index: at as u64,
                message: (**message).clone(),
                compact: false,
            })
            .collect();
        let more = entries.len() > limit;
        entries.truncate(limit);
        entries.reverse();
        let from = entries.first().filter(|_| more).map_or(0, |e| e.index);
        let waiting = log.steers().into_iter().filter(|_| before.is_none());
        let waiting = waiting.map(|steer| LogEntry {
            index: log.records.len() as u64,
            message: Message::user(steer),
            compact: false,
        });
        let runs = log.records.iter().enumerate();
        let runs = runs.filter_map(|(at, record)| match record {
            Record::Run(run) if older(&at) && at as u64 >= from => Some((at as u64, run.clone())),
            _ => None,
        });
        let rewinds = log.records.iter().enumerate();
        let rewinds = rewinds.filter_map(|(at, record)| match record {
            Record::Rewind { to, .. } if older(&at) && at as u64 >= from => Some((at as u64, *to)),
            _ => None,
        });
        let page = Page {
            waiting: waiting.collect(),
            rewinds: rewinds.collect(),
            runs: runs.collect(),
            entries,
            more,
        };
        Box::pin(ready(Ok(page)))
    }

    fn entries<'a>(
        &'a self,
        key: &'a ConversationKey,
        indexes: &'a [u64],
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, Error>> {
        let state = self.state();
        let Some(log) = state.logs.get(key) else {
            return Box::pin(ready(Err(Error::NotFound(format!("conversation {key}")))));
        };
        let entry = |index: &u64| match log.records.get(*index as usize)? {
            Record::Message(message) => Some(LogEntry {
                index: *index,
                message: (**message).clone(),
                compact: false,
            }),
            _ => None,
        };
        Box::pin(ready(Ok(indexes.iter().filter_map(entry).collect())))
    }

    fn search(&self, search: Search) -> BoxFuture<'_, Result<Hits, Error>> {
        let state = self.state();
        let is_wanted = |key: &ConversationKey| {
            let fits = |wanted: &Option<String>, name: &str| {
                wanted.as_ref().is_none_or(|wanted| wanted == name)
            };
            fits(&search.agent, key.agent.as_str())
                && fits(&search.sender, key.sender.as_str())
                && (search.reach)(key)
        };
        let mut hits = Vec::new();
        for (key, log) in state.logs.iter().filter(|(key, _)| is_wanted(key)) {
            let meta = log.current_meta();
            let hit = |message, at: &str, text: &str| {
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
            return Box::pin(ready(Err(Error::NotFound(format!("conversation {key}")))));
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
        let records = state
            .logs
            .get(key)
            .map(|log| log.records.as_slice())
            .unwrap_or_default();
        let ends = records.iter().enumerate();
        let ends = ends.filter_map(|(at, record)| match record {
            Record::Compact {
                summary,
                title,
                archived_at,
                ..
            } => Some((at, summary.as_str(), title, archived_at)),
            Record::Reopen {
                title, archived_at, ..
            } => Some((at, "", title, archived_at)),
            _ => None,
        });
        let info =
            |(number, (at, summary, title, archived_at)): (usize, (_, &str, &String, &String))| {
                ArchiveInfo {
                    index: number as u32 + 1,
                    marker: at as u64,
                    title: title.clone(),
                    archived_at: archived_at.clone(),
                    message_count: 0,
                    summary: summary.to_owned(),
                }
            };
        Box::pin(ready(Ok(ends.enumerate().map(info).collect())))
    }

    fn remove<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<(), Error>> {
        let gone = self.state().logs.remove(key);
        Box::pin(ready(
            gone.map(|_| ())
                .ok_or_else(|| Error::NotFound(format!("conversation {key}"))),
        ))
    }

    fn log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<Summary, Error>> {
        Box::pin(ready(Err(Error::NotFound(id.to_string()))))
    }

    fn remove_log<'a>(&'a self, id: &'a LogId) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(ready(Err(Error::NotFound(id.to_string()))))
    }
}
