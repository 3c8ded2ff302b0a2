//! Published events start their subscribers, once each, even after a crash.

use crate::rig::{TestEnv, eventually, stream_to_end};
use crabtalk_proto::{
    Client, HistoryEntry, ListSubscriptionsMsg, PublishEventMsg, SubscribeEventMsg,
    SubscriptionInfo, UnsubscribeEventMsg,
};
use rustix::process::Signal;
use std::fs;

async fn subscribe(env: &TestEnv, source: &str, agent: &str, once: bool) -> SubscriptionInfo {
    let request = SubscribeEventMsg {
        source: source.into(),
        target_agent: agent.into(),
        once,
        ..SubscribeEventMsg::default()
    };
    env.connect().await.subscribe_event(request).await.unwrap()
}

async fn publish(env: &TestEnv, source: &str, payload: &str) -> Result<(), u32> {
    let request = PublishEventMsg {
        source: source.into(),
        payload: payload.into(),
    };
    let answer = env.connect().await.publish_event(request).await;
    answer
        .map(drop)
        .map_err(|error| error.code().unwrap_or_default())
}

async fn listed(env: &TestEnv) -> Vec<SubscriptionInfo> {
    let request = ListSubscriptionsMsg {};
    let list = env.connect().await.list_subscriptions(request).await;
    list.unwrap().subscriptions
}

/// The messages of a conversation, oldest first; empty if it does not exist.
async fn said(env: &TestEnv, agent: &str, sender: &str) -> Vec<String> {
    let request = crabtalk_proto::GetHistoryMsg {
        agent: agent.into(),
        sender: sender.into(),
        ..Default::default()
    };
    let page = env.connect().await.get_history(request).await;
    let entries = page.map(|page| page.entries).unwrap_or_default();
    let of_user = |entry: &HistoryEntry| entry.role == "user";
    let entries = entries.into_iter().filter(of_user);
    entries.map(|entry| entry.content).collect()
}

