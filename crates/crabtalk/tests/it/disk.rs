//! A full disk is a clear error, and work continues once there is room (STORE-5).

mod mounted;

use crate::rig::{Daemon, TestEnv, chunks, end_of, entries, eventually, stream_to_end};
use crabtalk_proto::{
    Client, CreateCronMsg, ListCronRunsMsg, ListSubscriptionsMsg, Ping, PublishEventMsg,
    RunCronMsg, StreamMsg, SubscribeEventMsg,
};
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;
use std::io::Write;
use std::path::Path;

fn say(content: &str) -> StreamMsg {
    StreamMsg {
        content: content.into(),
        ..StreamMsg::default()
    }
}

/// Limits the size of the daemon's files, which simulates a full disk without
/// privileges.
fn limit_files(daemon: &Daemon, bytes: Option<u64>) {
    let limit = Rlimit {
        current: bytes,
        ..getrlimit(Resource::Fsize)
    };
    prlimit(Some(daemon.pid()), Resource::Fsize, limit).unwrap();
}

/// Appends a long line of metadata to a log, so that it is longer than the records with
/// their write-ahead log; returns its length.
fn outgrow_records(log: &Path) -> u64 {
    let mut file = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    let line = json!({"meta": {"unknown": "x".repeat(2 << 20)}});
    writeln!(file, "{line}").unwrap();
    file.metadata().unwrap().len()
}

#[tokio::test]
async fn full_disk_fails_runs_until_there_is_room() {
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    let daemon = env.daemon().await;
    stream_to_end(&env, say("before")).await;
    let log = env.logs().pop().unwrap();
    let size = std::fs::metadata(&log).unwrap().len();
    let before = entries(&env, "crab", "user").await;

    // The user's message does not fit: it is refused.
    limit_files(&daemon, Some(size));
    let refused = env.run(&["ask", "does not fit"]).await.fails(1);
    assert!(refused.contains(".jsonl"), "{refused}");
    assert_eq!(entries(&env, "crab", "user").await, before);
    env.connect().await.ping(Ping {}).await.unwrap();

    // The message fits, the answer does not: the run fails.
    limit_files(&daemon, Some(size + 3000));
    let long = "/tool bash {\"command\":\"seq 3000\"}";
    let events = stream_to_end(&env, say(long)).await;
    let end = end_of(&events);
    assert_eq!(end.code, 500);
    assert!(end.error.contains(".jsonl"), "{end:?}");

    limit_files(&daemon, None);
    let events = stream_to_end(&env, say("after")).await;
    assert!(chunks(&events).contains("You told me: after"));
    let now = entries(&env, "crab", "user").await;
    assert_eq!(now[..before.len()], before[..]);
    assert_eq!(now[now.len() - 2].content, "after");

    // The next daemon has the same history.
    daemon.kill().await;
    let _daemon = env.daemon().await;
    assert_eq!(entries(&env, "crab", "user").await, now);
}

/// A full disk at the scheduled time does not drop acknowledged work.
#[tokio::test]
async fn event_waits_for_disk_space() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let subscribed = connection.subscribe_event(SubscribeEventMsg {
        source: "x".into(),
        target_agent: "crab".into(),
        once: false,
        ..SubscribeEventMsg::default()
    });
    let id = subscribed.await.unwrap().id;
    let publish = async |payload: &str| {
        let (source, payload) = ("x".into(), payload.into());
        let event = PublishEventMsg { source, payload };
        env.connect().await.publish_event(event).await.unwrap();
    };
    let subscription = async || {
        let mut connection = env.connect().await;
        let listed = connection.list_subscriptions(ListSubscriptionsMsg {}).await;
        let listed = listed.unwrap().subscriptions;
        listed.into_iter().find(|one| one.id == id).unwrap()
    };
    publish("before").await;
    let over = async || (subscription().await.last_outcome == "ok").then_some(());
    eventually("the first run's end", over).await;
    let log = env.logs().pop().unwrap();
    let size = outgrow_records(&log);
    limit_files(&daemon, Some(size));
    publish("after").await;
    let told = async || {
        let last = subscription().await.last_outcome;
        last.contains(".jsonl").then_some(())
    };
    eventually("the disk's refusal", told).await;
    assert_eq!(subscription().await.failed, 0);

    // The next daemon starts the run.
    daemon.kill().await;
    let daemon = env.daemon().await;
    let said = async || {
        let entries = entries(&env, "crab", "event:x").await;
        let said = entries.iter().filter(|entry| entry.content == "after");
        (said.count() == 1).then_some(())
    };
    eventually("the run", said).await;

    // The same daemon also starts it once there is room.
    let size = std::fs::metadata(&log).unwrap().len();
    limit_files(&daemon, Some(size));
    publish("at last").await;
    eventually("the disk's refusal", told).await;
    limit_files(&daemon, None);
    let said = async || {
        let entries = entries(&env, "crab", "event:x").await;
        let said = entries.iter().filter(|entry| entry.content == "at last");
        (said.count() == 1).then_some(())
    };
    eventually("the run", said).await;
}

/// A restart keeps jobs that wait for disk space, recurring or not.
#[tokio::test]
async fn restart_begins_scheduled_run_waiting_for_disk_space() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    for sender in ["tg:1", "tg:2"] {
        let hello = StreamMsg {
            sender: Some(sender.into()),
            ..say("hello")
        };
        stream_to_end(&env, hello).await;
    }
    let sizes = env.logs().into_iter().map(|log| outgrow_records(&log));
    limit_files(&daemon, sizes.min());
    let mut connection = env.connect().await;
    let again = connection.create_cron(CreateCronMsg {
        schedule: "0 0 1 1 *".into(),
        content: Some("said again".into()),
        sender: "tg:1".into(),
        ..CreateCronMsg::default()
    });
    let again = again.await.unwrap().id;
    let once = connection.create_cron(CreateCronMsg {
        at: Some("in 1s".into()),
        content: Some("said once".into()),
        sender: "tg:2".into(),
        ..CreateCronMsg::default()
    });
    let once = once.await.unwrap().id;
    connection.run_cron(RunCronMsg { id: again }).await.unwrap();
    let both_wait = async || {
        let said = daemon.stderr();
        (said.matches("waits for room on the disk").count() == 2).then_some(())
    };
    eventually("the disk's refusals", both_wait).await;
    daemon.terminate().await;

    let _daemon = env.daemon().await;
    for (id, sender, words) in [(again, "tg:1", "said again"), (once, "tg:2", "said once")] {
        let ends_well = async || {
            let (id, limit) = (Some(id), 10);
            let request = ListCronRunsMsg { id, limit };
            let runs = env.connect().await.list_cron_runs(request).await;
            let runs = runs.unwrap().runs;
            (runs.first()?.outcome == "ok").then_some(runs)
        };
        let runs = eventually("the run's end", ends_well).await;
        assert_eq!(runs.len(), 1, "{runs:?}");
        let entries = entries(&env, "crab", sender).await;
        let said = entries.iter().filter(|entry| entry.content == words);
        assert_eq!(said.count(), 1, "{entries:?}");
    }
    let used_up = async || {
        let listed = env.run(&["cron", "list"]).await.ok();
        (!listed.contains("said once")).then_some(())
    };
    eventually("the entry to go", used_up).await;
}
