//! Loading reads the tail and finds all of the state in it.

use crate::support::*;
use crabtalk_domain::storage::*;
use std::sync::atomic::Ordering::SeqCst;

fn meta(opened: &Opened) -> MetaRecord {
    MetaRecord {
        title: Some(opened.meta.title.clone()),
        cwd: Some(opened.meta.cwd.clone()),
        own_cwd: Some(opened.meta.own_cwd),
        uptime_secs: Some(opened.meta.uptime_secs),
        context: opened.meta.context,
        last_run: Some(opened.last_run),
        open_run: opened.open_run.clone(),
        requests: Some(opened.requests.clone()),
        waiting: None,
        steers: None,
    }
}

#[tokio::test]
async fn context_use_survives_restart_and_is_listed() {
    let mut home = Home::new();
    let context = Some(crabtalk_domain::ContextUse {
        used: 1_220,
        window: Some(4_000),
    });
    let mut log = home.open("crab", "user").await.log;
    let change = MetaRecord {
        context,
        ..MetaRecord::default()
    };
    log.append(&[user("1"), said("2"), Record::Meta(change)])
        .await
        .expect("appends");
    // A later change is a new record.
    let title = MetaRecord {
        title: Some("t".into()),
        ..MetaRecord::default()
    };
    log.append(&[Record::Meta(title)]).await.expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!(opened.meta.context, context);
    let listed = home.store.list(None, None).await.expect("lists");
    assert_eq!(listed[0].meta.context, context);
}

#[tokio::test]
async fn summary_replaces_archive_and_keeps_last_messages() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    log.append(&[user("1"), said("2"), user("3"), said("4")])
        .await
        .expect("appends");
    log.append(&[compact("first", 1), Record::Meta(MetaRecord::default())])
        .await
        .expect("appends");
    log.append(&[user("5"), said("6")]).await.expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!(
        told(&opened.history),
        ["user: first", "assistant: 4", "user: 5", "assistant: 6"]
    );
    assert_eq!(opened.archived_messages, 3);
    assert_eq!(opened.history[0].at, "2026-11-02T00:00:00Z");
    // Kept messages may reach back across an older marker and other lines.
    let mut log = opened.log;
    let runs = [
        Record::Run(run(1, RunPhase::Start)),
        Record::Run(run(1, RunPhase::End)),
    ];
    log.append(&runs).await.expect("appends");
    log.append(&[compact("second", 3), Record::Meta(MetaRecord::default())])
        .await
        .expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!(
        told(&opened.history),
        ["user: second", "assistant: 4", "user: 5", "assistant: 6"]
    );
    assert_eq!(opened.archived_messages, 3);
    assert_eq!(opened.meta.cwd, "/work", "survives the marker");
}

#[tokio::test]
async fn fresh_start_clears_history_and_keeps_state() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    log.append(&[user("1"), said("2"), compact("first", 1), user("3")])
        .await
        .expect("appends");
    log.append(&[compact("", 0), Record::Meta(MetaRecord::default())])
        .await
        .expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert!(opened.history.is_empty() && !opened.has_summary);
    assert_eq!(opened.archived_messages, 3);
    assert_eq!(opened.meta.cwd, "/work", "survives the marker");
    let mut log = opened.log;
    log.append(&[user("4")]).await.expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!(told(&opened.history), ["user: 4"]);
    let archives = home.store.archives(&key("crab", "user")).await;
    assert_eq!(archives.expect("lists").len(), 2);
}

#[tokio::test]
async fn the_calls_that_waited_last_are_found_again() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let waiting = |ids: &[&str]| {
        Record::Meta(MetaRecord {
            waiting: Some(ids.iter().map(|id| (*id).to_owned()).collect()),
            ..MetaRecord::default()
        })
    };
    let title = Record::Meta(MetaRecord {
        title: Some("t".into()),
        ..MetaRecord::default()
    });
    log.append(&[user("x"), waiting(&["a"]), waiting(&["a", "b"]), title])
        .await
        .expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!(opened.waiting, ["a", "b"]);
    let mut log = opened.log;
    log.append(&[waiting(&[])]).await.expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert!(opened.waiting.is_empty());
}

