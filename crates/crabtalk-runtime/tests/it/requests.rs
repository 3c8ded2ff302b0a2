//! A request id never runs twice (CONV-9), and what a crash cut off (STORE-7).

use crate::rig::*;
use crabtalk_domain::AgentEvent;
use crabtalk_runtime::RunRequest;
use crabtalk_testkit::{Reply, ScriptedModel};
use serde_json::json;

fn with_id(content: &str) -> RunRequest {
    under(content, "r1")
}

fn under(content: &str, id: &str) -> RunRequest {
    let mut request = RunRequest::new(key(), content);
    request.request_id = Some(id.into());
    request
}

#[tokio::test]
async fn retries_attach_to_the_run_in_flight() {
    let rig = rig(vec![Reply::hang()]);
    let mut first = rig.try_submit(with_id("hi")).expect("accepted");
    read_until(&mut first, "user hi").await;
    let again = rig.try_submit(with_id("hi")).expect("accepted");
    rig.model.until(|p| p.hung == 1).await;
    rig.model.release();
    assert_eq!(read(first).await, read(again).await[2..]);
    assert_eq!(rig.model.requests().len(), 1);
}

#[tokio::test]
async fn retries_attach_to_queued_runs() {
    let rig = rig(vec![Reply::hang(), Reply::text("second")]);
    let mut first = rig.submit("one");
    read_until(&mut first, "user one").await;
    let second = rig.try_submit(with_id("two")).expect("accepted");
    let again = rig.try_submit(with_id("two")).expect("accepted");
    rig.model.until(|p| p.hung == 1).await;
    rig.model.release();
    assert_eq!(read(second).await, read(again).await);
    assert_eq!(rig.model.requests().len(), 2);
}

#[tokio::test]
async fn retries_get_the_first_answer_after_a_restart() {
    let rig1 = rig(vec![Reply::text("the answer"), Reply::text("another")]);
    read(rig1.try_submit(with_id("hi")).expect("accepted")).await;
    rig1.run("something else").await;
    let want = ["start crab 1", "<text>", "the answer", "</text>", "end 0"];
    assert_eq!(
        read(rig1.try_submit(with_id("hi")).expect("accepted")).await,
        want
    );
    let rig2 = rig_on(ScriptedModel::new(vec![]), rig1.store.snapshot(), catalog());
    assert_eq!(
        read(rig2.try_submit(with_id("hi")).expect("accepted")).await,
        want
    );
    assert!(rig2.model.requests().is_empty());
}

#[tokio::test]
async fn retries_after_compaction_do_not_run_again() {
    let rig = rig(vec![Reply::text("the answer"), Reply::text("Summary.")]);
    read(rig.try_submit(with_id("hi")).expect("accepted")).await;
    rig.runtime.compact(&key(), None).await.expect("compacted");
    let events = read(rig.try_submit(with_id("hi")).expect("accepted")).await;
    assert_eq!(events[0], "start crab 1");
    assert_eq!(rig.model.requests().len(), 2);
}

#[tokio::test]
async fn retries_find_answers_in_archives() {
    let answers = ["a", "b", "c", "Summary.", "d", "e"].map(Reply::text);
    let rig1 = rig(answers.to_vec());
    for id in ["1", "2", "3"] {
        read(rig1.try_submit(under("hi", id)).expect("accepted")).await;
    }
    rig1.runtime.compact(&key(), None).await.expect("compacted");
    for id in ["4", "5"] {
        read(rig1.try_submit(under("hi", id)).expect("accepted")).await;
    }
    let rig2 = rig_on(ScriptedModel::new(vec![]), rig1.store.snapshot(), catalog());
    for rig in [&rig1, &rig2] {
        for (id, answer) in [("1", "a"), ("2", "b"), ("3", "c"), ("4", "d"), ("5", "e")] {
            let events = read(rig.try_submit(under("hi", id)).expect("accepted")).await;
            assert_eq!(events[1..4], ["<text>", answer, "</text>"], "{id}");
            assert_eq!(events.last().map(String::as_str), Some("end 0"));
        }
    }
    assert_eq!(rig1.model.requests().len(), 6);
}

#[tokio::test]
async fn retries_find_answers_of_compacted_runs() {
    let mut small = catalog();
    let mut crab = agent("crab");
    crab.compact_threshold = Some(100);
    small
        .agents
        .insert(crab.name.clone(), std::sync::Arc::new(crab));
    let model = ScriptedModel::new(vec![
        Reply::tool("echo", json!({"text": "x".repeat(1000)})),
        Reply::text("Short."),
        Reply::text("the answer"),
    ]);
    let rig = rig_on(model, crabtalk_testkit::MemoryStore::default(), small);
    let first = read(rig.try_submit(with_id("go")).expect("accepted")).await;
    assert!(first.contains(&"compacted".to_owned()), "{first:?}");
    let rig2 = rig_on(ScriptedModel::new(vec![]), rig.store.snapshot(), catalog());
    for rig in [&rig, &rig2] {
        let again = read(rig.try_submit(with_id("go")).expect("accepted")).await;
        assert_eq!(again[1..4], ["<text>", "the answer", "</text>"]);
    }
}

#[tokio::test]
async fn interrupted_runs_resume_if_configured() {
    let rig1 = rig(vec![Reply::tools([
        ("echo", json!({"text": "kept"})),
        ("wait", json!({})),
    ])]);
    let mut run = rig1.try_submit(with_id("go")).expect("accepted");
    read_until(&mut run, "result kept").await;
    let mut catalog = catalog();
    catalog.resume = true;
    let rig2 = rig_on(
        ScriptedModel::new(vec![Reply::text("done after all"), Reply::text("next")]),
        rig1.store.snapshot(),
        catalog,
    );
    // Whoever comes first sets it going; the retry gets its answer.
    let retried = read(rig2.try_submit(with_id("go")).expect("accepted")).await;
    assert!(
        retried.contains(&"done after all".to_owned()),
        "{retried:?}"
    );
    assert!(rig2.tools.called.lock().expect("not poisoned").is_empty());
    let request = &rig2.model.requests()[0];
    let told: Vec<String> = request
        .messages()
        .map(|m| m.content.chars().take(7).collect())
        .collect();
    assert_eq!(told, ["go", "", "kept", "unknown"]);
    rig2.model_was_content();
}

#[tokio::test]
async fn retries_of_interrupted_runs_report_the_interruption() {
    let rig1 = rig(vec![Reply::hang()]);
    let mut run = rig1.try_submit(with_id("go")).expect("accepted");
    read_until(&mut run, "user go").await;
    let rig2 = rig_on(ScriptedModel::new(vec![]), rig1.store.snapshot(), catalog());
    let events = read(rig2.try_submit(with_id("go")).expect("accepted")).await;
    assert!(
        events.last().is_some_and(|e| e.starts_with("end 500")),
        "{events:?}"
    );
}

#[tokio::test]
async fn watchers_see_the_request_id_on_every_event() {
    let rig = rig(vec![Reply::text("one"), Reply::text("two")]);
    let mut watch = rig.runtime.watch();
    read(rig.try_submit(with_id("hi")).expect("accepted")).await;
    rig.run("without an id").await;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let event = watch.next().await.expect("open").expect("kept");
        let want = if event.run == 1 { "r1" } else { "" };
        assert_eq!(&*event.request_id, want, "{:?}", event.event);
        if matches!(event.event, AgentEvent::End(_)) {
            seen.push(event.run);
        }
    }
    assert_eq!(seen, [1, 2]);
}
