//! Withdrawing queued messages (CONV-3).

use crate::rig::*;
use crabtalk_domain::ConversationKey;
use crabtalk_runtime::{RunRequest, Subscription};
use crabtalk_testkit::Reply;

fn say(rig: &Rig, content: &str) -> Subscription {
    let mut request = RunRequest::new(key(), content);
    request.request_id = Some(content.into());
    rig.try_submit(request).expect("accepted")
}

fn withdraw(rig: &Rig, id: &str) -> u32 {
    let done = rig.runtime.withdraw(&key(), id);
    done.map_or_else(|error| error.code(), |()| 0)
}

#[tokio::test]
async fn withdrawn_message_never_runs() {
    let rig = rig(vec![Reply::hang(), Reply::text("third")]);
    let mut first = say(&rig, "one");
    read_until(&mut first, "user one").await;
    let second = say(&rig, "two");
    let third = say(&rig, "three");
    assert_eq!(withdraw(&rig, "two"), 0);
    assert_eq!(withdraw(&rig, "two"), 404, "twice");
    let refused = read(second).await;
    assert!(refused.last().expect("refused").starts_with("refused 499"));
    rig.model.until(|p| p.hung == 1).await;
    rig.model.release();
    read(first).await;
    assert!(read(third).await.contains(&"user three".to_owned()));
    assert_eq!(rig.model.requests().len(), 2);
    assert!(!rig.lines().iter().any(|line| line.contains("two")));
    // The id is free again.
    assert_eq!(withdraw(&rig, "three"), 404, "it ended");
}

#[tokio::test]
async fn last_withdrawn_message_leaves_an_empty_queue() {
    let rig = rig(vec![Reply::hang(), Reply::text("again")]);
    let mut first = say(&rig, "one");
    read_until(&mut first, "user one").await;
    let second = say(&rig, "two");
    assert_eq!(withdraw(&rig, "two"), 0);
    drop(second);
    let again = say(&rig, "two");
    rig.model.until(|p| p.hung == 1).await;
    rig.model.release();
    read(first).await;
    assert!(read(again).await.contains(&"user two".to_owned()));
    assert_eq!(rig.model.requests().len(), 2);
}

#[tokio::test]
async fn begun_message_is_not_withdrawn() {
    let rig = rig(vec![Reply::hang()]);
    let mut first = say(&rig, "one");
    read_until(&mut first, "user one").await;
    assert_eq!(withdraw(&rig, "one"), 409);
    assert_eq!(withdraw(&rig, ""), 400);
    rig.model.until(|p| p.hung == 1).await;
    rig.model.release();
    assert_eq!(last(&read(first).await), "end 0");
}

#[tokio::test]
async fn other_sender_withdraws_nothing() {
    let rig = rig(vec![Reply::hang(), Reply::text("second")]);
    let mut first = say(&rig, "one");
    read_until(&mut first, "user one").await;
    let second = say(&rig, "two");
    let other = ConversationKey::new("crab", "user/other").expect("valid");
    let refused = rig.runtime.withdraw(&other, "two").expect_err("foreign");
    assert_eq!(refused.code(), 404);
    rig.model.until(|p| p.hung == 1).await;
    rig.model.release();
    read(first).await;
    assert!(read(second).await.contains(&"user two".to_owned()));
}
