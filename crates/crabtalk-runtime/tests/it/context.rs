//! How full a context is, as each run's end tells it.

use crate::rig::*;
use crabtalk_domain::{AgentEvent, ContextUse, Usage};
use crabtalk_runtime::{RunRequest, Subscription};
use crabtalk_testkit::{MemoryStore, Reply, ScriptedModel};
use serde_json::json;

fn used(prompt_tokens: u64, completion_tokens: u64) -> Usage {
    Usage {
        prompt_tokens,
        completion_tokens,
        ..Usage::default()
    }
}

async fn end(mut run: Subscription) -> Option<ContextUse> {
    while let Some(next) = run.next().await.expect("it goes on") {
        if let AgentEvent::End(end) = next.event {
            return end.context.map(|context| *context);
        }
    }
    panic!("no end");
}

fn known(used: u64) -> Option<ContextUse> {
    let window = Some(4_000);
    Some(ContextUse { used, window })
}

fn listed(rig: &Rig) -> Option<ContextUse> {
    rig.runtime.live(&key()).and_then(|live| live.meta.context)
}

#[tokio::test]
async fn end_has_the_context_of_the_last_request() {
    let replies = vec![
        Reply::tool("echo", json!({"text": "a"})).usage(used(1_000, 10)),
        Reply::text("done").usage(used(1_200, 20)),
        Reply::text("I am ada").usage(used(50, 1)),
    ];
    let model = ScriptedModel::new(replies).with_context_limit(4_000);
    let rig = rig_on(model, MemoryStore::default(), catalog());
    assert_eq!(end(rig.submit("go")).await, known(1_220));
    assert_eq!(listed(&rig), known(1_220));
    // A guest's window differs: the conversation's use stays.
    let mut guest = RunRequest::new(key(), "and you?");
    guest.guest = Some("ada".into());
    let run = rig.try_submit(guest).expect("accepted");
    assert_eq!(end(run).await, known(51));
    assert_eq!(listed(&rig), known(1_220));
}

#[tokio::test]
async fn context_shrinks_with_compaction_and_survives_restarts() {
    let replies = vec![
        Reply::text("a long answer").usage(used(3_000, 10)),
        Reply::text("Short.").usage(used(3_100, 5)),
    ];
    let model = ScriptedModel::new(replies).with_context_limit(4_000);
    let rig = rig_on(model, MemoryStore::default(), catalog());
    assert_eq!(end(rig.submit("go")).await, known(3_010));
    rig.compact().await;
    let now = listed(&rig).expect("it is known");
    assert!(now.used > 0 && now.used < 100, "{now:?}");
    assert_eq!(now.window, Some(4_000));
    // One that fails before any answer tells what was known.
    let failing = vec![Reply::Error(crabtalk_domain::model::Error::new(
        crabtalk_domain::model::ErrorKind::Refused,
        "no",
    ))];
    let later = rig_on(ScriptedModel::new(failing), rig.store.snapshot(), catalog());
    assert_eq!(end(later.submit("on")).await, Some(now));
}

#[tokio::test]
async fn missing_usage_is_estimated_for_the_context() {
    let model = ScriptedModel::new(vec![Reply::text("fine")]).with_context_limit(4_000);
    let rig = rig_on(model, MemoryStore::default(), catalog());
    let told = end(rig.submit(&"word ".repeat(400))).await;
    let told = told.expect("it is estimated");
    assert!((300..1_500).contains(&told.used), "{told:?}");
}
