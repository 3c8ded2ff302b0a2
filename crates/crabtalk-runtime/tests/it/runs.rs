//! Runs by their events, logs and requests.

mod tools;

use crate::rig::*;
use crabtalk_domain::model::{Error as ModelError, ErrorKind, ToolChoice};
use crabtalk_domain::{Permission, Role};
use crabtalk_runtime::{RunRequest, Waits};
use crabtalk_testkit::{MemoryStore, Reply, ScriptedModel};
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn answers_stream_and_are_logged() {
    let rig = rig(vec![Reply::pieces(["hi ", "there"]).thinking("hm", "sig")]);
    assert_eq!(
        rig.run("hello").await,
        [
            "start crab 1",
            "user hello",
            "<think>",
            "(hm)",
            "</think>",
            "<text>",
            "hi ",
            "there",
            "</text>",
            "end 0",
        ]
    );
    assert_eq!(
        rig.lines(),
        [
            "run 1 start",
            "user: hello",
            "assistant: hi there",
            "run 1 end 0"
        ]
    );
    rig.model_was_content();
}

#[tokio::test]
async fn tools_run_concurrently_with_results_in_call_order() {
    let rig = rig(vec![
        Reply::tools([("wait", json!({})), ("echo", json!({"text": "fast"}))]),
        Reply::text("done"),
    ]);
    let mut run = rig.submit("go");
    assert_eq!(
        read_until(&mut run, "result").await,
        [
            "start crab 1",
            "user go",
            "tools [\"wait\", \"echo\"]",
            "result fast"
        ]
    );
    rig.tools.until_waiting(1).await;
    rig.tools.release.notify_waiters();
    assert_eq!(
        read(run).await,
        [
            "result waited",
            "complete",
            "<text>",
            "done",
            "</text>",
            "end 0"
        ]
    );
    let requests = rig.model.requests();
    let second: Vec<&str> = requests[1]
        .messages()
        .filter(|m| m.role == Role::Tool)
        .map(|m| m.content.as_str())
        .collect();
    assert_eq!(second, ["waited", "fast"]);
    rig.model_was_content();
}

#[tokio::test]
async fn announced_events_survive_power_cuts() {
    let rig = rig(vec![
        Reply::tool("echo", json!({"text": "x"})),
        Reply::text("done"),
    ]);
    let mut run = rig.submit("go");
    while let Some(next) = run.next().await.expect("not refused") {
        let safe = rig.store.power_cut().lines(&key());
        let has = |line: &str| safe.iter().any(|l| l.starts_with(line));
        match show(&next.event).split(' ').next().unwrap_or_default() {
            "tools" => assert!(has("assistant:")),
            "result" => assert!(has("tool: x")),
            "end" => assert!(has("assistant: done") && has("run 1 end 0")),
            _ => {}
        }
    }
}

#[tokio::test]
async fn calls_are_on_disk_before_they_execute() {
    let rig = rig(vec![
        Reply::tool("echo", json!({"text": "x"})),
        Reply::text("done"),
    ]);
    rig.store.hold_syncs(true);
    let mut run = rig.submit("go");
    let first = run.next().await.expect("not refused").expect("an event");
    assert_eq!(show(&first.event), "start crab 1");
    // The model is called while the disk hangs, and nothing else happens.
    rig.model.until(|p| p.requests == 1).await;
    assert_eq!(rig.store.snapshot().lines(&key())[1], "user: go");
    assert!(rig.tools.called().is_empty());
}

#[tokio::test]
async fn kill_drops_the_partial_answer() {
    let rig = rig(vec![
        Reply::hang_after("half an ans"),
        Reply::text("hello again"),
    ]);
    let mut run = rig.submit("hello");
    read_until(&mut run, "half").await;
    rig.runtime.kill(&key()).expect("a run is in flight");
    assert_eq!(last(&read(run).await), "end 499 cancelled");
    rig.model.until(|p| p.dropped == 1).await;
    assert_eq!(rig.lines(), ["run 1 start", "user: hello", "run 1 end 499"]);
    assert_eq!(rig.runtime.kill(&key()).expect_err("over").code(), 404);
    assert_eq!(last(&rig.run("again").await), "end 0");
    rig.model_was_content();
}

#[tokio::test]
async fn kill_closes_open_calls() {
    let rig = rig(vec![
        Reply::tools([("wait", json!({})), ("echo", json!({"text": "kept"}))]),
        Reply::text("next"),
    ]);
    let mut run = rig.submit("go");
    read_until(&mut run, "result kept").await;
    rig.runtime.kill(&key()).expect("a run is in flight");
    assert_eq!(read(run).await, ["end 499 cancelled"]);
    rig.tools.until_waiting(0).await;
    rig.run("and now?").await;
    let requests = rig.model.requests();
    let tools: Vec<String> = requests[1]
        .messages()
        .filter(|m| m.role == Role::Tool)
        .map(|m| m.content.chars().take(9).collect())
        .collect();
    assert_eq!(tools, ["cancelled", "kept"]);
    rig.model_was_content();
}

