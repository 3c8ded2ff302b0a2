//! Listeners get each end once.

use crate::rig::*;
use crabtalk_domain::model::{Error, ErrorKind};
use crabtalk_domain::{BoxFuture, ConversationKey, Origin, RunEnded, RunEnds, Usage};
use crabtalk_runtime::{Catalog, RunRequest};
use crabtalk_testkit::{HeardEnds, MemoryStore, Reply, ScriptedModel};
use serde_json::json;
use std::time::Duration;

fn cron() -> Origin {
    Origin::Cron {
        id: 7,
        by: "user".into(),
    }
}

fn request(content: &str, id: &str) -> RunRequest {
    RunRequest {
        request_id: Some(id.into()),
        origin: cron(),
        ..RunRequest::new(key(), content)
    }
}

/// A rig whose run of `go`, asked for as `r1`, is in flight in a tool.
async fn in_flight() -> Rig {
    let rig = rig(vec![Reply::tool("wait", json!({}))]);
    let mut run = rig.try_submit(request("go", "r1")).expect("accepted");
    read_until(&mut run, "tools").await;
    rig.tools.until_waiting(1).await;
    rig
}

/// The daemon is killed, and another one starts on what it left.
fn after_a_crash(rig: &Rig, replies: Vec<Reply>, catalog: Catalog) -> Rig {
    rig_on(ScriptedModel::new(replies), rig.store.snapshot(), catalog)
}

