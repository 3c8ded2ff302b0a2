//! What is put into a run that goes on: bounded, told, and kept.

use crate::rig::*;
use crabtalk_testkit::Reply;
use serde_json::json;

#[tokio::test]
async fn steers_that_wait_are_bounded_in_number_and_in_bytes() {
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
async fn what_comes_too_late_for_a_step_is_told_when_it_is_safe() {
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
async fn what_was_put_into_a_run_that_panics_is_kept() {
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

#[tokio::test(start_paused = true)]
async fn a_steer_that_cannot_be_kept_is_told() {
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
            let notice =
                format!("notice a message for the run was not kept, say it again: {content:?}");
            assert!(told.contains(&notice), "{taken_before}: {told:?}");
        }
        let last = told.last().map(String::as_str).unwrap_or_default();
        assert!(last.starts_with("end 5"), "{last}");
        assert!(!told.iter().any(|event| event.starts_with("steered")));
    }
}
