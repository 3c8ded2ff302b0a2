//! Runs the commands of a case.
//!
//! | command | result |
//! |---|---|
//! | `as AGENT SENDER` | chooses the pair of the commands below; the first is `crab user` |
//! | `append RECORD \| RECORD` | creates the conversation if it is absent |
//! | `runs N` | appends the runs from 1 to N |
//! | `sync`, `close`, `current` | of the open log |
//! | `restart`, `cut power`, `disk full`, `disk free` | |
//! | `history`, `meta`, `runs`, `requests`, `waiting`, `steers` | of a new load |
//! | `pages N`, `archives`, `archive I N`, `entries` | pages, newest first |
//! | `list`, `list AGENT SENDER`, `trash` | |
//! | `find N WORDS`, `find AGENT SENDER N WORDS` | `-` is any agent or sender |
//! | `trace RUN`, `remove`, `restore` | |

use super::{Subject, record};
use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::{
    ConversationLog, Error, LogEntry, LogPart, NewConversation, Opened, Page, Position, RunRecord,
    Search, Summary,
};
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

/// An open log with the position after its last record.
type OpenLog = (Box<dyn ConversationLog>, Position);

pub(super) struct Script<S> {
    subject: S,
    key: ConversationKey,
    open: HashMap<ConversationKey, OpenLog>,
    messages: u32,
}

impl<S: Subject> Script<S> {
    pub(super) fn new(subject: S) -> Self {
        Self {
            subject,
            key: key("crab", "user"),
            open: HashMap::new(),
            messages: 0,
        }
    }

    /// The result of a command, or the kind of its error.
    pub(super) async fn run(&mut self, line: &str) -> String {
        let result = match self.change(line).await {
            Some(changed) => changed.map(|()| String::new()),
            None => self.read(line).await,
        };
        result.unwrap_or_else(|error| match error {
            Error::NotFound(_) => "not found".into(),
            Error::Taken(_) => "taken".into(),
            Error::Unwritable { .. } => "unwritable".into(),
            other @ (Error::BadId(_) | Error::Broken { .. } | Error::Io { .. }) => {
                other.to_string()
            }
        })
    }

