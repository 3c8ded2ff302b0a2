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
async fn retries_find_answers_in_archives() {
    let answers = ["a", "b", "c", "Summary.", "d", "e"].map(Reply::text);
    let rig1 = rig(answers.to_vec());
    for id in ["1", "2", "3"] {
        rig1.send(under("hi", id)).await;
    }
    rig1.compact().await;
    for id in ["4", "5"] {
        rig1.send(under("hi", id)).await;
    }
    let rig2 = rig_on(ScriptedModel::new(vec![]), rig1.store.snapshot(), catalog());
    for rig in [&rig1, &rig2] {
        for (id, answer) in [("1", "a"), ("2", "b"), ("3", "c"), ("4", "d"), ("5", "e")] {
            let events = rig.send(under("hi", id)).await;
            let start = format!("start crab {id}");
            let want = [&start, "<text>", answer, "</text>", "end 0"];
            assert_eq!(events, want, "{id}");
        }
    }
    assert_eq!(rig1.model.requests().len(), 6);
}

#[tokio::test]
async fn retries_find_answers_of_compacted_runs() {
    let small = with_crab(|crab| crab.compact_threshold = Some(100));
    let model = ScriptedModel::new(vec![
        Reply::tool("echo", json!({"text": "x".repeat(1000)})),
        Reply::text("Short."),
        Reply::text("the answer"),
    ]);
    let rig = rig_on(model, crabtalk_testkit::MemoryStore::default(), small);
    let first = rig.send(with_id("go")).await;
    assert!(first.contains(&"compacted".to_owned()), "{first:?}");
    let rig2 = rig_on(ScriptedModel::new(vec![]), rig.store.snapshot(), catalog());
    for rig in [&rig, &rig2] {
        let again = rig.send(with_id("go")).await;
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
    let rig2 = rig_on(
        ScriptedModel::new(vec![Reply::text("done after all"), Reply::text("next")]),
        rig1.store.snapshot(),
        resuming(),
    );
    // The first request resumes it; the retry gets its answer.
    let retried = rig2.send(with_id("go")).await;
    assert!(
        retried.contains(&"done after all".to_owned()),
        "{retried:?}"
    );
    assert!(rig2.tools.called().is_empty());
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
    let events = rig2.send(with_id("go")).await;
    assert!(last(&events).starts_with("end 500"), "{events:?}");
}

#[tokio::test]
async fn watchers_see_the_request_id_on_every_event() {
    let rig = rig(vec![Reply::text("one"), Reply::text("two")]);
    let mut watch = rig.runtime.watch();
    rig.send(with_id("hi")).await;
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