#[tokio::test]
async fn crashes_leave_a_valid_history_and_are_reported() {
    let rig1 = rig(vec![Reply::tools([
        ("wait", json!({})),
        ("echo", json!({"text": "kept"})),
    ])]);
    let mut run = rig1.submit("go");
    read_until(&mut run, "result kept").await;
    let store = rig1.store.snapshot();
    let rig2 = rig_on(
        ScriptedModel::new(vec![Reply::text("hi")]),
        store,
        catalog(),
    );
    let events = rig2.run("back").await;
    assert_eq!(events[..3], ["start crab 2", "user back", "interrupted 1"]);
    let requests = rig2.model.requests();
    let roles: Vec<String> = requests[0]
        .messages()
        .map(|m| {
            format!(
                "{} {}",
                m.role.as_str(),
                m.content.chars().take(7).collect::<String>()
            )
        })
        .collect();
    assert_eq!(
        roles,
        [
            "user go",
            "assistant ",
            "tool unknown",
            "tool kept",
            "user back"
        ]
    );
    assert!(rig2.lines().contains(&"run 1 interrupted".to_owned()));
    rig2.model_was_content();
}

#[tokio::test]
async fn runs_queue_per_conversation() {
    let rig = rig(vec![
        Reply::hang(),
        Reply::text("other"),
        Reply::text("second"),
    ]);
    let mut first = rig.submit("one");
    read_until(&mut first, "user one").await;
    rig.model.until(|p| p.hung == 1).await;
    let mut second = rig.submit("two");
    let other = crabtalk_domain::ConversationKey::new("crab", "tg:1").expect("valid");
    let other = rig
        .try_submit(RunRequest::new(other, "hi"))
        .expect("accepted");
    assert_eq!(last(&read(other).await), "end 0");
    assert!(
        second.try_next().is_none(),
        "the second run waits for the first"
    );
    rig.model.release();
    assert_eq!(last(&read(first).await), "end 0");
    assert_eq!(read(second).await[..2], ["start crab 2", "user two"]);
}

#[tokio::test]
async fn queued_runs_report_changes_of_their_place() {
    let rig = rig(vec![Reply::hang(), Reply::hang(), Reply::text("third")]);
    let mut first = rig.submit("one");
    assert_eq!(first.waits().await, None, "nothing is in front");
    rig.model.until(|p| p.hung == 1).await;
    let guest = RunRequest {
        guest: Some("ada".into()),
        ..RunRequest::new(key(), "two")
    };
    let mut second = rig.try_submit(guest).expect("accepted");
    let mut third = rig.submit("three");
    let place = |waits: Option<Arc<Waits>>| {
        let waits = waits.expect("it waits");
        (waits.ahead, waits.origin.clone(), waits.guest.clone())
    };
    let local = || "client:local".to_owned();
    assert_eq!(place(second.waits().await), (1, local(), String::new()));
    assert_eq!(place(third.waits().await), (2, local(), String::new()));
    rig.model.release();
    assert_eq!(second.waits().await, None, "it has begun");
    rig.model.until(|p| p.hung == 2).await;
    let guest = (1, local(), "ada".to_owned());
    assert_eq!(place(third.waits().await), guest);
    rig.model.release();
    assert_eq!(third.waits().await, None);
    assert_eq!(read(third).await[0], "start crab 3");
}

#[tokio::test]
async fn full_queues_refuse_with_429() {
    let mut catalog = catalog();
    catalog.limits.queued_runs = 1;
    let rig = rig_on(
        ScriptedModel::new(vec![Reply::hang()]),
        MemoryStore::default(),
        catalog,
    );
    let mut first = rig.submit("one");
    read_until(&mut first, "user one").await;
    let _waiting = rig.submit("two");
    let error = rig
        .try_submit(RunRequest::new(key(), "three"))
        .expect_err("full");
    assert_eq!(error.code(), 429);
    assert!(
        error.to_string().contains("limit (limits.queued_runs)"),
        "{error}"
    );
}

#[tokio::test]
async fn runs_finish_without_their_client() {
    let rig = rig(vec![Reply::hang(), Reply::text("later")]);
    drop(rig.submit("one"));
    rig.model.until(|p| p.hung == 1).await;
    rig.model.release();
    rig.run("two").await;
    assert_eq!(rig.lines()[2], "assistant: released");
}

