//! Tests of moving conversations to the trash.

use crate::support::*;
use crabtalk_domain::storage::*;
use crabtalk_store::FileStore;
use std::path::Path;
use std::sync::Arc;

#[tokio::test]
async fn removal_moves_only_files_of_the_pair_to_the_trash() {
    let home = Home::new();
    for round in 1..=2 {
        append(&mut home.open("crab", "user").await.log, &[user("x")]).await;
        home.write("crab_user_1.jsonl.torn", "{\"ro");
        home.open("crab", "user-1").await;
        home.store
            .remove(&key("crab", "user"))
            .await
            .expect("removes");
        assert!(home.find("crab", "user").await.is_none());
        assert_eq!(home.names(), ["crab_user-1_1.jsonl"]);
        assert_eq!(names(&home.trash()).len(), 2 * round, "none replaced");
    }
    let error = home
        .store
        .remove(&key("crab", "user"))
        .await
        .expect_err("is gone");
    assert!(matches!(error, Error::NotFound(_)), "{error}");
    assert!(home.open("crab", "user").await.history.is_empty());
}

/// A store in a folder, whose conversations have outputs by sender.
fn with_outputs(dir: &Path) -> FileStore {
    let outputs = dir.join("outputs");
    let indexes = crabtalk_store::Indexes::in_state(&dir.join("state"));
    let sessions = dir.join("sessions");
    let trash = sessions.join("trash");
    let files = Arc::new(crabtalk_store::fs::OsFiles);
    FileStore::open(sessions, trash, SyncPolicy::Step, files, &indexes)
        .with_belongings("outputs", move |key| outputs.join(key.sender.as_str()))
}

#[tokio::test]
async fn tool_files_move_to_the_trash_with_their_conversation() {
    let dir = tempfile::tempdir().expect("temp dir");
    let (sessions, outputs) = (dir.path().join("sessions"), dir.path().join("outputs"));
    let trash = sessions.join("trash");
    let store = with_outputs(dir.path());
    for sender in ["one", "two"] {
        let kept = outputs.join(sender);
        std::fs::create_dir_all(&kept).expect("dir");
        std::fs::write(kept.join("bash-1.txt"), sender).expect("write");
        let opened = store.open(&key("crab", sender), Some(new())).await;
        drop(opened.expect("opens"));
    }
    store.remove(&key("crab", "one")).await.expect("removes");
    assert!(!outputs.join("one").exists());
    assert!(outputs.join("two/bash-1.txt").exists(), "it is another's");
    let moved = trash.join("crab_one_1.jsonl.outputs/bash-1.txt");
    assert_eq!(std::fs::read(moved).expect("is there"), b"one");
    assert!(trash.join("crab_one_1.jsonl").exists());
    // Without any, and under a name that is taken there, it goes as well.
    store.remove(&key("crab", "two")).await.expect("removes");
    let again = store.open(&key("crab", "two"), Some(new())).await;
    drop(again.expect("opens"));
    std::fs::create_dir_all(outputs.join("two")).expect("dir");
    store.remove(&key("crab", "two")).await.expect("removes");
    assert!(trash.join("crab_two_1.jsonl.outputs.2").exists());
}

#[tokio::test]
async fn what_is_restored_has_everything_that_it_had() {
    let dir = tempfile::tempdir().expect("temp dir");
    let (sessions, outputs) = (dir.path().join("sessions"), dir.path().join("outputs"));
    let store = with_outputs(dir.path());
    let pair = key("crab", "user");
    let begin = async |words: &str| {
        let opened = store.open(&pair, Some(new())).await.expect("opens");
        let mut log = opened.expect("is there").log;
        append(&mut log, &[user(words)]).await;
        append(&mut log, &[titled(words)]).await;
        std::fs::create_dir_all(outputs.join("user")).expect("dir");
        std::fs::write(outputs.join("user/bash-1.txt"), words).expect("write");
    };
    // Three conversations of one pair go, under two names.
    for words in ["one", "two", "one"] {
        begin(words).await;
        if words == "two" {
            std::fs::write(sessions.join("crab_user_1_two.jsonl.torn"), "x").expect("write");
        }
        store.remove(&pair).await.expect("removes");
    }
    let listed = store.trash(None, None).await.expect("lists");
    let listed: Vec<_> = listed.iter().map(|s| s.id.0.as_str()).collect();
    assert_eq!(
        listed,
        [
            "crab_user_1_one.jsonl.3",
            "crab_user_1_two.jsonl.2",
            "crab_user_1_one.jsonl"
        ],
        "the last first"
    );
    let other = store.trash(None, Some("user-1")).await.expect("lists");
    assert!(other.is_empty());
    let two = id("crab_user_1_two.jsonl.2");
    let two = Some(&two);
    let missing = store.restore(&key("crab", "user-1"), two).await;
    assert!(
        matches!(missing, Err(Error::NotFound(_))),
        "it is another's"
    );
    store.restore(&pair, two).await.expect("restores");
    let kept = |name: &str| std::fs::read_to_string(outputs.join("user").join(name)).ok();
    assert_eq!(kept("bash-1.txt").as_deref(), Some("two"));
    assert!(sessions.join("crab_user_1_two.jsonl.torn").exists());
    let latest = store.latest(None, None, 9).await.expect("lists");
    assert_eq!(latest.len(), 1);
    assert_eq!(latest[0].id.0, "crab_user_1_two.jsonl");
    let again = store
        .open(&pair, None)
        .await
        .expect("opens")
        .expect("is there");
    assert_eq!(again.history.len(), 1);
    drop(again);
    let taken = store.restore(&pair, None).await;
    assert!(matches!(taken, Err(Error::Taken(_))), "there is one");
    // By another store, as after a restart, the last one comes back.
    store.remove(&pair).await.expect("removes");
    let store = with_outputs(dir.path());
    store.restore(&pair, None).await.expect("restores");
    assert_eq!(kept("bash-1.txt").as_deref(), Some("two"));
    assert_eq!(store.trash(None, None).await.expect("lists").len(), 2);
}

#[tokio::test]
async fn superseded_files_are_restored_with_their_conversation() {
    let home = Home::new();
    let head = "{\"agent\":\"crab\",\"created_by\":\"user\"}\n";
    for seq in [1, 2, 3] {
        home.write(&format!("crab_user_{seq}_t.jsonl"), head);
    }
    let pair = key("crab", "user");
    // One of them went before, alone.
    home.store
        .remove_log(&id("crab_user_2_t.jsonl"))
        .await
        .expect("removes");
    home.store.remove(&pair).await.expect("removes");
    home.store.restore(&pair, None).await.expect("restores");
    assert_eq!(home.names(), ["crab_user_1_t.jsonl", "crab_user_3_t.jsonl"]);
    assert_eq!(names(&home.trash()), ["crab_user_2_t.jsonl"]);
}

#[tokio::test]
async fn restore_keeps_name_taken_by_another_sender() {
    let home = Home::new();
    home.open("crab", "tg:1").await;
    let pair = key("crab", "tg:1");
    home.store.remove(&pair).await.expect("removes");
    // Of the same slug.
    home.open("crab", "tg-1").await;
    home.store.restore(&pair, None).await.expect("restores");
    assert!(home.find("crab", "tg:1").await.is_some());
    assert!(home.find("crab", "tg-1").await.is_some());
    assert_eq!(home.names().len(), 2);
}
