//! Steering messages: bounded, published and kept.

use crate::rig::*;
use crabtalk_domain::Role;
use crabtalk_domain::storage::{LogPart, Storage};
use crabtalk_testkit::{Reply, ScriptedModel};
use serde_json::json;

#[tokio::test]
async fn waiting_steers_are_bounded_in_number() {
    let rig = rig(vec![Reply::hang()]);
    let mut run = rig.submit("go");
    read_until(&mut run, "user go").await;
    let mut taken = 0;
    let error = loop {
        match rig.runtime.steer(&key(), "left".into()).await {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 10_000, "there is no bound");
    };
    assert_eq!(error.code(), 429);
    assert!(error.to_string().contains(&taken.to_string()), "{error}");
}

#[tokio::test]
async fn large_steers_are_bounded_by_their_bytes() {
    let rig = rig(vec![Reply::hang()]);
    let mut run = rig.submit("go");
    read_until(&mut run, "user go").await;
    let mib = "x".repeat(1 << 20);
    let mut refused = None;
    for _ in 0..64 {
        refused = refused.or(rig.runtime.steer(&key(), mib.clone()).await.err());
    }
    let refused = refused.expect("there is a bound");
    assert_eq!(refused.code(), 429);
    assert!(refused.to_string().contains("4194304 bytes"), "{refused}");
}

#[tokio::test]
async fn late_steers_are_published_once_durable() {
    let rig = rig(vec![Reply::hang()]);
    let mut run = rig.submit("go");
    rig.model.until(|p| p.hung == 1).await;
    read_until(&mut run, "user go").await;
    let taken = rig.runtime.steer(&key(), "left".into()).await;
    taken.expect("a run goes on");
    rig.runtime.kill(&key()).expect("a run goes on");
    read_until(&mut run, "steered left").await;
    let safe = rig.store.power_cut().lines(&key());
    assert!(safe.contains(&"user: left".to_owned()), "{safe:?}");
}

#[tokio::test]
async fn steers_survive_a_panic() {
    let rig = rig(vec![Reply::tools([
        ("wait", json!({})),
        ("boom", json!({})),
    ])]);
    let mut run = rig.submit("go");
    read_until(&mut run, "user go").await;
    let taken = rig.runtime.steer(&key(), "left".into()).await;
    taken.expect("a run goes on");
    read_until(&mut run, "end 500").await;
    assert!(rig.lines().contains(&"user: left".to_owned()));
}

/// A run with accepted steering messages, and a crash before the step that takes them.
async fn cut_off_with_steers(resume: bool, replies: Vec<Reply>, power: bool) -> Rig {
    let rig = rig(vec![Reply::tool("wait", json!({}))]);
    let mut run = rig.submit("go");
    read_until(&mut run, "tools").await;
    rig.tools.until_waiting(1).await;
    for content in ["left", "right"] {
        let taken = rig.runtime.steer(&key(), content.into()).await;
        taken.expect("a run goes on");
    }
    let left = match power {
        true => rig.store.power_cut(),
        false => rig.store.snapshot(),
    };
    let mut catalog = catalog();
    catalog.resume = resume;
    rig_on(ScriptedModel::new(replies), left, catalog)
}

#[tokio::test]
async fn steers_survive_a_crash_in_the_resumed_run() {
    for power in [false, true] {
        let again = cut_off_with_steers(true, vec![Reply::text("turning")], power).await;
        again.runtime.resume(&key()).expect("there");
        again.model.until(|p| p.requests == 1).await;
        let log = again.runtime.attach(&key()).expect("a run goes on");
        let told = read(log.subscribe(0)).await;
        for event in ["steered left", "steered right"] {
            assert!(told.iter().any(|it| it == event), "{told:?}");
        }
        let asked = again.model.requests();
        let said: Vec<_> = asked[0].messages().map(|m| m.content.clone()).collect();
        assert_eq!(said[said.len() - 2..], ["left", "right"], "{said:?}");
        let words = ["user: left".to_owned(), "user: right".to_owned()];
        for word in words {
            let times = again.lines().iter().filter(|line| **line == word).count();
            assert_eq!(times, 1, "{word}");
        }
    }
}

#[tokio::test]
async fn steers_survive_a_crash_for_the_next_run() {
    let again =
        cut_off_with_steers(false, vec![Reply::text("fine"), Reply::text("yes")], true).await;
    let source = LogPart::Conversation(key());
    let page = again.store.page(&source, None, 99).await.expect("reads");
    let shown: Vec<_> = page.waiting.iter().map(|e| &*e.message.content).collect();
    assert_eq!(shown, ["left", "right"]);
    for content in ["go on", "and again"] {
        read(again.submit(content)).await;
    }
    let lines = again.lines();
    let said: Vec<_> = lines
        .iter()
        .filter(|line| line.starts_with("user: "))
        .collect();
    let want = ["go", "left", "right", "go on", "and again"];
    assert_eq!(
        said,
        want.map(|word| format!("user: {word}"))
            .iter()
            .collect::<Vec<_>>()
    );
    // The model is told of them, too, once each.
    let asked = again.model.requests();
    for (request, last) in asked.iter().zip([want.len() - 1, want.len()]) {
        let told = request.messages().filter(|m| m.role == Role::User);
        let told: Vec<_> = told.map(|m| m.content.clone()).collect();
        assert_eq!(told, want[..last]);
    }
    let page = again.store.page(&source, None, 99).await.expect("reads");
    assert!(page.waiting.is_empty());
}

#[tokio::test]
async fn steers_are_refused_if_the_log_fails() {
    let rig = rig(vec![Reply::hang()]);
    let mut run = rig.submit("go");
    read_until(&mut run, "user go").await;
    rig.store.fail_after(Some(0));
    let refused = rig.runtime.steer(&key(), "left".into()).await;
    assert_eq!(refused.expect_err("no room").code(), 500);
    rig.store.fail_after(None);
    rig.runtime.kill(&key()).expect("a run goes on");
    let told = read(run).await;
    assert!(!told.iter().any(|event| event.contains("left")), "{told:?}");
    assert!(!rig.lines().contains(&"user: left".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn untaken_steers_are_reported_and_kept() {
    for (left, taken_before) in [(0, false), (1, true)] {
        let rig = rig(vec![Reply::tool("wait", json!({})), Reply::text("done")]);
        let mut run = rig.submit("go");
        read_until(&mut run, "tools").await;
        rig.tools.until_waiting(1).await;
        for content in ["left", "right"] {
            let taken = rig.runtime.steer(&key(), content.into()).await;
            taken.expect("running");
        }
        // Without room for the result the run ends before it takes them; with
        // room for that alone, while it does.
        rig.store.fail_after(Some(left));
        rig.tools.release.notify_waiters();
        let told = read(run).await;
        for content in ["left", "right"] {
            let notice = format!(
                "notice a steering message came too late for this run; the next run gets it: {content:?}"
            );
            assert!(told.contains(&notice), "{taken_before}: {told:?}");
        }
        let last = told.last().map(String::as_str).unwrap_or_default();
        assert!(last.starts_with("end 5"), "{last}");
        assert!(!told.iter().any(|event| event.starts_with("steered")));
        rig.store.fail_after(None);
        read(rig.submit("go on")).await;
        for word in ["user: left", "user: right"] {
            let times = rig.lines().iter().filter(|line| *line == word).count();
            assert_eq!(times, 1, "{word}");
        }
    }
}
