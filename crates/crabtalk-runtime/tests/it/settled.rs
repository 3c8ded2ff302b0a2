//! Every shown ask ends once, and its viewers are told how.

use crate::rig::*;
use crabtalk_domain::{AgentEvent, ConversationKey};
use crabtalk_runtime::{HubSubscription, RunRequest};
use crabtalk_testkit::Reply;
use serde_json::json;

fn stranger() -> ConversationKey {
    ConversationKey::new("crab", "tg:1").expect("valid")
}

fn danger() -> Vec<Reply> {
    vec![Reply::tool("danger", json!({})), Reply::text("ok")]
}

/// The events of asks in order.
fn of_asks(events: &[String]) -> Vec<&str> {
    let of_ask = |event: &&String| event.starts_with("ask") || event.starts_with("settled");
    let word = |event: &'_ String| -> usize { event.find(' ').unwrap_or(event.len()) };
    let kept = events.iter().filter(of_ask);
    kept.map(|event| match event.starts_with("ask") {
        true => &event[..word(event)],
        false => event.as_str(),
    })
    .collect()
}

/// What watchers of the daemon are told up to the end of a run.
async fn watched(watch: &mut HubSubscription) -> Vec<String> {
    let mut out = Vec::new();
    loop {
        let event = watch.next().await.expect("open").expect("not slow");
        out.push(show(&event.event));
        if let AgentEvent::End(_) = event.event {
            return out;
        }
    }
}

#[tokio::test]
async fn viewers_learn_who_answered_an_ask() {
    for (reply, told, outcome) in [
        ("y", "Allow once", "result done"),
        ("2", "Allow always", "result done"),
        ("no", "Deny", "result! denied by the user"),
        (
            "Deny: not now",
            "Deny: not now",
            "result! denied by the user: not now",
        ),
    ] {
        let rig = rig(danger());
        let mut watch = rig.runtime.watch();
        let mut run = rig.submit("go");
        let mut events = read_until(&mut run, "ask").await;
        let by = async |reply| rig.runtime.reply_from(&key(), None, reply, &laptop()).await;
        assert_eq!(by("perhaps").await.expect_err("unclear").code(), 400);
        by(reply).await.expect("pending");
        events.extend(read(run).await);
        assert_eq!(by(reply).await.expect_err("answered").code(), 404);
        let settled = format!("settled by token/laptop: {told}");
        let want = ["ask", &settled];
        assert_eq!(of_asks(&events), want);
        assert_eq!(of_asks(&watched(&mut watch).await), want);
        // It is told before what came of it.
        let at = events.iter().position(|event| *event == settled);
        assert_eq!(events[at.expect("is told") + 1], outcome);
    }
}

#[tokio::test]
async fn viewers_get_the_answer_that_the_model_gets() {
    let question = json!({"questions": [{"question": "Colour?"}]});
    let rig = rig(vec![Reply::tool("ask_user", question), Reply::text("ok")]);
    let mut run = rig.submit("go");
    read_until(&mut run, "ask").await;
    rig.reply("blue").await;
    let events = read(run).await;
    assert_eq!(
        events[..2],
        [
            r#"settled by local: {"Colour?":"blue"}"#,
            r#"result {"Colour?":"blue"}"#
        ]
    );
}

#[tokio::test]
async fn kill_withdraws_asks_before_the_end() {
    let rig = rig(vec![Reply::tools([
        ("danger", json!({"n": 1})),
        ("ask_user", json!({"question": "Colour?"})),
    ])]);
    let mut watch = rig.runtime.watch();
    let mut run = rig.submit("go");
    read_until(&mut run, "ask").await;
    read_until(&mut run, "ask").await;
    rig.runtime.kill(&key()).expect("in flight");
    let events = read(run).await;
    let withdrawn = "settled: withdrawn";
    assert_eq!(events, [withdrawn, withdrawn, "end 499 cancelled"]);
    let watched = watched(&mut watch).await;
    assert_eq!(of_asks(&watched), ["ask", "ask", withdrawn, withdrawn]);
    assert!(rig.runtime.asks(None, None).is_empty());
    assert!(rig.tools.called().is_empty());
}

#[tokio::test]
async fn unread_answers_are_reported_as_given() {
    let rig = rig(danger());
    let mut run = rig.submit("go");
    read_until(&mut run, "ask").await;
    let whose = key();
    // Both before the run has its turn.
    let reply = rig.runtime.reply(&whose, None, "y");
    let (replied, killed) = tokio::join!(biased; reply, async { rig.runtime.kill(&whose) });
    replied.expect("pending");
    killed.expect("in flight");
    let events = read(run).await;
    assert_eq!(
        events,
        ["settled by local: Allow once", "end 499 cancelled"]
    );
}

#[tokio::test(start_paused = true)]
async fn inbox_timeouts_are_reported_to_watchers() {
    let rig = rig(danger());
    let mut watch = rig.runtime.watch();
    let run = rig
        .try_submit(RunRequest::new(stranger(), "go"))
        .expect("accepted");
    let events = read(run).await;
    assert_eq!(of_asks(&events), Vec::<&str>::new());
    let watched = watched(&mut watch).await;
    assert_eq!(of_asks(&watched), ["ask", "settled: timed out"]);
}

#[tokio::test]
async fn shutdown_withdraws_asks() {
    let rig = rig(danger());
    let mut run = rig.submit("go");
    read_until(&mut run, "ask").await;
    let (events, ()) = tokio::join!(read(run), rig.runtime.shutdown());
    assert_eq!(events[0], "settled: withdrawn");
    assert!(events[1].starts_with("end 503"), "{events:?}");
}
