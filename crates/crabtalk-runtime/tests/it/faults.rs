//! Panics, crashes in a row, disks that hang: everybody is told once, and
//! nothing goes on for ever.

use crate::rig::*;
use crabtalk_domain::{AgentEvent, BoxFuture, ConversationKey, Hook};
use crabtalk_gate::Disk;
use crabtalk_runtime::{Error, HubSubscription, RunRequest};
use crabtalk_testkit::{MemoryStore, Reply, ScriptedModel};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Notes when runs begin and end.
#[derive(Default)]
pub(crate) struct Ends(Mutex<Vec<String>>);

impl Hook for Ends {
    fn on_event(&self, _: &ConversationKey, event: &AgentEvent) {
        if matches!(event, AgentEvent::Start { .. } | AgentEvent::End(_)) {
            self.0.lock().expect("not poisoned").push(show(event));
        }
    }
}

/// Starts and Ends that a watcher has been told of.
async fn told(mut watcher: HubSubscription) -> Vec<String> {
    let mut told = Vec::new();
    while let Ok(Some(next)) = timeout(Duration::from_millis(1), watcher.next()).await {
        let event = &next.expect("nothing was missed").event;
        if matches!(event, AgentEvent::Start { .. } | AgentEvent::End(_)) {
            told.push(show(event));
        }
    }
    told
}

const PANICKED: &str = "end 500 internal error: the run failed; see the daemon's log";

#[tokio::test(start_paused = true)]
async fn panics_are_reported_once_to_all() {
    let hook = Arc::new(Ends::default());
    let model = ScriptedModel::new(vec![Reply::tool("boom", json!({}))]);
    let rig = rig_with_hook(model, Arc::clone(&hook) as Arc<dyn Hook>);
    let watcher = rig.runtime.watch();
    let events = rig.run("go").await;
    assert_eq!(last(&events), PANICKED);
    let want = ["start crab 1", PANICKED];
    assert_eq!(told(watcher).await, want);
    assert_eq!(*hook.0.lock().expect("not poisoned"), want);
    assert_eq!(rig.ends.lines(), ["(crab, user) 1 500"]);
    assert_eq!(last(&rig.lines()), "run 1 end 500");
}

#[tokio::test]
async fn conversations_continue_after_a_panic() {
    let model = ScriptedModel::new(vec![
        Reply::tool("boom", json!({})),
        Reply::text("hello"),
        Reply::text("again"),
    ]);
    let rig = rig_on(model, MemoryStore::default(), resuming());
    rig.run("go").await;
    for (message, answer, run) in [("one", "hello", 2), ("two", "again", 3)] {
        let events = rig.run(message).await;
        assert_eq!(events[0], format!("start crab {run}"));
        assert!(events.contains(&answer.to_owned()), "{events:?}");
    }
    rig.model_was_content();
}

/// Its task is not lost with it: the next message is answered.
#[tokio::test]
async fn panics_outside_runs_fail_one_command() {
    let rig = rig(vec![Reply::text("hello")]);
    rig.store.panic_in_opens(true);
    let events = rig.run("go").await;
    assert!(events[0].starts_with("refused 500"), "{events:?}");
    let title = rig.runtime.set(&key(), Some("a title".into()), None).await;
    assert!(matches!(title, Err(Error::Panicked)), "{title:?}");
    let summary = rig.runtime.compact(&key(), None).await;
    assert!(matches!(summary, Err(Error::Panicked)), "{summary:?}");
    let over = rig.runtime.kill(&key()).expect_err("nothing goes on");
    assert_eq!(over.code(), 404);
    rig.store.panic_in_opens(false);
    let events = rig.run("go").await;
    assert_eq!(last(&events), "end 0");
}

#[tokio::test]
async fn resumption_stops_after_three_crashes() {
    let rig1 = rig_on(
        ScriptedModel::new(vec![Reply::hang()]),
        MemoryStore::default(),
        resuming(),
    );
    let mut run = rig1.submit("go");
    read_until(&mut run, "user go").await;
    let mut store = rig1.store.snapshot();
    let (mut tries, crab) = (0, key());
    let closed = loop {
        let model = ScriptedModel::new(vec![Reply::hang()]);
        let rig = rig_on(model.clone(), store.clone(), resuming());
        rig.runtime.resume(&key()).expect("accepted");
        // Queued behind it: either the end, or the run resumes.
        tokio::select! {
            () = model.until(|p| p.hung == 1) => {}
            end = rig.runtime.last_end(&crab) => break end.expect("a run"),
        }
        tries += 1;
        assert!(tries < 10, "it is carried on for ever");
        store = store.snapshot();
    };
    assert_eq!(tries, 3);
    assert_eq!(closed.code, 500);
    let rig = rig_on(
        ScriptedModel::new(vec![Reply::text("hello")]),
        store.snapshot(),
        resuming(),
    );
    let events = rig.run("next").await;
    assert!(
        events.iter().any(|event| event.starts_with("interrupted")),
        "{events:?}"
    );
    assert_eq!(last(&events), "end 0");
    rig.model_was_content();
}

#[tokio::test(start_paused = true)]
async fn opening_runs_can_be_killed_and_block_removal() {
    let rig = rig(vec![
        Reply::text("one"),
        Reply::text("fresh"),
        Reply::text("last"),
    ]);
    rig.store.hold_opens(true);
    let run = rig.submit("hi");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let crab = key();
    let busy = timeout(Duration::from_secs(1), rig.runtime.remove(&crab)).await;
    let error = busy.expect("at once").expect_err("a run goes on");
    assert_eq!(error.code(), 409);
    rig.runtime.kill(&key()).expect("a run is in flight");
    rig.store.hold_opens(false);
    assert_eq!(last(&read(run).await), "end 499 cancelled");
    assert_eq!(
        rig.lines(),
        ["run 1 start", "user: hi", "run 1 end 499"],
        "what was said stays"
    );
}