#[tokio::test]
async fn bad_requests_leave_no_trace() {
    let rig = rig(vec![]);
    let refused = |request| rig.try_submit(request).expect_err("refused");
    assert_eq!(refused(RunRequest::new(key(), "  ")).code(), 400);
    let nobody = crabtalk_domain::ConversationKey::new("nobody", "user").expect("valid");
    let error = refused(RunRequest::new(nobody, "hi"));
    assert_eq!(error.code(), 404);
    assert_eq!(
        error.to_string(),
        "there is no agent \"nobody\"; there are: ada, crab"
    );
    let mut guest = RunRequest::new(key(), "hi");
    guest.guest = Some("nobody".into());
    assert_eq!(refused(guest).code(), 404);
    assert!(rig.lines().is_empty());
}

#[tokio::test]
async fn model_errors_end_the_run_and_keep_the_question() {
    let error = ModelError::new(ErrorKind::Stalled, "the stream went silent");
    let rig = rig(vec![
        Reply::Error(error),
        Reply::cut("half"),
        Reply::text("ok"),
    ]);
    let last = |events: Vec<String>| events.last().cloned().unwrap_or_default();
    assert_eq!(last(rig.run("one").await), "end 504 the stream went silent");
    assert!(last(rig.run("two").await).starts_with("end 502"));
    assert_eq!(last(rig.run("three").await), "end 0");
    let lines = rig.lines();
    assert!(!lines.iter().any(|line| line.contains("half")), "{lines:?}");
}

#[tokio::test]
async fn endless_calls_end_with_508() {
    let catalog = with_crab(|crab| crab.max_iterations = 2);
    let model = ScriptedModel::answering(|_| Reply::tool("echo", json!({"text": "x"})));
    let rig = rig_on(model, MemoryStore::default(), catalog);
    let events = rig.run("go").await;
    assert!(last(&events).starts_with("end 508"), "{events:?}");
    assert_eq!(rig.model.requests().len(), 2);
}

#[tokio::test]
async fn full_disks_fail_runs_until_there_is_room() {
    let rig = rig(vec![
        Reply::tool("echo", json!({"text": "x"})),
        Reply::text("never kept"),
        Reply::text("fine"),
    ]);
    rig.store.fail_after(Some(2));
    let events = rig.run("go").await;
    assert!(
        events.last().is_some_and(|e| e.contains("make room")),
        "{events:?}"
    );
    let refused = rig.run("still full").await;
    assert!(refused[0].starts_with("refused 500"), "{refused:?}");
    rig.store.fail_after(None);
    let events = rig.run("room again").await;
    assert_eq!(last(&events), "end 0");
    rig.model_was_content();
}

#[tokio::test]
async fn steering_enters_at_the_next_step() {
    let rig = rig(vec![
        Reply::tool("wait", json!({})),
        Reply::hang_after("almost"),
        Reply::text("as you say"),
    ]);
    let mut run = rig.submit("go");
    read_until(&mut run, "tools").await;
    rig.tools.until_waiting(1).await;
    rig.steer("left").await;
    rig.tools.release.notify_waiters();
    read_until(&mut run, "steered left").await;
    read_until(&mut run, "almost").await;
    rig.steer("right").await;
    rig.model.release();
    let rest = read(run).await;
    assert!(rest.contains(&"steered right".to_owned()), "{rest:?}");
    assert_eq!(last(&rest), "end 0");
    assert_eq!(rig.model.requests().len(), 3);
    assert_eq!(
        rig.runtime
            .steer(&key(), "late".into())
            .await
            .expect_err("over")
            .code(),
        404
    );
    rig.model_was_content();
}

#[tokio::test]
async fn shutdown_ends_runs_with_503_and_refuses_new_ones() {
    let rig = rig(vec![Reply::hang()]);
    let mut run = rig.submit("go");
    read_until(&mut run, "user go").await;
    rig.runtime.shutdown().await;
    assert_eq!(read(run).await, ["end 503 the daemon is shutting down"]);
    assert_eq!(
        rig.try_submit(RunRequest::new(key(), "x"))
            .expect_err("down")
            .code(),
        503
    );
}

#[tokio::test(start_paused = true)]
async fn idle_conversations_are_unloaded_and_reloaded() {
    let rig = rig(vec![Reply::text("one"), Reply::text("two")]);
    rig.run("a").await;
    assert_eq!(rig.runtime.load().0, 1);
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    assert_eq!(rig.runtime.load().0, 0);
    assert_eq!(rig.run("b").await[0], "start crab 2");
    assert_eq!(rig.model.requests()[1].history.len(), 3);
}