    /// Runs a command with an effect; `None` for other commands.
    async fn change(&mut self, line: &str) -> Option<Result<(), Error>> {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            "as" => {
                let (agent, sender) = rest.split_once(' ').expect("an agent and a sender");
                self.key = key(agent, sender);
            }
            "append" => return Some(self.append(rest).await),
            "runs" if !rest.is_empty() => {
                for id in 1..=rest.parse::<u64>().expect("a number of runs") {
                    if let Err(error) = self.append(&format!("start {id} | end {id} 0")).await {
                        return Some(Err(error));
                    }
                }
            }
            "sync" => {
                let (log, end) = &self.open[&self.key];
                return Some(log.synced(*end).await);
            }
            "close" => drop(self.open.remove(&self.key)),
            "restart" | "cut" => {
                self.open.clear();
                match command {
                    "cut" => self.subject.cut_power(),
                    _ => self.subject.restart(),
                }
            }
            "disk" => self.subject.set_full(rest == "full"),
            "remove" => {
                self.open.remove(&self.key);
                return Some(self.subject.storage().remove(&self.key).await);
            }
            "restore" => return Some(self.subject.storage().restore(&self.key, None).await),
            _ => return None,
        }
        Some(Ok(()))
    }

    async fn append(&mut self, records: &str) -> Result<(), Error> {
        let create = NewConversation {
            created_at: "2026-11-01T00:00:00Z".into(),
            cwd: "/work".into(),
        };
        let storage = self.subject.storage();
        let loaded = storage.open(&self.key, Some(create)).await?;
        let loaded = loaded.expect("an open that may create returns a log");
        let mut parsed = Vec::new();
        for text in records.split(" | ") {
            self.messages += 1;
            let at = format!("2026-11-01T00:{:02}:00Z", self.messages % 60);
            parsed.push(record::parse(text.trim(), &at, &loaded));
        }
        let entry = self.open.entry(self.key.clone());
        let (log, end) = entry.or_insert_with(|| (loaded.log, Position::default()));
        let now = log.append(&parsed).await?;
        assert!(now > *end, "positions grow");
        *end = now;
        Ok(())
    }

    /// Runs a command without effects.
    async fn read(&self, line: &str) -> Result<String, Error> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let storage = self.subject.storage();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        Ok(match words.as_slice() {
            ["current"] => {
                let is_current = self.open[&self.key].0.is_current().await;
                if is_current { "yes" } else { "no" }.into()
            }
            ["list"] => lines(storage.list(None, None).await?),
            ["list", agent, sender] => lines(storage.list(any(agent), any(sender)).await?),
            ["trash"] => lines(storage.trash(None, None).await?),
            ["pages", _] => {
                let source = LogPart::Conversation(self.key.clone());
                self.pages(&source, number(1)).await?
            }
            ["archive", _, _] => {
                let index = u32::try_from(number(1)).expect("an archive");
                let source = LogPart::Archive(self.key.clone(), index);
                self.pages(&source, number(2)).await?
            }
            ["entries"] => self.entries().await?,
            ["archives"] => {
                let archives = storage.archives(&self.key).await?;
                join(archives.iter().map(|archive| {
                    let (index, count) = (archive.index, archive.message_count);
                    format!("{index} {} {count}", archive.title)
                }))
            }
            ["find", agent, sender, limit, words @ ..] if limit.parse::<usize>().is_ok() => {
                self.find(agent, sender, limit, words).await?
            }
            ["find", limit, words @ ..] => self.find("-", "-", limit, words).await?,
            ["trace", _] => match storage.trace(&self.key, number(1)).await? {
                None => "none".into(),
                Some(trace) => {
                    let answer = trace.answer.unwrap_or_else(|| "no answer".into());
                    let end = trace.end.as_ref();
                    let tokens = end.and_then(|end| end.usage.as_ref());
                    let tokens = tokens.map_or(0, |usage| usage.prompt_tokens);
                    format!("{answer}, {}, {tokens} tokens", ended(end))
                }
            },
            [what] => match storage.open(&self.key, None).await? {
                None => "absent".into(),
                Some(opened) => loaded(what, &opened),
            },
            _ => panic!("{line:?} is not a command"),
        })
    }

    async fn pages(&self, source: &LogPart, limit: u64) -> Result<String, Error> {
        let (mut pages, mut before) = (Vec::new(), None);
        loop {
            let page = self.page(source, before, limit).await?;
            let indexes: Vec<u64> = page.entries.iter().map(|entry| entry.index).collect();
            let limit = before.unwrap_or(u64::MAX);
            assert!(
                indexes.is_sorted_by(|a, b| a < b) && indexes.iter().all(|at| *at < limit),
                "indexes grow: {indexes:?} before {before:?}"
            );
            before = indexes.first().copied();
            let entries = page.entries.iter().map(entry);
            let failed = page.runs.iter().filter(|(_, run)| run.is_failure());
            let failed = failed.map(|(_, run)| format!("!{}", run.code));
            let waiting = page
                .waiting
                .iter()
                .map(|it| format!("+{}", it.message.content));
            let shown: Vec<String> = entries.chain(failed).chain(waiting).collect();
            pages.push(shown.join(" "));
            if !page.more {
                return Ok(pages.join(" / "));
            }
        }
    }

    async fn page(&self, source: &LogPart, before: Option<u64>, limit: u64) -> Result<Page, Error> {
        let limit = usize::try_from(limit).expect("a limit");
        self.subject.storage().page(source, before, limit).await
    }

    /// Reads all entries of the conversation by index, including indexes that do not exist.
    async fn entries(&self) -> Result<String, Error> {
        let source = LogPart::Conversation(self.key.clone());
        let page = self.page(&source, None, 1_000).await?;
        let mut indexes: Vec<u64> = page.entries.iter().map(|entry| entry.index).collect();
        indexes.push(u64::MAX);
        let entries = self.subject.storage().entries(&self.key, &indexes).await?;
        Ok(join(entries.iter().map(entry)))
    }

    async fn find(
        &self,
        agent: &str,
        sender: &str,
        limit: &str,
        words: &[&str],
    ) -> Result<String, Error> {
        let search = Search {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            agent: any(agent).map(str::to_owned),
            sender: any(sender).map(str::to_owned),
            reach: Arc::new(|key| key.sender.as_str() != "hidden"),
            limit: limit.parse().expect("a limit"),
        };
        let found = self.subject.storage().search(search).await?;
        let hits = found.hits.iter();
        let hits = hits.map(|hit| format!("{}: {}", hit.key.sender, hit.snippet));
        let more = found.incomplete.then(|| "more".to_owned());
        Ok(join(hits.chain(more)))
    }
}