#[tokio::test]
async fn refusals_do_not_replace_the_last_run() {
    let rig = rig_with_hook(
        ScriptedModel::new(vec![Reply::text("hi")]),
        Arc::new(crate::hooks::Everything::default()),
    );
    let hello = || {
        let mut request = RunRequest::new(key(), "hello");
        request.request_id = Some("hello".into());
        rig.try_submit(request).expect("accepted")
    };
    read(hello()).await;
    let last_run = || {
        let log = rig.runtime.attach(&key()).expect("a run is remembered");
        log.end().map(|end| end.code)
    };
    assert_eq!(rig.run("/no").await, ["refused 403: not that"]);
    assert_eq!(last_run(), Some(0));
    // A retry that cannot be told once more is refused as well.
    rig.store.fail_after(Some(0));
    let refused = read(hello()).await;
    assert!(refused[0].starts_with("refused 500"), "{refused:?}");
    assert_eq!(last_run(), Some(0));
}

#[tokio::test]
async fn interruptions_are_reported_after_several_restarts() {
    let rig1 = rig(vec![Reply::hang()]);
    let mut run = rig1.submit("go");
    read_until(&mut run, "user go").await;
    let mut store = rig1.store.snapshot();
    for _ in 0..2 {
        let rig = rig_on(ScriptedModel::new(vec![]), store.clone(), catalog());
        let end = rig.runtime.last_end(&key()).await.expect("a run");
        assert_eq!(
            (end.code, end.error.as_str()),
            (500, "the daemon stopped during this run")
        );
        store = store.snapshot();
    }
    let rig = rig_on(
        ScriptedModel::new(vec![Reply::text("hi")]),
        store,
        catalog(),
    );
    assert_eq!(rig.run("next").await[2], "interrupted 1");
}

#[tokio::test]
async fn failed_runs_keep_their_error_after_a_restart() {
    use crabtalk_domain::model::{Error as ModelError, ErrorKind};
    let failure = ModelError::new(ErrorKind::Refused, "the key is wrong");
    let rig1 = rig(vec![Reply::Error(failure), Reply::text("hi")]);
    rig1.run("go").await;
    let rig2 = rig_on(ScriptedModel::new(vec![]), rig1.store.snapshot(), catalog());
    let end = rig2.runtime.last_end(&key()).await.expect("a run");
    assert_eq!((end.code, end.error.as_str()), (502, "the key is wrong"));
    rig1.run("again").await;
    let source = crabtalk_domain::storage::LogPart::Conversation(key());
    let page = rig1.runtime.storage().page(&source, None, 10).await;
    let page = page.expect("in memory");
    let failed: Vec<(u64, &str)> = page
        .runs
        .iter()
        .filter(|(_, run)| run.is_failure())
        .map(|(_, run)| (run.id, run.error.as_str()))
        .collect();
    assert_eq!(failed, [(1, "the key is wrong")]);
}

/// A disk that does not answer the conversation of a sender, and says so after a
/// while.
struct Dead(&'static str);

impl Disk for Dead {
    fn resolve(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    fn wait_for<'a>(
        &'a self,
        of: &'a str,
        work: Box<dyn FnOnce() + Send>,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            if of.contains(self.0) {
                sleep(Duration::from_secs(10)).await;
                return Err("a mount does not answer".into());
            }
            work();
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn dead_mounts_block_only_calls_that_need_them() {
    let echo = || Reply::tool("echo", json!({"text": "hello"}));
    let model = ScriptedModel::new(vec![
        echo(),
        echo(),
        Reply::text("both"),
        Reply::text("without"),
    ]);
    let rig = rig_of(
        model,
        MemoryStore::default(),
        catalog(),
        Dead("stuck"),
        Arc::new(()),
    );
    let begun = tokio::time::Instant::now();
    let stuck = ConversationKey::new("crab", "stuck").expect("valid");
    let mut stuck = rig
        .try_submit(RunRequest::new(stuck, "go"))
        .expect("accepted");
    read_until(&mut stuck, "tools").await;
    let other = rig.run("hello").await;
    assert_eq!(last(&other), "end 0");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let told = read(stuck).await;
    assert!(
        told.iter().any(|event| event
            .contains("cannot check the permission of the call: a mount does not answer")),
        "{told:?}"
    );
    assert_eq!(last(&told), "end 0");
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn reasoning_without_an_answer_is_a_failure() {
    let thought = || Reply::text("").thinking("hm, well", "proof");
    let after_a_tool = || Reply::tool("echo", json!({}));
    let rig = rig(vec![
        thought(),
        Reply::text("here"),
        after_a_tool(),
        thought(),
    ]);
    let told = rig.run("think").await;
    let end = "end 502 scripted sent reasoning but no answer; say \"go on\", or try again";
    assert_eq!(last(&told), end);
    assert!(told.contains(&"(hm, well)".to_owned()), "{told:?}");
    let told = rig.run("go on").await;
    assert_eq!(last(&told), "end 0", "it goes on from there");
    let told = rig.run("work").await;
    let last = told.last().map(String::as_str);
    assert_eq!(
        last,
        Some("end 0"),
        "after its work a model may have nothing to add"
    );
    rig.model_was_content();
}
