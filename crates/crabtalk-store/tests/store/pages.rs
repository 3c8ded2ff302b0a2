//! Pages and archives.

use crate::support::*;
use crabtalk_domain::storage::*;
use crabtalk_domain::{Message, ToolCall};
use std::sync::Arc;

fn calls(ids: &[&str]) -> Record {
    let mut message = Message::assistant("");
    let call = |id: &&str| ToolCall {
        id: (*id).into(),
        name: "t".into(),
        arguments: "{}".into(),
    };
    message.tool_calls = ids.iter().map(call).collect();
    Record::Message(Arc::new(message))
}

fn result(id: &str) -> Record {
    Record::Message(Arc::new(Message::tool(id, id, false)))
}

fn shown(page: &Page) -> Vec<String> {
    let text = |e: &LogEntry| match (e.compact, e.message.tool_calls.is_empty()) {
        (true, _) => format!("[{}]", e.message.content),
        (_, true) => e.message.content.clone(),
        (_, false) => "calls".into(),
    };
    page.entries.iter().map(text).collect()
}

/// All pages of a source, newest first, with ascending indexes checked.
async fn all(home: &Home, source: &LogPart, limit: usize) -> Vec<Vec<String>> {
    let (mut pages, mut before) = (Vec::new(), None);
    loop {
        let page = home.store.page(source, before, limit).await.expect("reads");
        let indexes: Vec<u64> = page.entries.iter().map(|e| e.index).collect();
        assert!(indexes.is_sorted_by(|a, b| a < b), "{indexes:?}");
        assert!(
            indexes
                .iter()
                .all(|at| before.is_none_or(|before| *at < before))
        );
        before = indexes.first().copied();
        pages.push(shown(&page));
        if !page.more {
            return pages;
        }
    }
}

#[tokio::test]
async fn pages_go_back_to_the_beginning() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let source = LogPart::Conversation(key("crab", "user"));
    let empty = home.store.page(&source, None, 5).await.expect("reads");
    assert!(empty.entries.is_empty() && !empty.more);
    log.append(&[user("1"), Record::Run(run(1, RunPhase::Start)), user("2")])
        .await
        .expect("appends");
    log.append(&[
        compact("sum", 0),
        Record::Meta(MetaRecord::default()),
        user("3"),
        user("4"),
    ])
    .await
    .expect("appends");
    assert_eq!(
        all(&home, &source, 2).await,
        [vec!["3", "4"], vec!["2", "[sum]"], vec!["1"]]
    );
    assert_eq!(
        all(&home, &source, 5).await,
        [vec!["1", "2", "[sum]", "3", "4"]]
    );
    let none = home.store.page(&source, None, 0).await.expect("reads");
    assert!(none.entries.is_empty() && none.more);
    // An index that no page returned: whole lines before it.
    let all = home
        .store
        .page(&source, None, 9)
        .await
        .expect("reads")
        .entries;
    let odd = home
        .store
        .page(&source, Some(all[1].index + 5), 9)
        .await
        .expect("reads");
    assert_eq!(shown(&odd), ["1"]);
    let beyond = home
        .store
        .page(&source, Some(u64::MAX), 1)
        .await
        .expect("reads");
    assert_eq!(shown(&beyond), ["4"]);
    let error = home
        .store
        .page(&LogPart::Conversation(key("a", "b")), None, 1)
        .await;
    assert!(matches!(error, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn results_are_in_call_order_and_with_their_calls() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    log.append(&[user("q"), calls(&["a", "b", "c"])])
        .await
        .expect("appends");
    for id in ["c", "a", "b"] {
        log.append(&[result(id)]).await.expect("appends");
    }
    log.append(&[
        calls(&["d", "e"]),
        result("e"),
        result("x"),
        result("d"),
        said("done"),
    ])
    .await
    .expect("appends");
    let source = LogPart::Conversation(key("crab", "user"));
    let whole = ["q", "calls", "a", "b", "c", "calls", "d", "e", "x", "done"];
    assert_eq!(all(&home, &source, 100).await, [whole]);
    for limit in 1..10 {
        let pages = all(&home, &source, limit).await;
        let joined: Vec<String> = pages.iter().rev().flatten().cloned().collect();
        assert_eq!(joined, whole, "limit {limit}");
        let starts = pages.iter().map(|page| page[0].as_str());
        assert!(
            starts.clone().all(|s| ["q", "calls", "done"].contains(&s)),
            "limit {limit}"
        );
    }
}

#[tokio::test]
async fn a_page_costs_what_is_on_it() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let text = "word ".repeat(100);
    let batch: Vec<Record> = (0..4000).map(|_| user(&text)).collect();
    log.append(&batch).await.expect("appends");
    home.disk.bytes_read();
    let source = LogPart::Conversation(key("crab", "user"));
    let page = home.store.page(&source, None, 10).await.expect("reads");
    assert_eq!(page.entries.len(), 10);
    let middle = page.entries[0].index / 2;
    home.store
        .page(&source, Some(middle), 10)
        .await
        .expect("reads");
    assert!(home.disk.bytes_read() < 64 * 1024);
}

