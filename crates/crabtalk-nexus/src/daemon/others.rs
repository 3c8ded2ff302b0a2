//! Watches the conversations of the team for runs and compactions.
//!
//! Invariants: one connection serves all conversations and reconnects; only the
//! latest news of a conversation is stored; the watch ends on drop.

use super::SENDER;
use crabtalk_client::{AgentEventKind, AgentEventMsg, Client, Starter, SubscribeEvents, WatchNews};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// First and longest pause between two attempts to connect to the daemon.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// Once the pause exceeds this, after some seconds, NEXUS starts the daemon; before that it
/// may be restarting.
const AWAY: Duration = Duration::from_secs(1);

/// The latest news of a conversation.
#[derive(Debug, Clone, Default)]
pub(super) struct News {
    /// The number of the latest run; 0 before the first one.
    pub(super) run: u64,
    /// The request id of that run.
    pub(super) request_id: String,
    /// Compactions outside runs.
    pub(super) compactions: u64,
}

impl News {
    /// Applies an event; returns whether it changed the news.
    fn take(&mut self, event: AgentEventMsg) -> bool {
        if event.kind == i32::from(AgentEventKind::RunStarted) {
            (self.run, self.request_id) = (event.run, event.request_id);
            return true;
        }
        // A compaction within a run is also in that run's stream.
        let is_compaction = event.kind == i32::from(AgentEventKind::Compacted)
            && !event.tool_is_error
            && event.request_id.is_empty();
        self.compactions += u64::from(is_compaction);
        is_compaction
    }
}

type Conversations = BTreeMap<String, watch::Sender<News>>;

/// The watch over the conversations of some agents.
#[derive(Debug)]
pub struct Others {
    news: BTreeMap<String, watch::Receiver<News>>,
    _task: JoinSet<()>,
}

impl Others {
    /// Watches these agents of the daemon, and starts the daemon with `starter`
    /// if it does not run.
    pub fn watch(
        client: Client,
        agents: impl IntoIterator<Item = String>,
        starter: Option<Starter>,
    ) -> Self {
        let mut conversations = Conversations::new();
        let mut news = BTreeMap::new();
        for agent in agents {
            let (sender, receiver) = watch::channel(News::default());
            // Agent names are unique ignoring case.
            let agent = agent.to_lowercase();
            conversations.insert(agent.clone(), sender);
            news.insert(agent, receiver);
        }
        let mut task = JoinSet::new();
        if !conversations.is_empty() {
            task.spawn(follow(client, conversations, starter));
        }
        Self { news, _task: task }
    }

    /// The news of an agent's conversation.
    pub(super) fn news(&self, agent: &str) -> watch::Receiver<News> {
        let known = self.news.get(&agent.to_lowercase());
        known
            .cloned()
            .unwrap_or_else(|| watch::channel(News::default()).1)
    }
}

async fn follow(client: Client, conversations: Conversations, starter: Option<Starter>) {
    let mut pause = PAUSES.0;
    loop {
        let mut watch = client.watch(SubscribeEvents {
            sender: Some(SENDER.into()),
            without_deltas: true,
            ..SubscribeEvents::default()
        });
        while let Some(Ok(news)) = watch.next().await {
            pause = PAUSES.0;
            let WatchNews::Event(event) = news else {
                continue;
            };
            if let Some(last) = conversations.get(&event.agent.to_lowercase()) {
                last.send_if_modified(|news| news.take(*event));
            }
        }
        tokio::time::sleep(pause).await;
        if let Some(starter) = starter.as_ref().filter(|_| pause >= AWAY) {
            // The agents report the failure; the next pause tries again.
            let _ = client.find_or_start(starter).await;
        }
        pause = (pause * 2).min(PAUSES.1);
    }
}
