//! Lists of conversations: the latest first, at the cost of the latest.

use crate::support::*;
use crabtalk_domain::storage::*;
use std::sync::atomic::Ordering::SeqCst;

#[tokio::test]
async fn the_latest_come_first() {
    let home = Home::new();
    for (sender, seconds) in [("new", 1), ("old", 3), ("middle", 2)] {
        drop(home.open("crab", sender).await);
        home.age(&format!("crab_{sender}_1.jsonl"), seconds);
    }
    drop(home.open("other", "new").await);
    home.age("other_new_1.jsonl", 0);
    // A later file of a pair makes this one an archive, however new it is.
    let head = r#"{"agent":"crab","created_by":"old","created_at":"","title":"","uptime_secs":0}"#;
    home.write("crab_old_2.jsonl", format!("{head}\n"));
    home.age("crab_old_2.jsonl", 4);
    let latest = async |agent: Option<&str>, sender: Option<&str>, limit| {
        let list = home.store.latest(agent, sender, limit).await;
        let list = list.expect("lists").into_iter();
        list.map(|s| (s.id.0, s.superseded))
            .collect::<Vec<(String, bool)>>()
    };
    let named = |names: &[(&str, bool)]| -> Vec<(String, bool)> {
        let owned = |(name, superseded): &(&str, bool)| ((*name).to_owned(), *superseded);
        names.iter().map(owned).collect()
    };
    let all = named(&[
        ("other_new_1.jsonl", false),
        ("crab_new_1.jsonl", false),
        ("crab_middle_1.jsonl", false),
        ("crab_old_1.jsonl", true),
        ("crab_old_2.jsonl", false),
    ]);
    assert_eq!(latest(None, None, usize::MAX).await, all);
    assert_eq!(latest(None, None, 2).await, all[..2]);
    assert_eq!(latest(None, None, 0).await, []);
    assert_eq!(latest(Some("crab"), None, 3).await, all[1..4]);
    assert_eq!(latest(None, Some("new"), 9).await, all[..2]);
    assert_eq!(latest(Some("crab"), Some("old"), 9).await, all[3..]);
    assert_eq!(latest(Some("crab"), Some("nobody"), 9).await, []);
}

/// Senders of the two latest logs, and the number of logs checked for that.
async fn latest_two(home: &Home) -> (Vec<String>, u64) {
    home.disk.looked_at.swap(0, SeqCst);
    let list = home.store.latest(None, None, 2).await.expect("lists");
    let senders = list.into_iter().map(|s| s.key.sender.to_string()).collect();
    (senders, home.disk.looked_at.swap(0, SeqCst))
}

/// A home with logs of the senders s0 to s39, which changed long ago.
async fn crowded() -> (Home, Vec<Opened>) {
    let home = Home::new();
    let mut opened = Vec::new();
    for n in 0..40 {
        opened.push(home.open("crab", &format!("s{n}")).await);
        home.age(&format!("crab_s{n}_1.jsonl"), 1_000 + n);
    }
    assert_eq!(latest_two(&home).await.0, ["s0", "s1"]);
    (home, opened)
}

#[tokio::test]
async fn latest_logs_are_found_without_checking_every_log() {
    let (home, mut opened) = crowded().await;
    let listed = home.disk.listed.load(SeqCst);
    append(&mut opened[7].log, &[user("7")]).await;
    home.age("crab_s7_1.jsonl", 90);
    append(&mut opened[3].log, &[user("3")]).await;
    home.age("crab_s3_1.jsonl", 80);
    let (senders, looks) = latest_two(&home).await;
    assert_eq!(senders, ["s3", "s7"]);
    assert!(looks < 10, "{looks} looks");
    append(&mut opened[7].log, &[user("again")]).await;
    append(&mut opened[7].log, &[titled("Seven")]).await;
    home.age("crab_s7_1_seven.jsonl", 70);
    drop(home.open("crab", "new").await);
    home.age("crab_new_1.jsonl", 60);
    let (senders, looks) = latest_two(&home).await;
    assert_eq!(senders, ["new", "s7"]);
    assert!(looks < 10, "{looks} looks");
    let removed = home.store.remove(&key("crab", "s7")).await;
    removed.expect("removes");
    let (senders, looks) = latest_two(&home).await;
    assert_eq!(senders, ["new", "s3"]);
    assert!(looks < 10, "{looks} looks");
    assert_eq!(home.disk.listed.load(SeqCst), listed, "the folder is known");
}

#[tokio::test]
async fn the_latest_are_right_after_a_change_by_others() {
    let (home, _opened) = crowded().await;
    let head = |sender: &str| {
        format!(
            r#"{{"agent":"crab","created_by":"{sender}","created_at":"","title":"","uptime_secs":0}}"#
        )
    };
    home.write("crab_copied_1.jsonl", head("copied"));
    home.age("crab_copied_1.jsonl", 50);
    assert_eq!(latest_two(&home).await.0, ["copied", "s0"]);
    // As editors do it.
    let edited = home.write("edited", head("s9"));
    std::fs::rename(edited, home.sessions().join("crab_s9_1.jsonl")).expect("renames");
    home.age("crab_s9_1.jsonl", 40);
    assert_eq!(latest_two(&home).await.0, ["s9", "copied"]);
    home.write("another", "");
    std::fs::remove_file(home.sessions().join("crab_s9_1.jsonl")).expect("removes");
    std::fs::remove_file(home.sessions().join("crab_s0_1.jsonl")).expect("removes");
    let (senders, looks) = latest_two(&home).await;
    assert_eq!(senders, ["copied", "s1"]);
    assert!(looks > 30, "somebody else was there: {looks} looks");
}

#[tokio::test]
async fn what_a_title_renames_meanwhile_is_listed() {
    let home = Home::new();
    for sender in ["a", "b", "c"] {
        drop(home.open("crab", sender).await);
    }
    let newest = home.store.latest(None, None, 1).await.expect("lists");
    let old = home.sessions().join(&newest[0].id.0);
    let new = old.with_file_name(newest[0].id.0.replace("_1.", "_1_title."));
    let renamed = new.clone();
    let rename = move || std::fs::rename(&old, &renamed).expect("is ours");
    *home.disk.meanwhile.lock().expect("lock") = Some(Box::new(rename));
    let list = home.store.latest(None, None, 1).await.expect("lists");
    assert_eq!(home.sessions().join(&list[0].id.0), new);
    assert_eq!(list[0].key, newest[0].key);
}

#[tokio::test]
async fn conversations_are_found_without_a_usable_index() {
    let mut home = Home::new();
    drop(home.open("crab", "before").await);
    home.restart();
    let state = home.sessions().join("../state");
    std::fs::remove_dir_all(&state).expect("removed");
    // No database can be made below a file.
    std::fs::write(&state, "in the way").expect("written");
    assert!(home.find("crab", "before").await.is_some());
    drop(home.open("crab", "after").await);
    assert!(home.find("crab", "after").await.is_some());
    let listed = home.store.latest(None, None, 9).await.expect("lists");
    assert_eq!(listed.len(), 2);
}

#[tokio::test]
async fn log_changed_between_daemons_is_listed_in_order() {
    let mut home = Home::new();
    for sender in ["old", "new"] {
        drop(home.open("crab", sender).await);
    }
    home.age("crab_old_1.jsonl", 20);
    home.age("crab_new_1.jsonl", 10);
    assert_eq!(latest_two(&home).await.0, ["new", "old"]);
    home.restart();
    home.age("crab_old_1.jsonl", 5);
    assert_eq!(latest_two(&home).await.0, ["old", "new"]);
}
