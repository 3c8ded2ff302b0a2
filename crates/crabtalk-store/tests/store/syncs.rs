//! Syncs are shared, concurrent with appends, and report failures.

use crate::support::*;
use crabtalk_domain::storage::*;
use std::io::ErrorKind;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tokio::task::JoinSet;

/// Timeout of a test.
const HANGS: Duration = Duration::from_secs(120);

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "an append waits for nothing")]
async fn whoever_asks_meanwhile_shares_the_next_sync() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let mut waiting = JoinSet::new();
    {
        let _held = home.disk.gate.lock().expect("lock");
        for n in 0..50 {
            let at = append(&mut log, &[user(&n.to_string())]).await;
            waiting.spawn(log.synced(at));
        }
    }
    while let Some(result) = waiting.join_next().await {
        result.expect("no panic").expect("syncs");
    }
    let syncs = home.disk.syncs.load(SeqCst);
    assert!(syncs <= 2, "{syncs} syncs for 50 requests");
    let end = append(&mut log, &[]).await;
    log.synced(end).await.expect("is durable");
    assert_eq!(
        home.disk.syncs.load(SeqCst),
        syncs,
        "and asks the disk no more"
    );
}

#[tokio::test]
#[expect(
    clippy::await_holding_lock,
    reason = "the lock is the slow disk, and the thread that waits for it is another"
)]
async fn a_slow_disk_stops_neither_appends_nor_reads() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let held = home.disk.gate.lock().expect("lock");
    let at = append(&mut log, &[user("one")]).await;
    let synced = log.synced(at);
    append(&mut log, &[user("two")]).await;
    append(&mut log, &[titled("title")]).await;
    drop(held);
    synced.await.expect("syncs");
    assert_eq!(home.loaded("crab", "user").await.history.len(), 2);
}

#[tokio::test]
async fn concurrent_syncs_survive_a_dropped_waiter() {
    let home = Home::new();
    let mut logs = Vec::new();
    for n in 0..40 {
        logs.push(home.open("crab", &format!("u{n}")).await.log);
    }
    let mut waiting = JoinSet::new();
    for log in &mut logs {
        let at = append(log, &[user("x")]).await;
        drop(log.synced(at));
        waiting.spawn(log.synced(at));
    }
    drop(logs);
    drop(home.store);
    while let Some(result) = waiting.join_next().await {
        result
            .expect("no panic")
            .expect("syncs, although all else is gone");
    }
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "an append waits for nothing")]
async fn a_disk_that_hangs_does_not_keep_the_store() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let disk = home.disk.clone();
    let held = disk.gate.lock().expect("lock");
    let at = append(&mut log, &[user("one")]).await;
    let synced = log.synced(at);
    drop(log);
    let (ended, over) = std::sync::mpsc::channel();
    let ending = std::thread::spawn(move || {
        drop(home.store);
        ended.send(()).expect("the test waits");
        // The folder goes last.
        home.dir
    });
    over.recv_timeout(HANGS)
        .expect("the store is gone while its sync still hangs");
    drop(held);
    synced
        .await
        .expect("what was in the disk's hands ends well");
    drop(ending.join().expect("no panic"));
}

#[tokio::test]
async fn failed_sync_is_reported_and_log_rewritten() {
    for op in [Op::Sync, Op::SyncDir] {
        for (kind, unwritable) in [(ErrorKind::Other, false), (ErrorKind::StorageFull, true)] {
            let mut home = Home::new();
            let mut log = home.open("crab", "user").await.log;
            home.disk
                .fail(move |o, _| (o == op).then_some(Fault::Error(kind)));
            let at = append(&mut log, &[user("kept")]).await;
            let error = log.synced(at).await.expect_err("told");
            assert_eq!(
                matches!(error, Error::Unwritable { .. }),
                unwritable,
                "{error}"
            );
            home.disk.heal();
            let after = append(&mut log, &[user("after")]).await;
            log.synced(after).await.expect("syncs again");
            assert_eq!(home.disk.dir_syncs.load(SeqCst), 1, "the name is durable");
            home.restart();
            let history = told(&home.loaded("crab", "user").await.history);
            assert_eq!(history, ["user: kept", "user: after"]);
        }
    }
}

#[tokio::test]
async fn what_a_failed_sync_lost_is_put_back() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let at = append(&mut log, &[user("durable")]).await;
    log.synced(at).await.expect("syncs");
    let path = home.sessions().join("crab_user_1.jsonl");
    let durable = std::fs::read(&path).expect("read");
    append(&mut log, &[user("one")]).await;
    let upto = append(&mut log, &[user("two")]).await;
    let acknowledged = std::fs::read(&path).expect("read");
    // The disk loses what was not durable, says so, and is well again after.
    let lost = [
        &durable[..],
        &vec![0; acknowledged.len() - durable.len()][..],
    ]
    .concat();
    let spoil = path.clone();
    home.disk.fail(move |op, n| {
        (op == Op::Sync && n == 0).then(|| {
            std::fs::write(&spoil, &lost).expect("write");
            Fault::Error(ErrorKind::Other)
        })
    });
    log.synced(upto).await.expect_err("told");
    home.disk.heal();
    assert_eq!(std::fs::read(&path).expect("read"), acknowledged);
    let at = append(&mut log, &[user("three")]).await;
    log.synced(at).await.expect("syncs");
    home.restart();
    assert_eq!(home.loaded("crab", "user").await.history.len(), 4);
}

#[tokio::test]
async fn log_refuses_appends_until_it_can_be_reopened() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    home.disk
        .fail_always(&[Op::Sync, Op::Open], ErrorKind::Other);
    let at = append(&mut log, &[user("one")]).await;
    log.synced(at).await.expect_err("told");
    log.append(&[user("refused")]).await.expect_err("refused");
    home.disk.heal();
    let at = append(&mut log, &[user("two")]).await;
    log.synced(at).await.expect("syncs");
    let history = told(&home.loaded("crab", "user").await.history);
    assert_eq!(history, ["user: one", "user: two"]);
}
