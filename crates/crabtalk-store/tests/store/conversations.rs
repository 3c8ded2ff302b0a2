//! Conversations are found, kept apart, loaded, renamed, listed and removed.

use crate::support::*;
use crabtalk_domain::storage::SyncPolicy;
use crabtalk_domain::storage::*;
use std::os::unix::fs::PermissionsExt;

#[tokio::test]
async fn opening_the_store_writes_nothing_and_files_are_private() {
    let home = Home::new();
    assert!(!home.sessions().exists());
    assert!(home.store.list(None, None).await.expect("lists").is_empty());
    assert!(!home.sessions().exists());
    home.open("crab", "user").await;
    let mode = |path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(home.sessions()), 0o700);
    assert_eq!(mode(home.sessions().join("crab_user_1.jsonl")), 0o600);
}

#[tokio::test]
async fn two_senders_never_share_a_file() {
    let mut home = Home::new();
    let long = "x".repeat(1024);
    let longer = format!("{}y", "x".repeat(1024));
    let pairs = [
        ("crab", "tg:1"),
        ("crab", "tg-1"),
        ("crab", "TG-1"),
        ("crab", &long),
        ("crab", &longer),
        ("crab", "a/b\0c\nd"),
        ("crab", "user"),
        ("crab", "user_1"),
    ];
    for round in 0..2 {
        for (agent, sender) in pairs {
            let mut opened = home.open(agent, sender).await;
            let text = format!("{agent} {sender}");
            if round == 0 {
                assert!(opened.history.is_empty(), "{text}");
                append(&mut opened.log, &[user(&text)]).await;
            } else {
                assert_eq!(told(&opened.history), [format!("user: {text}")]);
            }
        }
        home.restart();
    }
    assert_eq!(home.names().len(), pairs.len());
    let folded: std::collections::HashSet<String> =
        home.names().iter().map(|n| n.to_lowercase()).collect();
    assert_eq!(
        folded.len(),
        pairs.len(),
        "distinct on a case-folding disk too"
    );
}

#[tokio::test]
async fn line_1_beats_the_name() {
    let home = Home::new();
    let head = r#"{"agent":"crab","created_by":"tg:1","created_at":"","title":"","uptime_secs":0}"#;
    home.write(
        "crab_tg-1_1.jsonl",
        format!("{head}\n{{\"role\":\"user\",\"content\":\"mine\"}}\n"),
    );
    assert!(home.find("crab", "tg-1").await.is_none());
    assert!(home.open("crab", "tg-1").await.history.is_empty());
    assert_eq!(
        told(&home.open("crab", "tg:1").await.history),
        ["user: mine"]
    );
    // A name that follows no rule does not hide a conversation.
    let head = r#"{"agent":"crab","created_by":"bob"}"#;
    home.write(
        "backup.jsonl",
        format!("{head}\n{{\"role\":\"user\",\"content\":\"old\"}}\n"),
    );
    assert_eq!(told(&home.open("crab", "bob").await.history), ["user: old"]);
}

#[tokio::test]
async fn highest_seq_is_opened_and_others_are_listed() {
    let home = Home::new();
    for (seq, text) in [(1, "one"), (10, "ten"), (9, "nine")] {
        let head =
            r#"{"agent":"crab","created_by":"user","created_at":"","title":"t","uptime_secs":7}"#;
        let line = format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n");
        home.write(&format!("crab_user_{seq}.jsonl"), format!("{head}\n{line}"));
    }
    let opened = home.loaded("crab", "user").await;
    assert_eq!(told(&opened.history), ["user: ten"]);
    assert_eq!(
        (opened.meta.title.as_str(), opened.meta.uptime_secs),
        ("t", 7)
    );
    let list = home.store.list(Some("crab"), None).await.expect("lists");
    let shown: Vec<_> = list.iter().map(|s| (s.seq, s.superseded)).collect();
    assert_eq!(shown, [(1, true), (9, true), (10, false)]);
    let old = home
        .store
        .log(&id("crab_user_9.jsonl"))
        .await
        .expect("exists");
    assert!(old.superseded);
    assert!(
        !home
            .store
            .log(&id("crab_user_10.jsonl"))
            .await
            .expect("exists")
            .superseded
    );
    let page = home
        .store
        .page(&LogPart::Log(id("crab_user_1.jsonl")), None, 10)
        .await;
    assert_eq!(page.expect("reads").entries[0].message.content, "one");
    home.store
        .remove_log(&id("crab_user_9.jsonl"))
        .await
        .expect("removes");
    assert_eq!(home.names(), ["crab_user_1.jsonl", "crab_user_10.jsonl"]);
    assert_eq!(names(&home.trash()), ["crab_user_9.jsonl"]);
}

#[tokio::test]
async fn a_title_renames_the_file_and_the_log_goes_on() {
    let home = Home::new();
    let mut opened = home.open("crab", "user").await;
    for title in ["Hello, World!", "\u{1f980}", "Second / Title"] {
        append(&mut opened.log, &[titled(title)]).await;
    }
    assert_eq!(home.names(), ["crab_user_1_second-title.jsonl"]);
    append(&mut opened.log, &[user("after")]).await;
    let again = home.loaded("crab", "user").await;
    assert_eq!(told(&again.history), ["user: after"]);
}

