//! A world with senders, an owner and archives, and what is tested in it.

mod archives;
mod entries;
mod runs;
mod senders;
mod shelf;
mod tools;

use super::*;
use crabtalk_domain::storage::{self, LogEntry};
use crabtalk_domain::tool::{Invocation, Subject, ToolOutput, ToolProvider};
use crabtalk_domain::{AgentConfig, AgentName, BoxFuture, Hook, Message, Role, ToolCall};
use shelf::Shelf;
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

struct Noon;

impl Clock for Noon {
    fn now(&self) -> jiff::Timestamp {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }
}

struct World {
    home: tempfile::TempDir,
    shelf: Arc<Shelf>,
    memory: Memory,
}

impl World {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let home = tempfile::tempdir().unwrap();
        let shelf = Arc::new(Shelf::default());
        let memory = Memory::new(Parts {
            config: home.path().to_owned(),
            settings,
            archives: archives(home.path(), &shelf),
            storage: shelf.clone(),
            owners: Arc::new(|sender: &str| sender == "user"),
            clock: Arc::new(Noon),
        });
        Self {
            home,
            shelf,
            memory,
        }
    }

    /// Simulates a restart of the daemon.
    fn restart(&mut self) {
        self.memory = Memory::new(Parts {
            config: self.home.path().to_owned(),
            settings: self.memory.settings().clone(),
            archives: archives(self.home.path(), &self.shelf),
            storage: self.shelf.clone(),
            owners: Arc::new(|sender: &str| sender == "user"),
            clock: Arc::new(Noon),
        });
    }

    /// Indexes the pending archives.
    async fn rest(&self) {
        self.memory.archives().fill().await;
    }

    /// Whether all archives are indexed.
    async fn is_idle(&self) -> bool {
        tokio::select! {
            biased;
            () = self.rest() => false,
            () = tokio::task::yield_now() => true,
        }
    }

    fn pages_read(&self) -> usize {
        self.shelf.pages.swap(0, Ordering::Relaxed)
    }

    fn archive(&self, sender: &str, messages: &[Message]) {
        let mut archives = self.shelf.archives.lock().unwrap();
        archives
            .entry(key(sender))
            .or_default()
            .push(messages.to_vec());
    }

    async fn remember(&self, sender: &str, name: &str, content: &str) -> Result<(), String> {
        self.share(sender, name, content, None).await
    }

    async fn share(
        &self,
        sender: &str,
        name: &str,
        content: &str,
        shared: Option<bool>,
    ) -> Result<(), String> {
        let entry = NewEntry {
            name: name.into(),
            content: content.into(),
            shared,
            ..NewEntry::default()
        };
        self.memory
            .remember(&viewer(sender), entry)
            .await
            .map_err(|e| e.to_string())
    }

    async fn titles(&self, sender: &str, query: &str) -> Vec<String> {
        let hits = self.memory.recall(&viewer(sender), query, 10).await.hits;
        hits.into_iter().map(|hit| hit.title).collect()
    }

    /// The text injected into a run for a message.
    async fn injected(&self, sender: &str, said: &str) -> String {
        let history = [Arc::new(Message::user(said))];
        let origin = crabtalk_domain::Origin::local();
        let messages = self
            .memory
            .on_before_run(run_of(&key(sender), &origin, &agent()), &history, &Nobody)
            .await;
        assert!(messages.iter().all(|m| m.auto_injected));
        messages
            .iter()
            .map(|m| m.content.as_str())
            .collect::<Vec<_>>()
            .join("\n")
    }

    async fn call(&self, sender: &str, name: &str, arguments: serde_json::Value) -> ToolOutput {
        let call = Invocation {
            key: key(sender),
            origin: crabtalk_domain::Origin::local(),
            run: 1,
            root: (key(sender), 1),
            agent: Arc::new(AgentConfig::new(AgentName::new("crab").unwrap(), "")),
            call_id: "1".into(),
            name: name.into(),
            arguments,
            cwd: "/".into(),
        };
        match self.memory.subject(&call).await {
            Err(reason) => ToolOutput::error(reason),
            Ok(subject) => {
                assert_eq!(subject, Subject::Other);
                self.memory.call(&call, &subject).await
            }
        }
    }
}

fn archives(home: &std::path::Path, shelf: &Arc<Shelf>) -> ArchiveIndex {
    let indexes = crabtalk_store::Indexes::in_state(&home.join("state"));
    ArchiveIndex::new(indexes.passages(), shelf.clone())
}

fn key(sender: &str) -> ConversationKey {
    ConversationKey::new("crab", sender).unwrap()
}

fn viewer(sender: &str) -> Viewer {
    Viewer::of(
        &key(sender),
        &crabtalk_domain::Origin::local(),
        &|s: &str| s == "user",
    )
}

fn said(role: Role, text: &str, at: &str) -> Message {
    let mut message = Message::new(role, text);
    message.at = at.into();
    message
}

struct Nobody;

impl crabtalk_domain::People for Nobody {
    fn ask<'a>(
        &'a self,
        _: crabtalk_domain::AskQuestion,
    ) -> crabtalk_domain::BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

fn agent() -> crabtalk_domain::AgentConfig {
    crabtalk_domain::AgentConfig::new(key("user").agent, "")
}

fn run_of<'a>(
    key: &'a ConversationKey,
    origin: &'a crabtalk_domain::Origin,
    agent: &'a crabtalk_domain::AgentConfig,
) -> crabtalk_domain::RunContext<'a> {
    crabtalk_domain::RunContext {
        key,
        origin,
        agent,
        cwd: std::path::Path::new("/"),
        run: 1,
        for_owner: true,
        has_archives: true,
    }
}

/// Memories of a cron run belong to the creator of the cron entry.
#[test]
fn cron_run_sees_entries_of_its_creator() {
    let owners = |sender: &str| sender == "user";
    let key = ConversationKey::new("crab", "cron").expect("valid");
    for (by, is_owner, sender) in [
        ("user", true, "user"),
        ("tg:1", false, "tg:1"),
        ("", false, "cron"),
    ] {
        let origin = crabtalk_domain::Origin::Cron {
            id: 1,
            by: by.into(),
        };
        let viewer = Viewer::of(&key, &origin, &owners);
        assert_eq!(
            (viewer.is_owner, viewer.sender.as_str()),
            (is_owner, sender)
        );
        assert_eq!(viewer.conversation, key);
    }
}
