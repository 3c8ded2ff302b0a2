//! What goes to the trash with a conversation.

use crate::support::*;
use crabtalk_domain::storage::*;

#[tokio::test]
async fn removal_moves_every_file_of_the_pair_and_no_other_to_the_trash() {
    let home = Home::new();
    for round in 1..=2 {
        home.open("crab", "user")
            .await
            .log
            .append(&[user("x")])
            .expect("appends");
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

#[tokio::test]
async fn removal_takes_superseded_files_along() {
    let home = Home::new();
    for seq in [1, 2, 3] {
        home.write(
            &format!("crab_user_{seq}_t.jsonl"),
            "{\"agent\":\"crab\",\"created_by\":\"user\"}\n",
        );
    }
    let pair = key("crab", "user");
    home.store.remove(&pair).await.expect("removes");
    assert!(home.names().is_empty());
    assert_eq!(names(&home.trash()).len(), 3);
}

#[tokio::test]
async fn what_tools_keep_goes_to_the_trash_with_its_conversation() {
    let dir = tempfile::tempdir().expect("temp dir");
    let (sessions, outputs) = (dir.path().join("sessions"), dir.path().join("outputs"));
    let trash = sessions.join("trash");
    let files = std::sync::Arc::new(crabtalk_store::fs::OsFiles);
    let policy = crabtalk_store::SyncPolicy::Step;
    let folder = outputs.clone();
    let store = crabtalk_store::FileStore::open(&sessions, &trash, policy, files)
        .with_belongings("outputs", move |key| folder.join(key.sender.as_str()));
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
