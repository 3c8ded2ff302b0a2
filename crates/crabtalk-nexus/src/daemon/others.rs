//! Which runs begin in the conversations of the team, whoever begins them.
//!
//! Invariants: one connection for all of them, which comes back with the daemon;
//! of each conversation the last run is known, never a queue of them; it ends
//! when it is dropped.

use super::SENDER;
use crabtalk_client::{AgentEventKind, Client, Starter, SubscribeEvents, WatchNews};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Between two tries to reach a daemon that is not there: soon, then seldom.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// A daemon that is away for longer than the pauses up to this one, some seconds, is
/// not being restarted by somebody else.
const AWAY: Duration = Duration::from_secs(1);

type Conversations = BTreeMap<String, watch::Sender<u64>>;

/// The watch over the conversations of some agents.
#[derive(Debug)]
pub struct Others {
    begun: BTreeMap<String, watch::Receiver<u64>>,
    _task: JoinSet<()>,
}

impl Others {
    /// Watches over these agents of the daemon.
    /// Starts the daemon with this when it is away.
    pub fn watch(
        client: Client,
        agents: impl IntoIterator<Item = String>,
        starter: Option<Starter>,
    ) -> Self {
        let mut conversations = Conversations::new();
        let mut begun = BTreeMap::new();
        for agent in agents {
            let (sender, receiver) = watch::channel(0);
            // No two names of agents differ by case alone.
            let agent = agent.to_lowercase();
            conversations.insert(agent.clone(), sender);
            begun.insert(agent, receiver);
        }
        let mut task = JoinSet::new();
        if !conversations.is_empty() {
            task.spawn(follow(client, conversations, starter));
        }
        Self { begun, _task: task }
    }

    /// The number of the run that began last in the conversation of an agent; 0
    /// before any.
    pub(super) fn begun(&self, agent: &str) -> watch::Receiver<u64> {
        let known = self.begun.get(&agent.to_lowercase());
        known.cloned().unwrap_or_else(|| watch::channel(0).1)
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
            if event.kind == i32::from(AgentEventKind::RunStarted)
                && let Some(last) = conversations.get(&event.agent.to_lowercase())
            {
                last.send_replace(event.run);
            }
        }
        tokio::time::sleep(pause).await;
        if let Some(starter) = starter.as_ref().filter(|_| pause >= AWAY) {
            // Agents say why they wait; it is tried again with the next pause.
            let _ = client.find_or_start(starter).await;
        }
        pause = (pause * 2).min(PAUSES.1);
    }
}