#[tokio::test]
async fn archives_are_the_segments_before_the_markers() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let pair = key("crab", "user");
    assert!(home.store.archives(&pair).await.expect("lists").is_empty());
    let state = || Record::Meta(MetaRecord::default());
    log.append(&[user("1"), said("2"), compact("one", 1), state()])
        .await
        .expect("appends");
    log.append(&[
        user("3"),
        compact("two", 0),
        state(),
        compact("three", 0),
        state(),
        user("4"),
    ])
    .await
    .expect("appends");
    let infos = home.store.archives(&pair).await.expect("lists");
    let shown_infos: Vec<_> = infos
        .iter()
        .map(|i| (i.index, &*i.title, &*i.summary, i.message_count))
        .collect();
    assert_eq!(
        shown_infos,
        [
            (1, "one.", "one", 2),
            (2, "two.", "two", 1),
            (3, "three.", "three", 0)
        ]
    );
    assert_eq!(infos[0].archived_at, "2026-11-02T00:00:00Z");
    let archive = |n| LogPart::Archive(key("crab", "user"), n);
    assert_eq!(all(&home, &archive(1), 1).await, [["2"], ["1"]]);
    assert_eq!(all(&home, &archive(2), 9).await, [["3"]]);
    assert_eq!(all(&home, &archive(3), 9).await, [Vec::<String>::new()]);
    for n in [0, 4, u32::MAX] {
        let error = home
            .store
            .page(&archive(n), None, 1)
            .await
            .expect_err("none");
        assert!(matches!(error, Error::NotFound(_)), "{error}");
    }
}

#[tokio::test]
async fn entries_are_read_again_by_their_indexes() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    log.append(&[
        user("1"),
        Record::Run(run(1, RunPhase::Start)),
        compact("one", 0),
        said("2"),
    ])
    .await
    .expect("appends");
    let pair = key("crab", "user");
    let source = LogPart::Conversation(pair.clone());
    let page = home.store.page(&source, None, 9).await.expect("reads");
    let mut indexes: Vec<u64> = page.entries.iter().map(|e| e.index).collect();
    // No entry begins there: within a line, before the first, at the end.
    indexes.extend([indexes[1] + 3, 0, 1, u64::MAX]);
    let entries = home.store.entries(&pair, &indexes).await.expect("reads");
    let again = Page {
        entries,
        ..Page::default()
    };
    assert_eq!(shown(&again), shown(&page));
    let absent = key("crab", "nobody");
    let error = home.store.entries(&absent, &[1]).await.expect_err("none");
    assert!(matches!(error, Error::NotFound(_)), "{error}");
}