/// A part of the loaded conversation.
fn loaded(what: &str, opened: &Opened) -> String {
    match what {
        "history" => join(opened.history.iter().map(|message| {
            let calls = message.tool_calls.iter().map(|call| call.id.as_str());
            let text = calls.collect::<Vec<_>>().join(",") + &message.content;
            format!("{} {text}", message.role.as_str())
        })),
        "meta" => {
            let meta = &opened.meta;
            let own = if meta.own_cwd { " own" } else { "" };
            let context = meta.context.map_or(0, |context| context.used);
            let (title, cwd, secs) = (&meta.title, &meta.cwd, meta.uptime_secs);
            format!("{title:?} {cwd}{own} {secs}s {context}")
        }
        "archived" => {
            let summary = if opened.has_summary { " summary" } else { "" };
            format!("{} kept {}{summary}", opened.archived_messages, opened.kept)
        }
        "runs" => {
            let open = opened.open_run.as_ref();
            let open = open.map_or("none open".into(), |run| match run.tries {
                0 => format!("{} open", run.id),
                tries => format!("{} open after {tries}", run.id),
            });
            format!(
                "last {}, {open}, {}",
                opened.last_run,
                ended(opened.last_end.as_ref())
            )
        }
        "requests" => match opened.requests.as_slice() {
            [first, .., last] => format!("{}-{} {}", first.0, last.0, opened.requests.len()),
            few => join(few.iter().map(|(id, _)| id)),
        },
        "waiting" => join(&opened.waiting),
        "steers" => join(&opened.steers),
        _ => panic!("{what:?} is not a command"),
    }
}

fn ended(end: Option<&RunRecord>) -> String {
    end.map_or("no end".into(), |run| match run.duration_ms {
        None => format!("{} cut off", run.id),
        Some(ms) => format!("{} ended {} in {ms} ms", run.id, run.code),
    })
}

fn entry(entry: &LogEntry) -> String {
    match (entry.compact, entry.message.tool_calls.is_empty()) {
        (true, _) => format!("[{}]", entry.message.content),
        (false, true) => entry.message.content.clone(),
        (false, false) => "calls".into(),
    }
}

fn lines(summaries: Vec<Summary>) -> String {
    let mut shown: Vec<String> = summaries.iter().map(line).collect();
    shown.sort();
    shown.join(" | ")
}

/// A summary: agent and sender, number of messages, title and state.
fn line(summary: &Summary) -> String {
    let (agent, sender) = (&summary.key.agent, &summary.key.sender);
    let open = if summary.has_open_run { " open" } else { "" };
    let failed = summary.failed.as_ref();
    let failed = failed.map_or(String::new(), |run| format!(" failed {}", run.code));
    let title = summary.meta.title.as_str();
    format!(
        "{agent}/{sender} {} {title}{open}{failed}",
        summary.message_count
    )
    .trim_end()
    .into()
}

fn any(name: &str) -> Option<&str> {
    (name != "-").then_some(name)
}

fn key(agent: &str, sender: &str) -> ConversationKey {
    ConversationKey::new(agent, sender).expect("valid names")
}

fn join(parts: impl IntoIterator<Item = impl Display>) -> String {
    let parts = parts.into_iter().map(|part| part.to_string());
    parts.collect::<Vec<_>>().join(" | ")
}