#[tokio::test]
async fn waiting_steers_are_loaded_until_consumed() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let put_in = |texts: &[&str]| {
        Record::Meta(MetaRecord {
            steers: Some(texts.iter().map(|text| (*text).to_owned()).collect()),
            ..MetaRecord::default()
        })
    };
    let start = Record::Run(run(1, RunPhase::Start));
    let call = [user("0"), start, user("go"), put_in(&["a"]), put_in(&["b"])];
    log.append(&call).await.expect("appends");
    let source = LogPart::Conversation(key("crab", "user"));
    let check = async |home: &mut Home, want: &[&str]| {
        home.restart();
        let opened = home.find("crab", "user").await.expect("exists");
        assert_eq!(opened.steers, want);
        let page = home.store.page(&source, None, 9).await.expect("reads");
        let shown: Vec<_> = page.waiting.iter().map(|e| &*e.message.content).collect();
        assert_eq!(shown, want);
        let older = home.store.page(&source, Some(u64::MAX), 9).await;
        assert!(older.expect("reads").waiting.is_empty());
        opened.log
    };
    let mut log = check(&mut home, &["a", "b"]).await;
    log.append(&[said("1"), user("a")]).await.expect("appends");
    let mut log = check(&mut home, &["b"]).await;
    // A compaction in between repeats the waiting messages.
    let state = MetaRecord {
        last_run: Some(1),
        open_run: Some(run(1, RunPhase::Start)),
        requests: Some(Vec::new()),
        steers: Some(vec!["b".into()]),
        ..MetaRecord::default()
    };
    log.append(&[compact("so far", 1), Record::Meta(state), put_in(&["c"])])
        .await
        .expect("appends");
    let mut log = check(&mut home, &["b", "c"]).await;
    log.append(&[user("b"), user("c")]).await.expect("appends");
    let mut log = check(&mut home, &[]).await;
    // The answer of the next run consumes none.
    log.append(&[
        Record::Run(run(2, RunPhase::Start)),
        user("on"),
        put_in(&["d"]),
    ])
    .await
    .expect("appends");
    check(&mut home, &["d"]).await;
}

#[tokio::test]
async fn runs_and_requests_are_found_again() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    for id in 1..=2 {
        log.append(&[Record::Run(run(id, RunPhase::Start)), user("x")])
            .await
            .expect("appends");
        log.append(&[Record::Run(run(id, RunPhase::End))])
            .await
            .expect("appends");
    }
    log.append(&[Record::Run(run(3, RunPhase::Start)), user("y")])
        .await
        .expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!(opened.last_run, 3);
    assert_eq!(opened.open_run, Some(run(3, RunPhase::Start)));
    assert_eq!(opened.last_end, Some(run(2, RunPhase::End)));
    let ids = |opened: &Opened| opened.requests.iter().map(|r| r.1).collect::<Vec<_>>();
    assert!(!opened.has_summary);
    let is_open = async |home: &Home| {
        let list = home.store.list(None, None).await;
        list.expect("lists")[0].has_open_run
    };
    assert!(is_open(&home).await);
    assert_eq!(ids(&opened), [1, 2, 3]);
    assert_eq!(opened.requests[0].0, "req-1");

    // Compacted during a run: the complete state follows the marker.
    let state = meta(&opened);
    let mut log = opened.log;
    log.append(&[compact("sum", 1), Record::Meta(state)])
        .await
        .expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!(
        (opened.last_run, opened.open_run.as_ref().map(|r| r.id)),
        (3, Some(3))
    );
    assert_eq!(ids(&opened), [1, 2, 3]);
    let mut log = opened.log;
    log.append(&[Record::Run(run(3, RunPhase::Interrupted))])
        .await
        .expect("appends");
    log.append(&[Record::Run(run(4, RunPhase::Start))])
        .await
        .expect("appends");
    log.append(&[Record::Run(run(4, RunPhase::End))])
        .await
        .expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!((opened.last_run, opened.open_run.clone()), (4, None));
    assert_eq!(ids(&opened), [1, 2, 3, 4]);
    assert_eq!(opened.last_end, Some(run(4, RunPhase::End)));
    assert!(opened.has_summary && !is_open(&home).await);
}

#[tokio::test]
async fn only_the_last_requests_are_remembered() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    for id in 1..=300 {
        log.append(&[
            Record::Run(run(id, RunPhase::Start)),
            Record::Run(run(id, RunPhase::End)),
        ])
        .await
        .expect("appends");
    }
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!(opened.requests.len(), 256);
    assert_eq!(opened.requests[0], ("req-45".into(), 45));
    assert_eq!(opened.requests[255], ("req-300".into(), 300));
}