#[tokio::test]
async fn only_bare_names_of_the_folder_are_files() {
    let home = Home::new();
    home.open("crab", "user").await;
    std::fs::write(home.dir.path().join("secret.jsonl"), "{}").expect("write");
    for bad in [
        "../secret.jsonl",
        "/etc/passwd",
        "",
        "..",
        "a\0.jsonl",
        "crab_user_1",
        "trash",
    ] {
        let error = home.store.log(&id(bad)).await.expect_err("refused");
        assert!(matches!(error, Error::BadId(_)), "{bad}: {error}");
        let error = home.store.remove_log(&id(bad)).await.expect_err("refused");
        assert!(matches!(error, Error::BadId(_)), "{bad}: {error}");
        let error = home
            .store
            .page(&LogPart::Log(id(bad)), None, 1)
            .await
            .expect_err("refused");
        assert!(matches!(error, Error::BadId(_)), "{bad}: {error}");
    }
    let error = home
        .store
        .log(&id("absent_user_1.jsonl"))
        .await
        .expect_err("absent");
    assert!(matches!(error, Error::NotFound(_)), "{error}");
}

#[tokio::test]
async fn one_lookup_lists_the_folder_once_and_reads_candidates_only() {
    let mut home = Home::new();
    for n in 0..300 {
        let head = format!(r#"{{"agent":"crab","created_by":"tg:{n}"}}"#);
        home.write(&format!("crab_tg-{n}_1.jsonl"), format!("{head}\n"));
    }
    home.restart();
    let listed = || home.disk.listed.load(std::sync::atomic::Ordering::SeqCst);
    let opened = || home.disk.opened.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!((listed(), opened()), (0, 0), "start-up scans nothing");
    for n in 0..20 {
        home.loaded("crab", &format!("tg:{n}")).await;
        home.open("crab", &format!("new:{n}")).await;
    }
    assert_eq!(listed(), 1, "our own changes need no second look");
    assert!(opened() <= 60, "{}", opened());
    // A user copies a log into the folder.
    home.write(
        "crab_guest_1.jsonl",
        "{\"agent\":\"crab\",\"created_by\":\"guest\"}\n",
    );
    home.find("crab", "guest").await.expect("is seen");
}

#[tokio::test]
async fn stray_things_in_the_folder_disturb_nobody() {
    let home = Home::new();
    home.open("crab", "user").await;
    std::fs::create_dir(home.sessions().join("crab_user_7.jsonl")).expect("a folder");
    home.write("notes.jsonl", "not a log\n");
    home.write("empty_x_1.jsonl", "");
    home.write("crab_bob_1.jsonl", "{\"broken\n");
    let list = home.store.list(None, None).await.expect("lists");
    assert_eq!(list.len(), 1);
    assert!(home.find("crab", "user").await.is_some());
    let error = home
        .store
        .open(&key("crab", "bob"), Some(new()))
        .await
        .err()
        .expect("broken");
    let Error::Broken { log, line: 1, .. } = &error else {
        panic!("{error}")
    };
    let path = home.sessions().join("crab_bob_1.jsonl");
    assert_eq!(log, &path.display().to_string());
    assert_eq!(home.read("crab_bob_1.jsonl"), b"{\"broken\n", "untouched");
}

#[tokio::test]
async fn policies_differ_in_what_waits_for_the_disk() {
    for (policy, step, end) in [
        (SyncPolicy::Step, 1, 1),
        (SyncPolicy::Run, 0, 1),
        (SyncPolicy::Never, 0, 0),
    ] {
        let home = Home::with(policy);
        let mut opened = home.open("crab", "user").await;
        let syncs = || home.disk.syncs.load(std::sync::atomic::Ordering::SeqCst);
        let at = append(&mut opened.log, &[user("x")]).await;
        opened.log.synced(at).await.expect("syncs");
        assert_eq!(syncs(), step, "{policy:?}");
        opened.log.synced_at_end(at).await.expect("syncs");
        assert_eq!(syncs(), end, "{policy:?}");
    }
}

#[tokio::test]
async fn a_rename_never_replaces_a_file() {
    let home = Home::new();
    let mut opened = home.open("crab", "user").await;
    home.write("crab_user_1_taken.jsonl", "somebody else's");
    append(&mut opened.log, &[titled("Taken")]).await;
    let names = ["crab_user_1.jsonl", "crab_user_1_taken.jsonl"];
    assert_eq!(home.names(), names);
    assert_eq!(home.read(names[1]), b"somebody else's");
}

#[tokio::test]
async fn torn_lines_follow_the_name_of_their_log() {
    let home = Home::new();
    let mut opened = home.open("crab", "user").await;
    home.write("crab_user_1.jsonl.torn", "{\"ro");
    append(&mut opened.log, &[titled("new")]).await;
    let both = ["crab_user_1_new.jsonl", "crab_user_1_new.jsonl.torn"];
    assert_eq!(home.names(), both);
}
