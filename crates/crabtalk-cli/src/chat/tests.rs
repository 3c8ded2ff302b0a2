use super::*;
use crate::tests::Fake;
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{HistoryEntry, StreamChunk, StreamEnd, StreamStart};
use std::sync::atomic::Ordering;

fn lines(lines: &'static [&str]) -> impl Stream<Item = io::Result<String>> + Send {
    futures_util::stream::iter(lines).map(|line| Ok(format!("{line}\n")))
}

#[tokio::test]
async fn chat_shows_history_and_survives_a_failed_turn() {
    let mut fake = Fake::start().await;
    fake.script.history.lock().unwrap().push(HistoryEntry {
        role: "user".into(),
        content: "earlier".into(),
        ..HistoryEntry::default()
    });
    fake.script.runs.store(false, Ordering::SeqCst);
    let mut at = fake.at("chat");
    fake.send(Event::Start(StreamStart::default())).await;
    let end = StreamEnd {
        error: "down".into(),
        code: 502,
        ..StreamEnd::default()
    };
    fake.send(Event::End(end)).await;
    let input = lines(&["/skill hi", "", "/help", "/quit", "never"]);
    talk(&mut at.context, input, true).await.unwrap();
    assert_eq!(fake.next_told().await, "stream \"\" /skill hi");
    assert!(fake.told.try_recv().is_err());
    assert_eq!(at.out.text(), "user> earlier\n");
    let err = at.err.text();
    let want = "crabtalk: the run failed: down (502)\n\x07In a chat without a screen";
    assert!(err.starts_with(want), "{err:?}");
}

#[tokio::test]
async fn chat_follows_the_active_run() {
    let mut fake = Fake::start().await;
    let mut at = fake.at("chat");
    for event in [
        Event::Start(StreamStart::default()),
        Event::Chunk(StreamChunk {
            content: "on its way\n".into(),
        }),
        Event::End(StreamEnd::default()),
    ] {
        fake.send(event).await;
    }
    talk(&mut at.context, lines(&[]), false).await.unwrap();
    assert_eq!(fake.next_told().await, "attach \"\" \"\"");
    assert_eq!(at.out.text(), "on its way\n");
    assert!(
        at.err.text().contains("following the active run"),
        "{}",
        at.err.text()
    );
}

#[tokio::test]
async fn end_of_the_last_run_is_not_reported() {
    let fake = Fake::start().await;
    let mut at = fake.at("chat");
    let end = StreamEnd {
        error: "down".into(),
        code: 502,
        ..StreamEnd::default()
    };
    fake.send(Event::End(end)).await;
    talk(&mut at.context, lines(&[]), false).await.unwrap();
    assert_eq!(at.err.text(), "");
}

#[tokio::test]
async fn json_chat_prints_only_json() {
    let mut fake = Fake::start().await;
    let entry = |role: &str| HistoryEntry {
        role: role.into(),
        content: "earlier".into(),
        ..HistoryEntry::default()
    };
    *fake.script.history.lock().unwrap() = vec![entry("user"), entry("assistant")];
    fake.script.runs.store(false, Ordering::SeqCst);
    let mut at = fake.at("chat --json");
    for event in [
        Event::Start(StreamStart::default()),
        Event::Chunk(StreamChunk {
            content: "half a line".into(),
        }),
        Event::End(StreamEnd::default()),
    ] {
        fake.send(event).await;
    }
    talk(&mut at.context, lines(&["/help", "hi"]), true)
        .await
        .unwrap();
    assert_eq!(fake.next_told().await, "stream \"\" hi");
    let lines = crate::tests::json_lines(&at.out.text());
    let kinds = lines
        .iter()
        .map(|line| line["type"].as_str().or(line["role"].as_str()));
    let kinds: Vec<_> = kinds.map(Option::unwrap_or_default).collect();
    let history = ["user", "assistant"];
    assert_eq!(kinds[..2], history, "{kinds:?}");
    assert_eq!(kinds[2..], ["start", "chunk", "end"], "{kinds:?}");
}

#[tokio::test]
async fn chat_sends_the_chosen_mode() {
    let mut fake = Fake::start().await;
    fake.script.runs.store(false, Ordering::SeqCst);
    let mut at = fake.at("chat --mode full");
    for event in [
        Event::Start(StreamStart::default()),
        Event::End(StreamEnd::default()),
    ] {
        fake.send(event).await;
    }
    talk(&mut at.context, lines(&["hi"]), false).await.unwrap();
    assert_eq!(fake.next_told().await, "stream \"\" hi in mode full");
}