#[tokio::test]
async fn old_markers_are_found_by_reading_once() {
    let home = Home::new();
    let mut text = String::from("{\"agent\":\"crab\",\"created_by\":\"user\"}\n");
    for n in 1..=5 {
        for m in 0..2000 * n {
            text.push_str(&format!(
                "{{\"role\":\"user\",\"content\":\"{n} {m} {:060}\"}}\n",
                0
            ));
        }
        text.push_str(&format!("{{\"compact\":\"Part {n}. More.\"}}\n"));
    }
    home.write("crab_user_1.jsonl", &text);
    let pair = key("crab", "user");
    let mut opened = home.find("crab", "user").await.expect("exists");
    assert!(home.disk.bytes_read() < 64 * 1024, "loading does not count");
    let state = || Record::Meta(MetaRecord::default());
    opened
        .log
        .append(&[user("x"), compact("Ours", 0), state()])
        .await
        .expect("appends");
    let counts = |infos: &[ArchiveInfo]| infos.iter().map(|i| i.message_count).collect::<Vec<_>>();
    for round in 0..2 {
        home.disk.bytes_read();
        let infos = home.store.archives(&pair).await.expect("lists");
        assert_eq!(counts(&infos), [2000, 4000, 6000, 8000, 10_000, 1]);
        assert_eq!(infos[4].title, "Part 5.");
        let read = home.disk.bytes_read();
        assert_eq!(
            read > text.len() as u64,
            round == 0,
            "round {round}: {read}"
        );
        let list = home.store.list(None, None).await.expect("lists");
        assert_eq!(list[0].message_count, 30_001);
    }
    let page = home
        .store
        .page(&LogPart::Archive(pair, 2), None, 1)
        .await
        .expect("reads");
    assert!(page.entries[0].message.content.starts_with("2 3999 "));
}

#[tokio::test]
async fn markers_moved_by_manual_edit_are_found() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let state = || Record::Meta(MetaRecord::default());
    log.append(&[user("1"), compact("one", 0), state()])
        .await
        .expect("appends");
    log.append(&[user("2"), compact("two", 0), state(), user("3")])
        .await
        .expect("appends");
    // A user edits an early message: every later offset is wrong now.
    let text = String::from_utf8(home.read("crab_user_1.jsonl")).expect("utf-8");
    home.write(
        "crab_user_1.jsonl",
        text.replace("\"1\"", "\"1, corrected\""),
    );
    let counts = async || {
        let infos = home.store.archives(&key("crab", "user")).await;
        let infos = infos.expect("lists");
        let shown = infos.iter().map(|i| (i.summary.clone(), i.message_count));
        shown.collect::<Vec<_>>()
    };
    let expected = [("one".to_owned(), 1), ("two".to_owned(), 1)];
    assert_eq!(counts().await, expected);
    // The open log saw it too, and what it writes from then on is right.
    log.append(&[user("4"), compact("three", 0), state()])
        .await
        .expect("appends");
    let expected = [&expected[..], &[("three".to_owned(), 2)]].concat();
    assert_eq!(counts().await, expected);
    let list = home.store.list(None, None).await.expect("lists");
    assert_eq!(list[0].message_count, 4);
}

#[tokio::test]
async fn manually_added_lines_of_an_open_log_are_counted() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let path = home.write("other", "");
    std::fs::remove_file(path).expect("remove");
    let mut text = home.read("crab_user_1.jsonl");
    text.extend_from_slice(b"{\"role\":\"user\",\"content\":\"by hand\"}\n");
    home.write("crab_user_1.jsonl", &text);
    let state = Record::Meta(MetaRecord::default());
    log.append(&[user("1"), compact("sum", 0), state, user("2")])
        .await
        .expect("appends");
    let list = home.store.list(None, None).await.expect("lists");
    assert_eq!(list[0].message_count, 3);
}

#[tokio::test]
async fn page_full_of_images_ends_early_and_reports_more() {
    use crabtalk_domain::tool::ToolOutput;
    use crabtalk_domain::{Image, ImageType, MAX_IMAGE_BYTES, Message, ToolCall};
    use std::sync::Arc;
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let image = Image::new(ImageType::Png, &vec![1; MAX_IMAGE_BYTES]).expect("the largest");
    for step in 0..6 {
        let id = step.to_string();
        let mut call = Message::assistant("");
        call.tool_calls = vec![ToolCall {
            id: id.clone(),
            ..ToolCall::default()
        }];
        let output = ToolOutput::ok("x").with_images(vec![image.clone()]);
        let lines = [call, Message::result(id, output)].map(|m| Record::Message(Arc::new(m)));
        log.append(&lines).await.expect("appends");
    }
    let source = LogPart::Conversation(key("crab", "user"));
    let page = home.store.page(&source, None, 100).await.expect("reads");
    assert_eq!((page.entries.len(), page.more), (8, true));
    let before = Some(page.entries[0].index);
    let page = home.store.page(&source, before, 100).await.expect("reads");
    assert_eq!((page.entries.len(), page.more), (4, false));
}
