//! Conversations that call all components, and the outcomes.

use super::{BEASTS, CALM, PROGRAM, beast, calm};
use crate::world::{Chance, World};
use crabtalk_client::Connection;
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{Client, RemoveConversationMsg, StreamEvent, StreamMsg, ToolResultEvent};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Runs of a conversation before a new one replaces it, so that histories
/// stay short.
const TURNS: u64 = 10;

/// Calls and their outcomes.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) ended: u64,
    pub(super) answered: u64,
    /// Failed calls of components with faults.
    pub(super) failed: u64,
}

impl Runs {
    pub(super) fn add(&mut self, other: &Self) {
        self.ended += other.ended;
        self.answered += other.answered;
        self.failed += other.failed;
    }
}

/// A message that calls each of these servers in one step.
fn step(sender: &str, words: &str, servers: &[String], ms: u64) -> StreamMsg {
    let call = |server: &String| {
        let arguments = serde_json::json!({"ms": ms, "text": format!("{server} says {words}")});
        format!("/tool {server}__slow {arguments}")
    };
    let calls: Vec<String> = servers.iter().map(call).collect();
    StreamMsg {
        content: calls.join("\n"),
        sender: Some(sender.into()),
        ..StreamMsg::default()
    }
}

/// Runs a step, which must succeed; returns its results.
async fn run(connection: &mut Connection, request: StreamMsg) -> Vec<ToolResultEvent> {
    let asked = request.content.clone();
    let events: Vec<_> = connection.stream(request).collect().await;
    let events: Vec<StreamEvent> = events
        .into_iter()
        .map(|event| event.unwrap_or_else(|error| panic!("{asked}: {error}")))
        .collect();
    let ends = events.iter().filter_map(|event| match &event.event {
        Some(Event::End(end)) => Some(end),
        _ => None,
    });
    let ends: Vec<_> = ends.collect();
    assert!(
        matches!(ends[..], [end] if end.error.is_empty()),
        "{asked}: {ends:?}"
    );
    let results = events.iter().filter_map(|event| match &event.event {
        Some(Event::ToolResult(result)) => Some(result.clone()),
        _ => None,
    });
    results.collect()
}

/// Runs turns until the end.
pub(super) async fn talk(
    world: Arc<World>,
    number: u64,
    seed: u64,
    until: CancellationToken,
) -> Runs {
    let mut chance = Chance::new(seed ^ (number << 20));
    let mut connection = world.try_connect().await.expect("the daemon is there");
    let mut runs = Runs::default();
    let mut turn = 0;
    loop {
        let sender = format!("talker-{number}-{}", turn / TURNS);
        let (calm, other) = (calm(chance.below(CALM)), beast(chance.below(BEASTS)));
        let other = match chance.below(12) {
            0 => PROGRAM.to_owned(),
            _ => other,
        };
        let words = format!("{number}.{turn}");
        let servers = [calm.clone(), other.clone()];
        let request = step(&sender, &words, &servers, chance.below(400));
        let results = run(&mut connection, request).await;
        assert_eq!(results.len(), 2, "{words}: {results:?}");
        for server in [&calm, &other] {
            let want = format!("{server} says {words}");
            if results.iter().any(|r| !r.is_error && r.output == want) {
                runs.answered += 1;
            } else {
                assert_ne!(*server, calm, "{words}: {results:?}");
                let failed = results.iter().filter(|result| result.is_error).count();
                assert_eq!(failed, 1, "{words}: {results:?}");
                runs.failed += 1;
            }
        }
        runs.ended += 1;
        turn += 1;
        let is_over = until.is_cancelled();
        // Also removes the last one, so that the daemon has none in memory.
        if turn % TURNS == 0 || is_over {
            forget(&mut connection, sender).await;
        }
        if is_over {
            return runs;
        }
        tokio::time::sleep(Duration::from_millis(chance.below(900))).await;
    }
}

async fn forget(connection: &mut Connection, sender: String) {
    let remove = RemoveConversationMsg {
        sender,
        ..RemoveConversationMsg::default()
    };
    connection.remove_conversation(remove).await.unwrap();
}

/// Calls all components; returns the failed results, if any.
pub(super) async fn all_answer(world: &World, round: &str) -> Result<(), Vec<ToolResultEvent>> {
    let all = (0..CALM).map(calm).chain((0..BEASTS).map(beast));
    answers(world, round, all.chain([PROGRAM.to_owned()]).collect()).await
}

pub(super) async fn answers(
    world: &World,
    round: &str,
    all: Vec<String>,
) -> Result<(), Vec<ToolResultEvent>> {
    let mut connection = world.try_connect().await.expect("the daemon is there");
    let mut results = run(&mut connection, step("checks", round, &all, 1)).await;
    assert_eq!(results.len(), all.len(), "{results:?}");
    forget(&mut connection, "checks".into()).await;
    results.retain(|result| result.is_error);
    if results.is_empty() {
        Ok(())
    } else {
        Err(results)
    }
}
