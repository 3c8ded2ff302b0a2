use super::*;
use crate::tests::Fake;
use crabtalk_proto::{HistoryEntry, SkillInfo, StreamChunk, StreamEnd, StreamStart};
use input::Reading;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

struct Lines(VecDeque<Typed>);

impl Input for Lines {
    fn read(&mut self, _: &str) -> Reading<'_> {
        Box::pin(std::future::ready(Ok(self
            .0
            .pop_front()
            .unwrap_or(Typed::End))))
    }
}

fn lines(lines: &[&str]) -> Lines {
    Lines(
        lines
            .iter()
            .map(|line| Typed::Line((*line).to_owned()))
            .collect(),
    )
}

#[test]
fn unknown_slashes_are_for_the_agent() {
    for (line, want) in [
        (" ", Line::Nothing),
        ("/help ", Line::Help),
        ("/quit", Line::Quit),
        ("/kill", Line::Kill),
        ("/mode", Line::Mode("")),
        ("/mode ask", Line::Mode("ask")),
        ("/modest", Line::Say("/modest")),
        ("/check-feeds now", Line::Say("/check-feeds now")),
        (" hi\n", Line::Say("hi")),
    ] {
        assert_eq!(meaning(line), want, "{line:?}");
    }
}

#[tokio::test]
async fn chat_shows_history_and_survives_a_failed_turn() {
    let mut fake = Fake::start().await;
    fake.script.history.lock().unwrap().push(HistoryEntry {
        role: "user".into(),
        content: "earlier".into(),
        ..HistoryEntry::default()
    });
    let skill = SkillInfo {
        name: "skill".into(),
        ..SkillInfo::default()
    };
    fake.script.skills.lock().unwrap().push(skill);
    fake.script.runs.store(false, Ordering::SeqCst);
    let mut at = fake.at("chat");
    fake.send(Event::Start(StreamStart::default())).await;
    let end = StreamEnd {
        error: "down".into(),
        code: 502,
        ..StreamEnd::default()
    };
    fake.send(Event::End(end)).await;
    let mut input = lines(&["/skil hi", "/skill hi", "", "/help"]);
    talk(&mut at.context, &mut input, true).await.unwrap();
    assert_eq!(fake.next_told().await, "stream \"\" /skill hi");
    assert_eq!(at.out.text(), "user> earlier\n");
    let err = at.err.text();
    assert!(
        err.starts_with(
            "crabtalk: unknown command or skill /skil here; did you mean /skill?\n\
             crabtalk: the run failed: down (502)\n\x07In a chat:\n  /history"
        ),
        "{err:?}"
    );
}

#[tokio::test]
async fn quit_leaves_and_a_refused_kill_does_not() {
    let mut fake = Fake::start().await;
    let refusal = Err(crabtalk_proto::Status::not_found("nothing runs"));
    fake.script.replies.lock().unwrap().push_back(refusal);
    fake.script.runs.store(false, Ordering::SeqCst);
    let mut at = fake.at("chat --agent crab");
    talk(
        &mut at.context,
        &mut lines(&["/kill", "/quit", "never"]),
        false,
    )
    .await
    .unwrap();
    assert_eq!(fake.next_told().await, "kill \"crab\" \"\"");
    assert!(fake.told.try_recv().is_err());
    assert_eq!(at.err.text(), "crabtalk: nothing runs\n");
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
    talk(&mut at.context, &mut lines(&[]), false).await.unwrap();
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
    talk(&mut at.context, &mut lines(&[]), false).await.unwrap();
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
    let mut input = lines(&["/help", "/mode", "hi", "/history", "/nothing"]);
    talk(&mut at.context, &mut input, true).await.unwrap();
    assert_eq!(fake.next_told().await, "stream \"\" hi");
    let lines = crate::tests::json_lines(&at.out.text());
    let kinds = lines
        .iter()
        .map(|line| line["type"].as_str().or(line["role"].as_str()));
    let kinds: Vec<_> = kinds.map(Option::unwrap_or_default).collect();
    let history = ["user", "assistant"];
    assert_eq!(kinds[..2], history, "{kinds:?}");
    assert_eq!(kinds[2..5], ["start", "chunk", "end"], "{kinds:?}");
    assert_eq!(kinds[5..], history, "{kinds:?}");
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
    let mut input = lines(&["/mode", "/mode ask", "/mode full", "hi"]);
    talk(&mut at.context, &mut input, false).await.unwrap();
    assert_eq!(fake.next_told().await, "stream \"\" hi in mode ask");
    assert_eq!(
        at.err.text(),
        "crabtalk: mode full\n\
         crabtalk: mode ask from the next run\n\
         crabtalk: start the chat with --mode full, or set `mode: full` in the agent's file\n"
    );
}