#[tokio::test(start_paused = true)]
async fn ends_have_key_origin_and_outcome() {
    let usage = Usage {
        prompt_tokens: 10,
        completion_tokens: 2,
        ..Usage::default()
    };
    let rig = rig(vec![Reply::text("done").usage(usage)]);
    rig.send(request("go", "r1")).await;
    let ended = rig.ends.all().pop().expect("it was told");
    assert_eq!(*ended.key, key());
    assert_eq!(ended.speaker, "crab");
    assert_eq!(ended.origin, Some(cron()));
    assert_eq!(ended.request_id, "r1");
    assert_eq!((ended.outcome.run, ended.outcome.code), (1, 0));
    assert_eq!(ended.outcome.usage, Some(usage));
    assert!(ended.outcome.duration.is_some());
    assert_eq!(ended.total.map(|total| total.calls), Some(1));

    // The outcome is the same later.
    let again = after_a_crash(&rig, vec![], catalog());
    let outcome = again.runtime.outcome(&key(), "r1").await.expect("readable");
    let mut told = outcome.expect("it is known");
    // The log keeps milliseconds.
    told.duration = ended.outcome.duration;
    assert_eq!(told, ended.outcome);
    assert_eq!(again.ends.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn ends_have_the_reason_of_failures_and_kills() {
    let rig = rig(vec![
        Reply::Error(Error::new(ErrorKind::Invalid, "no key")),
        Reply::hang(),
    ]);
    rig.run("go").await;
    let mut killed = rig.submit("again");
    read_until(&mut killed, "start").await;
    rig.runtime.kill(&key()).expect("in flight");
    read(killed).await;
    let ends = rig.ends.all();
    let told: Vec<_> = ends
        .iter()
        .map(|e| (e.outcome.code, &*e.outcome.error))
        .collect();
    assert_eq!(told, [(502, "no key"), (499, "cancelled")]);
}

#[tokio::test]
async fn shutdown_ends_runs_with_a_report() {
    let rig = in_flight().await;
    rig.runtime.shutdown().await;
    assert_eq!(rig.ends.lines(), ["(crab, user) 1 503"]);
}

#[tokio::test]
async fn refused_requests_have_no_end() {
    let rig = rig(vec![Reply::text("hello")]);
    rig.store.panic_in_opens(true);
    let events = rig.run("go").await;
    assert!(events[0].starts_with("refused 500"), "{events:?}");
    rig.store.panic_in_opens(false);
    assert_eq!(rig.ends.lines(), Vec::<String>::new());
    let outcome = rig.runtime.outcome(&key(), "r1").await;
    assert_eq!(outcome.expect("readable"), None);
}

#[tokio::test]
async fn interrupted_runs_are_reported_on_request() {
    let killed = in_flight().await;
    assert_eq!(killed.ends.lines(), Vec::<String>::new());

    let rig = after_a_crash(&killed, vec![Reply::text("hello")], catalog());
    let outcome = rig.runtime.outcome(&key(), "r1").await.expect("readable");
    let outcome = outcome.expect("it began");
    assert_eq!((outcome.run, outcome.code), (1, 500));
    assert!(outcome.interrupted);
    assert_eq!(
        (outcome.usage, outcome.duration),
        (None, None),
        "nobody knows"
    );
    let ended = rig.ends.all().pop().expect("it was told");
    assert_eq!(ended.origin, Some(cron()));
    assert_eq!(ended.request_id, "r1");
    assert_eq!(ended.outcome, outcome);
    // Once, also in later lives.
    rig.run("hi").await;
    assert_eq!(
        rig.ends.lines(),
        ["(crab, user) 1 500 cut off", "(crab, user) 2 0"]
    );
    let later = after_a_crash(&rig, vec![], catalog());
    let again = later.runtime.outcome(&key(), "r1").await.expect("readable");
    assert_eq!(again, Some(outcome));
    assert_eq!(later.ends.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn interrupted_runs_are_reported_at_the_next_message() {
    let killed = in_flight().await;
    let rig = after_a_crash(&killed, vec![Reply::text("hello")], catalog());
    rig.run("hi").await;
    assert_eq!(
        rig.ends.lines(),
        ["(crab, user) 1 500 cut off", "(crab, user) 2 0"]
    );
}

#[tokio::test]
async fn resumed_runs_report_their_new_number() {
    let killed = in_flight().await;
    let rig = after_a_crash(&killed, vec![Reply::text("hello")], resuming());
    rig.runtime.resume(&key()).expect("there");
    // Waits for it, since it is what the request has become.
    let outcome = rig.runtime.outcome(&key(), "r1").await.expect("readable");
    let outcome = outcome.expect("it began");
    assert_eq!((outcome.run, outcome.code), (2, 0));
    assert_eq!(
        rig.ends.lines(),
        [
            "(crab, user) 1 500 cut off, carried on as 2",
            "(crab, user) 2 0"
        ]
    );
    let ids: Vec<String> = rig.ends.all().into_iter().map(|e| e.request_id).collect();
    assert_eq!(ids, ["r1", "r1"]);
}

#[tokio::test]
async fn outcome_of_unknown_requests_is_none() {
    let rig = rig(vec![]);
    let absent = ConversationKey::new("crab", "nobody").expect("valid");
    let outcome = rig.runtime.outcome(&absent, "r1").await;
    assert_eq!(outcome.expect("no error"), None);
    assert_eq!(rig.store.lines(&absent), Vec::<String>::new());
}

/// Its answer had room.
#[tokio::test]
async fn runs_fail_if_their_end_cannot_be_written() {
    let rig = rig(vec![Reply::text("hello")]);
    // The message and the answer fit, the end does not.
    rig.store.fail_after(Some(2));
    let events = rig.run("go").await;
    assert!(events.contains(&"hello".to_owned()), "{events:?}");
    assert!(last(&events).starts_with("end 500"), "{events:?}");
    assert_eq!(rig.ends.lines(), ["(crab, user) 1 500"]);
}

#[tokio::test(start_paused = true)]
async fn slow_listeners_delay_the_end_briefly() {
    let rig = rig(vec![Reply::text("hello"), Reply::text("again")]);
    rig.ends.hang(true);
    let events = rig.run("go").await;
    assert_eq!(last(&events), "end 0");
    let mut next = rig.submit("next");
    let waits = tokio::time::timeout(Duration::from_secs(60), next.next()).await;
    assert!(waits.is_err(), "the next run waits until the end is heard");
    rig.ends.hang(false);
    read(next).await;
    assert_eq!(rig.ends.lines(), ["(crab, user) 1 0", "(crab, user) 2 0"]);
}

#[tokio::test]
async fn panicking_listeners_do_not_affect_others() {
    struct Panics;
    impl RunEnds for Panics {
        fn on_run_end<'a>(&'a self, _: &'a RunEnded) -> BoxFuture<'a, ()> {
            panic!("a listener that panics")
        }
    }
    let heard = std::sync::Arc::new(HeardEnds::default());
    let (model, store) = (
        ScriptedModel::new(vec![Reply::text("hello")]),
        MemoryStore::default(),
    );
    let rig = rig_heard_by(
        model,
        store,
        vec![std::sync::Arc::new(Panics), heard.clone()],
    );
    let events = rig.run("go").await;
    assert_eq!(last(&events), "end 0");
    assert_eq!(heard.lines(), ["(crab, user) 1 0"]);
}

/// Members' runs have ends with their origin.
#[tokio::test]
async fn ends_of_members_name_the_parent() {
    let catalog = with_crab(|crab| crab.scope.members = vec!["ada".into()]);
    let tasks = json!({"tasks": [{"agent": "ada", "task": "look"}]});
    let model = ScriptedModel::new(vec![
        Reply::tool("delegate", tasks),
        Reply::text("found"),
        Reply::text("done"),
    ]);
    let rig = rig_on(model, MemoryStore::default(), catalog);
    rig.run("go").await;
    let ends = rig.ends.all();
    assert_eq!(
        rig.ends.lines(),
        ["(ada, delegate:1) 1 0", "(crab, user) 1 0"]
    );
    assert!(
        matches!(ends[0].origin, Some(Origin::Delegate { run: 1, .. })),
        "{:?}",
        ends[0].origin
    );
}
