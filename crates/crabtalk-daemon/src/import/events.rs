//! Imports `state/events.jsonl`: waiting events, numbers of finished ones, and the next
//! numbers.

use super::{MAX_BYTES, put_aside};
use crabtalk_config::read_limited;
use crabtalk_domain::records::Event;
use crabtalk_store::Records;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The file's name, also in `state/old`.
const NAME: &str = "events.jsonl";

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Event(Event),
    Done(u64),
    Next { event: u64, subscription: u64 },
}

pub(super) async fn import(state: &Path, records: &Records) -> anyhow::Result<()> {
    let Some(text) = read_limited(&state.join(NAME), MAX_BYTES)? else {
        return Ok(());
    };
    let mut waiting = BTreeMap::new();
    let (mut next_event, mut next_subscription, mut unread) = (1, 1, 0_u64);
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Line::Event(event)) => {
                next_event = next_event.max(event.id + 1);
                waiting.insert(event.id, event);
            }
            Ok(Line::Done(id)) => {
                waiting.remove(&id);
            }
            Ok(Line::Next {
                event,
                subscription,
            }) => {
                next_event = next_event.max(event);
                next_subscription = next_subscription.max(subscription);
            }
            Err(_) => unread += 1,
        }
    }
    let (events, waiting) = (waiting.len(), waiting.into_values().collect());
    let imported = records.import_events(waiting, next_event, next_subscription);
    if imported.await? {
        tracing::info!(events, unread, "the former waiting events were imported");
    }
    put_aside(state, NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::records::Events;
    use std::fs;

    #[tokio::test]
    async fn events_are_imported_once_if_the_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        let event = |id: u64| {
            format!(
                r#"{{"event":{{"id":{id},"source":"ci","payload":"red","depth":1,"fires":[2]}}}}"#
            )
        };
        let next = r#"{"next":{"event":4,"subscription":3}}"#;
        let text = [
            next,
            &event(4),
            &event(5),
            r#"{"done":4}"#,
            r#"{"event":{"id":6,"#,
        ];
        let records = Records::in_state(state);
        let mut waiting = Vec::new();
        // The second import simulates a failed move after the first.
        for _ in 0..2 {
            fs::write(state.join(NAME), text.join("\n")).unwrap();
            import(state, &records).await.unwrap();
            assert!(!state.join(NAME).exists());
            waiting.push(records.waiting().await.unwrap().len());
            records.done(5).await.unwrap();
        }
        assert_eq!(waiting, [1, 0]);
        assert_eq!(records.publish(Event::default(), 1).await.unwrap(), 6);
        assert_eq!(records.next_subscription(1).await.unwrap(), 3);
        for name in [NAME, "events.jsonl.1"] {
            assert!(state.join("old").join(name).exists(), "{name}");
        }
    }
}
