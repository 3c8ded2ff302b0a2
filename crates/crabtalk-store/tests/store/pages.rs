//! Pages and archives: what they cost, and logs that people edited.

use crate::support::*;
use crabtalk_domain::storage::*;

#[tokio::test]
async fn a_page_costs_what_is_on_it() {
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let text = "word ".repeat(100);
    let batch: Vec<Record> = (0..4000).map(|_| user(&text)).collect();
    append(&mut log, &batch).await;
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
async fn old_markers_are_found_by_reading_the_log() {
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
    let mut opened = home.loaded("crab", "user").await;
    assert!(home.disk.bytes_read() < 64 * 1024, "loading does not count");
    let state = || Record::Meta(MetaRecord::default());
    append(&mut opened.log, &[user("x"), compact("Ours", 0), state()]).await;
    let counts = |infos: &[ArchiveInfo]| infos.iter().map(|i| i.message_count).collect::<Vec<_>>();
    let infos = home.store.archives(&pair).await.expect("lists");
    assert_eq!(counts(&infos), [2000, 4000, 6000, 8000, 10_000, 1]);
    assert_eq!(infos[4].title, "Part 5.");
    let list = home.store.list(None, None).await.expect("lists");
    assert_eq!(list[0].message_count, 30_001);
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
    append(&mut log, &[user("1"), compact("one", 0), state()]).await;
    append(
        &mut log,
        &[user("2"), compact("two", 0), state(), user("3")],
    )
    .await;
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
    append(&mut log, &[user("4"), compact("three", 0), state()]).await;
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
    append(&mut log, &[user("1"), compact("sum", 0), state, user("2")]).await;
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
        append(&mut log, &lines).await;
    }
    let source = LogPart::Conversation(key("crab", "user"));
    let page = home.store.page(&source, None, 100).await.expect("reads");
    assert_eq!((page.entries.len(), page.more), (8, true));
    let before = Some(page.entries[0].index);
    let page = home.store.page(&source, before, 100).await.expect("reads");
    assert_eq!((page.entries.len(), page.more), (4, false));
}
