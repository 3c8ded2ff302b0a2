//! Rewinds and reopened archives: what the model is sent after them.

use crate::rig::*;
use crabtalk_domain::Role;
use crabtalk_domain::storage::LogPart;
use crabtalk_runtime::Rewound;
use crabtalk_testkit::{Reply, ScriptedModel};

/// The texts that the model was sent in its last request.
fn sent(rig: &Rig) -> Vec<String> {
    let requests = rig.model.requests();
    let last = requests.last().expect("a request");
    last.history.iter().map(|m| m.content.clone()).collect()
}

/// The index of a user message.
async fn index_of(rig: &Rig, content: &str) -> u64 {
    let part = LogPart::Conversation(key());
    let page = rig.runtime.storage().page(&part, None, 100).await;
    let entries = page.expect("in memory").entries;
    let found = entries.iter().rfind(|entry| {
        let message = &entry.message;
        message.role == Role::User && message.content == content
    });
    found.expect("is there").index
}

#[tokio::test]
async fn rewind_hides_later_messages_from_the_model() {
    let replies = ["one!", "two!", "three!", "four!"].map(Reply::text);
    let rig = rig(replies.to_vec());
    rig.run("one").await;
    rig.run("two").await;
    rig.run("three").await;
    let two = index_of(&rig, "two").await;
    let rewound = rig.runtime.rewind(&key(), two).await.expect("rewound");
    let want = Rewound {
        content: "two".into(),
        runs: Some((2, 3)),
    };
    assert_eq!(rewound, want);
    rig.run("two, but better").await;
    assert_eq!(sent(&rig), ["one", "one!", "two, but better"]);
    // A restart reads the same history, and all messages still count.
    let model = ScriptedModel::new(vec![Reply::text("five!")]);
    let again = rig_on(model, rig.store.snapshot(), catalog());
    again.run("five").await;
    let want = ["one", "one!", "two, but better", "four!", "five"];
    assert_eq!(sent(&again), want);
    let count = again.runtime.live(&key()).map(|live| live.message_count);
    assert_eq!(count, Some(10));
    assert!(again.lines().contains(&"user: three".to_owned()));
}

#[tokio::test]
async fn rewind_to_the_first_message_empties_the_history() {
    let replies = ["one!", "sum", "two!", "three!"].map(Reply::text);
    let rig = rig(replies.to_vec());
    rig.run("one").await;
    rig.compact().await;
    rig.run("two").await;
    assert_eq!(sent(&rig), ["sum", "two"]);
    let one = index_of(&rig, "one").await;
    let rewound = rig.runtime.rewind(&key(), one).await.expect("rewound");
    assert_eq!(rewound.runs, Some((1, 2)));
    let context = rig.runtime.live(&key()).and_then(|live| live.meta.context);
    assert_eq!(context.map(|context| context.used), Some(0));
    rig.run("three").await;
    assert_eq!(sent(&rig), ["three"]);
}

#[tokio::test]
async fn reopened_archive_is_sent_and_the_present_archived() {
    let replies = ["one!", "two!", "three!", "sum", "four!"].map(Reply::text);
    let rig = rig(replies.to_vec());
    let crab = key();
    rig.run("one").await;
    rig.runtime.start_fresh(&crab).await.expect("put away");
    // Nothing is archived where nothing was said.
    assert_eq!(rig.runtime.reopen(&crab, 1).await.expect("reopened"), "");
    rig.runtime.start_fresh(&crab).await.expect("put away");
    rig.run("two").await;
    let title = rig.runtime.reopen(&crab, 1).await.expect("reopened");
    assert_eq!(title, "two");
    rig.run("three").await;
    assert_eq!(sent(&rig), ["one", "one!", "three"]);
    let archives = rig.runtime.storage().archives(&crab).await;
    let titles: Vec<String> = archives
        .expect("in memory")
        .into_iter()
        .map(|a| a.title)
        .collect();
    assert_eq!(titles, ["one", "one", "two"]);
    // What was reopened is compacted as any history.
    rig.runtime.compact(&crab, None).await.expect("compacted");
    rig.run("four").await;
    assert_eq!(sent(&rig), ["sum", "four"]);
}

#[tokio::test]
async fn returns_to_nothing_are_refused() {
    let rig = rig(vec![Reply::text("one!")]);
    rig.run("one").await;
    let lines = rig.lines();
    let answer = index_of(&rig, "one").await + 1;
    for index in [answer, 9_999] {
        let error = rig.runtime.rewind(&key(), index).await.expect_err("none");
        assert_eq!(error.code(), 404);
    }
    let error = rig.runtime.reopen(&key(), 1).await.expect_err("none");
    assert_eq!(error.code(), 404);
    assert_eq!(rig.lines(), lines);
    let nobody = crabtalk_domain::ConversationKey::new("crab", "nobody").expect("valid");
    let error = rig.runtime.rewind(&nobody, 1).await.expect_err("absent");
    assert_eq!(error.code(), 404);
}

#[tokio::test(start_paused = true)]
async fn rewind_waits_for_the_run_in_flight() {
    let rig = rig(vec![
        Reply::text("one!"),
        Reply::hang(),
        Reply::text("three!"),
    ]);
    rig.run("one").await;
    let run = rig.submit("two");
    rig.model.until(|progress| progress.hung == 1).await;
    let two = index_of(&rig, "two").await;
    let (runtime, crab) = (rig.runtime.clone(), key());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { runtime.rewind(&crab, two).await });
    tokio::task::yield_now().await;
    rig.runtime.kill(&key()).expect("is running");
    read(run).await;
    let rewound = tasks.join_next().await.expect("a task").expect("no panic");
    assert_eq!(rewound.expect("rewound").runs, Some((2, 2)));
    rig.run("three").await;
    assert_eq!(sent(&rig), ["one", "one!", "three"]);
}