/// Waits until a subscription has started this many runs.
async fn fired(env: &TestEnv, id: u64, times: u64) {
    eventually("runs of events", async || {
        let list = listed(env).await;
        list.iter()
            .any(|one| one.id == id && one.fired >= times)
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn published_events_start_subscribers() {
    let env = TestEnv::new();
    env.agent("builder", "description: Builds.");
    let _daemon = env.daemon().await;
    let all = subscribe(&env, "build:*", "builder", false).await;
    let once = subscribe(&env, "build:failed", "crab", true).await;
    let other = subscribe(&env, "deploy", "crab", false).await;
    assert_eq!(
        subscribe(&env, "deploy", "crab", false).await.id,
        other.id,
        "the same is one"
    );
    publish(&env, "build:failed", "main is red").await.unwrap();
    publish(&env, "build:failed", "main is still red")
        .await
        .unwrap();
    publish(&env, "other:source", "x").await.unwrap();
    fired(&env, all.id, 2).await;
    let sender = "event:build:failed";
    let told = said(&env, "builder", sender).await;
    assert_eq!(told, ["main is red", "main is still red"]);
    // It is used up and removed from the file.
    eventually("the end of a subscription", async || {
        (!listed(&env).await.iter().any(|one| one.id == once.id)).then_some(())
    })
    .await;
    assert_eq!(said(&env, "crab", sender).await, ["main is red"]);
    let file = fs::read_to_string(env.home.join("config/subscriptions.toml")).unwrap();
    assert!(
        !file.contains("once") && file.contains("by = \"user\""),
        "{file}"
    );
    // Numbers are not reused.
    let next = subscribe(&env, "x", "crab", false).await;
    let request = UnsubscribeEventMsg { id: next.id };
    env.connect()
        .await
        .unsubscribe_event(request)
        .await
        .unwrap();
    assert!(subscribe(&env, "y", "crab", false).await.id > next.id);
}

#[tokio::test]
async fn subscription_prompt_precedes_payload() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let add = ["subscriptions", "add", "build:*", "--prompt", "Say why."];
    let added = env.run(&add).await.ok();
    assert!(added.contains("Say why."), "{added}");
    let said_so = env
        .run(&["publish", "--no-stdin", "other:source", "x"])
        .await;
    let said_so = format!("{}{}", said_so.stdout, said_so.stderr);
    assert!(said_so.contains("no subscription matches"), "{said_so}");
    let published = env.run(&["publish", "--no-stdin", "build:failed", "main is red"]);
    let published = published.await;
    assert!(
        !published.stderr.contains("no subscription"),
        "{published:?}"
    );
    fired(&env, 1, 1).await;
    let told = said(&env, "crab", "event:build:failed").await;
    assert_eq!(told, ["Say why.\n\nEvent build:failed:\n\nmain is red"]);
}

/// Waits until no event is recorded.
async fn none_waits(env: &TestEnv) {
    let records = rusqlite::Connection::open(env.home.join("state/records.db")).unwrap();
    eventually("no event to wait", async || {
        let count = records.query_row("SELECT count(*) FROM event", [], |row| row.get(0));
        (count == Ok(0)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn end_of_a_run_is_an_event_and_chains_are_bounded() {
    let env = TestEnv::new();
    env.config("[limits]\nchain_depth = 3\n");
    let _daemon = env.daemon().await;
    let mine = subscribe(&env, "agent:crab:done", "crab", false).await;
    stream_to_end(
        &env,
        crabtalk_proto::StreamMsg {
            content: "hello".into(),
            ..Default::default()
        },
    )
    .await;
    fired(&env, mine.id, 3).await;
    eventually("what was left out", async || {
        (listed(&env).await[0].dropped == 1).then_some(())
    })
    .await;
    let told = said(&env, "crab", "event:agent:crab:done").await;
    assert_eq!(told.len(), 3);
    let first: serde_json::Value = serde_json::from_str(&told[0]).unwrap();
    assert_eq!(first["outcome"], "ok");
    assert_eq!(first["conversation"]["sender"], "user");
    let answer = first["answer"].as_str().unwrap();
    assert!(answer.contains("hello"), "{first}");
    assert!(
        first["tokens"].is_u64() && first["duration_ms"].is_u64(),
        "{first}"
    );
    let logs: String = env
        .logs()
        .iter()
        .map(|log| fs::read_to_string(log).unwrap())
        .collect();
    for origin in [
        "\"event:agent:crab:done\"",
        "\"event#2:agent:crab:done\"",
        "\"event#3:agent:crab:done\"",
    ] {
        assert!(logs.contains(origin), "{origin} in {logs}");
    }
    assert!(!logs.contains("event#4"), "{logs}");
}

#[tokio::test]
async fn acknowledged_events_survive_a_crash_and_fire_once() {
    const EVENTS: usize = 40;
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let one = subscribe(&env, "job", "crab", false).await;
    // The first occupies the conversation; the others wait.
    publish(&env, "job", "/slow 60000 one two three four five six")
        .await
        .unwrap();
    for at in 1..EVENTS {
        publish(&env, "job", &format!("job {at}")).await.unwrap();
    }
    fired(&env, one.id, 1).await;
    daemon.crash(Signal::KILL).await;
    let _daemon = env.daemon().await;
    let told = eventually("all events", async || {
        let told = said(&env, "crab", "event:job").await;
        (told.len() >= EVENTS).then_some(told)
    })
    .await;
    assert_eq!(told.len(), EVENTS, "{told:?}");
    for at in 1..EVENTS {
        let wanted = format!("job {at}");
        assert_eq!(
            told.iter().filter(|text| **text == wanted).count(),
            1,
            "{wanted}"
        );
    }
    none_waits(&env).await;
}

#[tokio::test]
async fn invalid_events_are_refused() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    for (source, code) in [("", 400), ("a b", 400), ("a:*", 400), ("a\n", 400)] {
        assert_eq!(publish(&env, source, "x").await, Err(code), "{source:?}");
    }
    // Only the daemon announces that an agent is done (CONV-10), with or without subscribers.
    for source in ["agent:crab:done", "agent:x"] {
        assert_eq!(publish(&env, source, "x").await, Err(403), "{source:?}");
    }
    let unheard = "x".repeat(256 * 1024 + 1);
    assert_eq!(publish(&env, "unheard", &unheard).await, Err(400));
    subscribe(&env, "big", "crab", false).await;
    let long = "x".repeat(256 * 1024 + 1);
    assert_eq!(publish(&env, "big", &long).await, Err(400));
    let mut connection = env.connect().await;
    let nobody = SubscribeEventMsg {
        source: "a".into(),
        target_agent: "nobody".into(),
        once: false,
        ..SubscribeEventMsg::default()
    };
    let error = connection.subscribe_event(nobody).await.unwrap_err();
    assert_eq!(error.code(), Some(404), "{error}");
    let gone = connection
        .unsubscribe_event(UnsubscribeEventMsg { id: 99 })
        .await;
    assert_eq!(gone.unwrap_err().code(), Some(404));
}

#[tokio::test]
async fn removed_agent_fails_only_its_own_run() {
    let env = TestEnv::new();
    env.agent("helper", "description: Helps.");
    let told = env.work.join("told");
    env.config(&format!(
        "[notify]\ncommand = 'cat >> {}'\n",
        told.display()
    ));
    let _daemon = env.daemon().await;
    let helper = subscribe(&env, "a", "helper", false).await;
    let crab = subscribe(&env, "a", "crab", false).await;
    fs::remove_file(env.home.join("config/agents/helper.md")).unwrap();
    env.run(&["daemon", "reload"]).await.ok();
    publish(&env, "a", "go").await.unwrap();
    fired(&env, crab.id, 1).await;
    let failed = eventually("the failure", async || {
        let list = listed(&env).await;
        list.into_iter()
            .find(|one| one.id == helper.id && one.failed == 1)
    })
    .await;
    assert!(failed.last_outcome.contains("helper"), "{failed:?}");
    let notice = eventually("a notice", async || {
        let text = fs::read_to_string(&told).ok()?;
        serde_json::from_str::<serde_json::Value>(&text).ok()
    })
    .await;
    assert_eq!(
        (&notice["kind"], &notice["agent"]),
        (&"failed".into(), &"helper".into())
    );
}
