//! Loading reads the tail only and passes over broken lines.

use crate::support::*;
use crabtalk_domain::storage::*;

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
            append(&mut log, part).await;
        }
        append(&mut log, &[compact("one", 2), Record::Meta(state())]).await;
        for part in batch.chunks(1000) {
            append(&mut log, part).await;
        }
        append(&mut log, &[compact("two", 2), Record::Meta(state())]).await;
        append(&mut log, &[user("x"), said("y")]).await;
        home.restart();
        home.disk.bytes_read();
        let opened = home.loaded("crab", "user").await;
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
    append(&mut log, &[user("one"), user("two"), user("three")]).await;
    drop(log);
    let text = String::from_utf8(home.read("crab_user_1.jsonl")).expect("utf-8");
    let broken = text.replace("\"content\":\"two\"", "\"content\":two");
    home.write("crab_user_1.jsonl", &broken);
    let opened = home.loaded("crab", "user").await;
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
        append(
            &mut log,
            &[user("one"), user("two"), user("three"), user("four")],
        )
        .await;
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