#[tokio::test]
async fn the_newest_state_wins_field_by_field() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let set = |title: Option<&str>, cwd: Option<&str>, uptime_secs| {
        let (title, cwd) = (title.map(String::from), cwd.map(String::from));
        Record::Meta(MetaRecord {
            title,
            own_cwd: cwd.is_some().then_some(true),
            cwd,
            uptime_secs,
            ..MetaRecord::default()
        })
    };
    log.append(&[set(Some("one"), None, None), set(None, Some("/b"), Some(5))])
        .await
        .expect("appends");
    log.append(&[set(Some("two"), None, None)])
        .await
        .expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    let Meta {
        title,
        cwd,
        own_cwd,
        uptime_secs,
        created_at,
        context,
    } = opened.meta;
    assert_eq!((&*title, &*cwd, uptime_secs), ("two", "/b", 5));
    assert_eq!(context, None, "nobody said it");
    assert!(own_cwd, "it was set for this conversation");
    assert_eq!(created_at, "2026-11-01T00:00:00Z");
    let list = home.store.list(None, None).await.expect("lists");
    assert_eq!((&*list[0].meta.title, &*list[0].meta.cwd), ("two", "/b"));
    assert!(list[0].meta.own_cwd);
    let made = home.open("crab", "other").await.meta;
    assert_eq!((&*made.cwd, made.own_cwd), ("/work", false));
}

#[tokio::test]
async fn crash_between_marker_and_state_loses_neither() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let titled = MetaRecord {
        title: Some("kept".into()),
        ..MetaRecord::default()
    };
    log.append(&[
        Record::Meta(titled),
        Record::Run(run(1, RunPhase::Start)),
        user("x"),
    ])
    .await
    .expect("appends");
    log.append(&[compact("sum", 0)]).await.expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!(opened.meta.title, "kept");
    assert_eq!(opened.open_run.map(|r| r.id), Some(1));
    assert_eq!(told(&opened.history), ["user: sum"]);
}

#[tokio::test]
async fn loading_and_listing_do_not_read_archives() {
    let mut costs = Vec::new();
    // The state that follows each marker.
    let state = || MetaRecord {
        requests: Some(Vec::new()),
        ..MetaRecord::default()
    };
    for archived in [10, 10_000] {
        let mut home = Home::new();
        let mut log = home.open("crab", "user").await.log;
        let text = "word ".repeat(40);
        let batch: Vec<Record> = (0..archived).map(|_| user(&text)).collect();
        for part in batch.chunks(1000) {
            log.append(part).await.expect("appends");
        }
        log.append(&[compact("one", 2), Record::Meta(state())])
            .await
            .expect("appends");
        for part in batch.chunks(1000) {
            log.append(part).await.expect("appends");
        }
        log.append(&[compact("two", 2), Record::Meta(state())])
            .await
            .expect("appends");
        log.append(&[user("x"), said("y")]).await.expect("appends");
        home.restart();
        home.disk.bytes_read();
        let opened = home.find("crab", "user").await.expect("exists");
        assert_eq!(opened.history.len(), 5);
        assert_eq!(opened.archived_messages, 2 * archived - 2);
        let open = home.disk.bytes_read();
        let archives = home
            .store
            .archives(&key("crab", "user"))
            .await
            .expect("lists");
        assert_eq!(
            archives.iter().map(|a| a.message_count).sum::<u64>(),
            2 * archived
        );
        let list_archives = home.disk.bytes_read();
        let list = home.store.list(None, None).await.expect("lists");
        assert_eq!(list[0].message_count, 2 * archived + 2);
        costs.push((open, list_archives, home.disk.bytes_read()));
    }
    let (few, many) = (costs[0], costs[1]);
    let slack = 64 * 1024;
    assert!(many.0 <= few.0 + slack, "open: {few:?} {many:?}");
    assert!(many.1 <= few.1 + slack, "archives: {few:?} {many:?}");
    assert!(many.2 <= few.2 + slack, "list: {few:?} {many:?}");
}

#[tokio::test]
async fn a_broken_line_is_passed_over_and_left_alone() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    log.append(&[user("one"), user("two"), user("three")])
        .await
        .expect("appends");
    drop(log);
    let text = String::from_utf8(home.read("crab_user_1.jsonl")).expect("utf-8");
    let broken = text.replace("\"content\":\"two\"", "\"content\":two");
    home.write("crab_user_1.jsonl", &broken);
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!(told(&opened.history), ["user: one", "user: three"]);
    assert_eq!(home.read("crab_user_1.jsonl"), broken.as_bytes());
    assert_eq!(home.names(), ["crab_user_1.jsonl"]);
    let source = LogPart::Conversation(key("crab", "user"));
    let page = home.store.page(&source, None, 9).await.expect("reads");
    assert_eq!(page.entries.len(), 2);
}

