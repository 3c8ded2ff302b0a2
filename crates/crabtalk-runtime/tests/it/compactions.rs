//! Compactions that hang, are killed, or have nothing to do.

use crate::rig::*;
use crabtalk_domain::storage::Record;
use crabtalk_runtime::{COMPACTION, Error};
use crabtalk_testkit::{Reply, ScriptedModel};
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A compaction on demand, beside the test.
fn compacting(rig: &Rig) -> JoinSet<Result<String, Error>> {
    let (runtime, mut tasks) = (rig.runtime.clone(), JoinSet::new());
    tasks.spawn(async move { runtime.compact(&key(), None).await });
    tasks
}

async fn outcome(tasks: &mut JoinSet<Result<String, Error>>) -> Result<String, Error> {
    let ended = tasks.join_next().await.expect("one task");
    ended.expect("no panic")
}

#[tokio::test(start_paused = true)]
async fn killed_compactions_release_the_queue() {
    let rig = rig(vec![Reply::text("hi"), Reply::hang(), Reply::text("next")]);
    rig.run("hello").await;
    let mut compacting = compacting(&rig);
    rig.model.until(|p| p.hung == 1).await;
    let crab = key();
    // Whether or not a run waits behind it.
    let busy = timeout(Duration::from_secs(1), rig.runtime.remove(&crab)).await;
    assert_eq!(busy.expect("at once").expect_err("busy").code(), 409);
    let mut behind = rig.submit("and now?");
    let waits = behind.waits().await.expect("it waits");
    assert_eq!((waits.ahead, &*waits.origin), (1, COMPACTION));
    let busy = timeout(Duration::from_secs(1), rig.runtime.remove(&crab)).await;
    assert_eq!(busy.expect("at once").expect_err("busy").code(), 409);
    rig.runtime.kill(&key()).expect("it can be killed");
    let error = outcome(&mut compacting).await.expect_err("killed");
    assert_eq!(error.code(), 499);
    let events = timeout(Duration::from_secs(1), read(behind)).await;
    assert!(events.expect("at once").contains(&"next".to_owned()));
    let over = rig.runtime.kill(&crab).expect_err("nothing goes on");
    assert_eq!(over.code(), 404);
    rig.runtime.remove(&crab).await.expect("nothing goes on");
    rig.model_was_content();
}

#[tokio::test(start_paused = true)]
async fn compactions_have_a_timeout_and_end_at_shutdown() {
    let rig = rig(vec![
        Reply::text("hi"),
        Reply::hang(),
        Reply::hang(),
        Reply::hang(),
    ]);
    rig.run("hello").await;
    let day = Duration::from_secs(86_400);
    let crab = key();
    let gave_up = timeout(day, rig.runtime.compact(&crab, None)).await;
    assert_eq!(gave_up.expect("in time").expect_err("it hangs").code(), 504);
    let mut compacting = compacting(&rig);
    let hung = rig.model.progress().hung;
    rig.model.until(|p| p.hung > hung).await;
    let down = timeout(Duration::from_secs(1), rig.runtime.shutdown()).await;
    down.expect("nothing holds it up");
    let error = outcome(&mut compacting).await.expect_err("going down");
    assert_eq!(error.code(), 503);
}

#[tokio::test]
async fn repeated_compaction_calls_no_model() {
    let replies = ["hi", "They greeted.", "bye", "They parted."].map(Reply::text);
    let rig = rig(replies.to_vec());
    rig.run("hello").await;
    for _ in 0..2 {
        let summary = rig.compact().await;
        assert_eq!(summary, "They greeted.");
    }
    let rig2 = rig_on(ScriptedModel::new(vec![]), rig.store.snapshot(), catalog());
    let summary = rig2.compact().await;
    assert_eq!(summary, "They greeted.");
    assert_eq!(rig.model.requests().len(), 2);
    // New messages are summarised.
    rig.run("until tomorrow").await;
    let summary = rig.compact().await;
    assert_eq!(summary, "They parted.");
}

#[tokio::test]
async fn markers_have_the_state_on_both_sides() {
    let rig = rig(vec![Reply::text("hi"), Reply::text("They met.")]);
    rig.run("hello").await;
    let done = rig.runtime.compact(&key(), None).await;
    assert_eq!(done.expect("compacted"), "They met.");
    let records = rig.store.records(&key());
    let is_marker = |record: &Record| matches!(record, Record::Compact { .. });
    let marker = records.iter().position(is_marker).expect("a marker");
    let [Record::Meta(before), _, Record::Meta(behind)] = &records[marker - 1..=marker + 1] else {
        panic!("{:?}", rig.lines());
    };
    assert!(before.requests.is_some());
    assert_eq!(before.last_run, Some(1));
    // How full the context is follows the marker alone.
    assert!(before.context.is_none() && behind.context.is_some());
    let mut told = before.clone();
    told.context = behind.context;
    assert_eq!(&told, behind);
}

#[tokio::test]
async fn unfinished_todo_lists_survive_compactions() {
    let list = |second: &str| {
        let items = json!([
            {"text": "read", "status": "done"}, {"text": "write", "status": second},
        ]);
        Reply::tool("todo", json!({"items": items}))
    };
    let rig = rig(vec![
        list("in_progress"),
        Reply::text("begun"),
        Reply::text("Work began."),
        Reply::text("still at it"),
        Reply::text("Work went on."),
        list("done"),
        Reply::text("over"),
        Reply::text("All is done."),
    ]);
    let events = rig.run("go").await;
    assert!(
        events.contains(&"result 1 of 2 done".to_owned()),
        "{events:?}"
    );
    let kept = "\n\nThe todo list as it stands:\n[x] read\n[>] write";
    let compact = async || rig.compact().await;
    assert_eq!(compact().await, format!("Work began.{kept}"));
    rig.run("and?").await;
    assert_eq!(
        compact().await,
        format!("Work went on.{kept}"),
        "no call since"
    );
    rig.run("go on").await;
    assert_eq!(compact().await, "All is done.", "nothing is left to do");
    rig.model_was_content();
}
