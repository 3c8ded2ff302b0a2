//! After any fault, acknowledged records are present and refused records leave
//! no partial line.

use crate::support::*;
use crabtalk_domain::storage::*;
use std::io::ErrorKind;

const KINDS: [ErrorKind; 3] = [
    ErrorKind::StorageFull,
    ErrorKind::ReadOnlyFilesystem,
    ErrorKind::Other,
];

/// One life of a conversation: what it acknowledged, whether or not anything
/// failed.
async fn life(home: &Home) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let Ok(opened) = home.store.open(&key("crab", "user"), Some(new())).await else {
        return acknowledged;
    };
    let mut log = opened.expect("is created").log;
    for n in 0..4 {
        let (a, b) = (format!("{n}a {}", "x".repeat(50)), format!("{n}b"));
        if let Ok(at) = log.append(&[user(&a), said(&b)]).await {
            acknowledged.extend([format!("user: {a}"), format!("assistant: {b}")]);
            drop(log.synced(at).await);
        }
        if n == 2 {
            drop(log.append(&[titled("a title")]).await);
        }
    }
    acknowledged
}

#[tokio::test]
async fn any_operation_may_fail_once() {
    let counting = Home::new();
    counting.disk.fail(|_, _| None);
    life(&counting).await;
    let operations = counting.disk.heal();
    assert!(operations >= 10, "{operations}");
    for kind in KINDS {
        for failing in 0..operations {
            let mut home = Home::new();
            home.disk
                .fail(move |_, n| (n == failing).then_some(Fault::Error(kind)));
            let acknowledged = life(&home).await;
            home.disk.heal();
            home.restart();
            let history = home
                .find("crab", "user")
                .await
                .map(|o| told(&o.history))
                .unwrap_or_default();
            assert_eq!(history, acknowledged, "operation {failing} with {kind}");
        }
    }
}

#[tokio::test]
async fn partial_writes_and_failed_repairs_lose_nothing() {
    for short in 0..140 {
        for repair in [true, false] {
            let mut home = Home::new();
            let mut log = home.open("crab", "user").await.log;
            append(&mut log, &[user("before")]).await;
            let bytes = home.read("crab_user_1.jsonl");
            home.disk.fail(move |op, n| match (op, n) {
                (Op::Write, 0) => Some(Fault::Short(short)),
                (Op::Write, _) => Some(Fault::Error(ErrorKind::StorageFull)),
                (Op::Truncate, _) if !repair => Some(Fault::Error(ErrorKind::Other)),
                _ => None,
            });
            let batch = [user(&"refused ".repeat(10)), said("refused too")];
            let error = log.append(&batch).await.expect_err("full");
            assert!(matches!(error, Error::Unwritable { .. }), "{error}");
            assert!(error.to_string().contains("crab_user_1.jsonl"), "{error}");
            if repair {
                assert_eq!(home.read("crab_user_1.jsonl"), bytes, "short {short}");
            }
            home.disk.heal();
            append(&mut log, &[user("after")]).await;
            home.restart();
            let history = told(&home.loaded("crab", "user").await.history);
            assert_eq!(history, ["user: before", "user: after"], "short {short}");
        }
    }
}

#[tokio::test]
async fn a_full_disk_refuses_creation_and_leaves_nothing() {
    let home = Home::new();
    for short in [0, 1, 60] {
        home.disk.fail(move |op, n| match (op, n) {
            (Op::Write, n) if n < 3 => Some(Fault::Short(short)),
            (Op::Write, _) => Some(Fault::Error(ErrorKind::StorageFull)),
            _ => None,
        });
        let error = home
            .store
            .open(&key("crab", "u"), Some(new()))
            .await
            .err()
            .expect("full");
        assert!(
            matches!(error, Error::Unwritable { .. }),
            "short {short}: {error}"
        );
        assert!(home.names().is_empty(), "{:?}", home.names());
    }
    home.disk.heal();
    home.open("crab", "u").await;
    assert_eq!(home.names(), ["crab_u_1.jsonl"]);
}

#[tokio::test]
async fn append_never_overwrites_deleted_or_edited_log() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    append(&mut log, &[user("one")]).await;
    let path = home.sessions().join("crab_user_1.jsonl");

    use std::io::Write;
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .expect("open");
    file.write_all(b"{\"role\":\"user\",\"content\":\"by hand\"}")
        .expect("write");
    let at = append(&mut log, &[user("two")]).await;
    log.synced(at).await.expect("syncs");
    let history = told(&home.loaded("crab", "user").await.history);
    assert_eq!(history, ["user: one", "user: by hand", "user: two"]);
    std::fs::remove_file(&path).expect("remove");
    let error = log.append(&[user("lost")]).await.expect_err("says so");
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[tokio::test]
async fn append_refuses_log_truncated_while_open() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    append(&mut log, &[user("one")]).await;
    assert!(log.is_current().await);
    append(&mut log, &[user("two")]).await;
    let whole = home.read("crab_user_1.jsonl");
    let path = home.sessions().join("crab_user_1.jsonl");
    // In the middle of the last line.
    std::fs::write(&path, &whole[..whole.len() - 5]).expect("cuts");
    assert!(!log.is_current().await);
    let error = log.append(&[user("three")]).await.expect_err("says so");
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert_eq!(home.read("crab_user_1.jsonl"), whole[..whole.len() - 5]);
    home.restart();
    let mut opened = home.loaded("crab", "user").await;
    assert_eq!(told(&opened.history), ["user: one"]);
    append(&mut opened.log, &[user("three")]).await;
    assert!(opened.log.is_current().await);
    assert!(home.names().contains(&"crab_user_1.jsonl.torn".to_owned()));
    std::fs::remove_file(&path).expect("removes");
    assert!(!opened.log.is_current().await);
}