async fn checked(home: &Home, lines: bool) -> Vec<BrokenLog> {
    let check = Check {
        in_trash: false,
        lines,
        most: 9,
        time: std::time::Duration::from_secs(60),
    };
    home.store.check(check).await.expect("checks").logs
}

#[tokio::test]
async fn what_cannot_be_read_is_named_for_who_asks() {
    let home = Home::new();
    for sender in ["user", "well"] {
        let mut log = home.open("crab", sender).await.log;
        log.append(&[user("one"), user("two"), user("three"), user("four")])
            .await
            .expect("appends");
    }
    let text = String::from_utf8(home.read("crab_user_1.jsonl")).expect("utf-8");
    let broken = text
        .replace("\"content\":\"two\"", "\"content\":two")
        .replace("\"content\":\"three\"", "three");
    // A partial line of a running or interrupted append is not a fault.
    let broken = format!("{broken}{{\"role\":\"us");
    home.write("crab_user_1.jsonl", &broken);
    home.write("crab_bob_1.jsonl", "{\"broken\n");
    home.write("crab_cut_1.jsonl", "{\"agent\":\"cr");
    home.write("notes.txt", "mine");
    home.write("notes.jsonl", "mine");
    home.write("crab_user_1.jsonl.torn", "ours");
    let look = async |lines| checked(&home, lines).await.into_iter();
    let files: Vec<String> = look(false).await.map(|found| found.id.0).collect();
    assert_eq!(files, ["crab_bob_1.jsonl", "notes.jsonl", "notes.txt"]);
    let all: Vec<_> = look(true).await.collect();
    let with_lines: Vec<_> = all.iter().filter(|found| found.lines > 0).collect();
    assert_eq!((all.len(), with_lines.len()), (4, 1));
    let found = with_lines[0];
    let first_at = broken.find("\"content\":two").expect("there");
    let first_at = broken[..first_at].rfind('\n').expect("a line") + 1;
    assert_eq!(found.key, Some(key("crab", "user")));
    assert_eq!((found.lines, found.messages), (2, 2));
    assert_eq!(found.first_at, first_at as u64);
    assert_eq!(home.read("crab_user_1.jsonl"), broken.as_bytes());
}

#[tokio::test]
async fn good_first_lines_are_reread_only_in_a_full_check() {
    let mut home = Home::new();
    for sender in ["user", "well"] {
        home.open("crab", sender).await;
    }
    home.restart();
    home.write("crab_bob_1.jsonl", "{\"broken\n");
    let of_user = home.read("crab_user_1.jsonl");
    home.write("by hand.jsonl", of_user);
    // Line 1 is read of those that were not read yet.
    let opened = async |lines| {
        home.disk.opened.store(0, SeqCst);
        assert_eq!(checked(&home, lines).await.len(), 1);
        home.disk.opened.load(SeqCst)
    };
    assert_eq!(opened(false).await, 2);
    assert_eq!(opened(false).await, 1);
    assert_eq!(opened(true).await, 4);
}

#[tokio::test]
async fn words_that_look_like_a_marker_are_words() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let forged = "{\"compact\":\"gone\"}\n{\"compact\":\"gone\"}";
    log.append(&[user("kept"), user(forged), said("x")])
        .await
        .expect("appends");
    home.restart();
    let opened = home.find("crab", "user").await.expect("exists");
    assert_eq!(opened.history.len(), 3);
    assert_eq!(opened.history[1].content, forged);
    assert!(
        home.store
            .archives(&key("crab", "user"))
            .await
            .expect("lists")
            .is_empty()
    );
}

#[tokio::test]
async fn injected_messages_never_reach_the_disk() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let before = home.read("crab_user_1.jsonl");
    let injected = Record::Message(std::sync::Arc::new(crabtalk_domain::Message::injected(
        "me",
    )));
    log.append(std::slice::from_ref(&injected))
        .await
        .expect("appends nothing");
    assert_eq!(home.read("crab_user_1.jsonl"), before);
    log.append(&[user("a"), injected]).await.expect("appends");
    home.restart();
    assert_eq!(
        told(&home.find("crab", "user").await.expect("exists").history),
        ["user: a"]
    );
}
