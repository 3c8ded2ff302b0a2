mod asks;
mod cancel;

use super::*;
use crate::tests::{At, Fake, shows};
use crate::view;
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{
    ApprovalInfo, AskOutcome, AskQuestion, AskSettledEvent, AskUserEvent, Image, QueuedEvent,
    Status, StreamChunk, StreamStart, TextEndEvent, TokenUsage, ToolCallInfo, ToolResultEvent,
    ToolStartEvent, ToolsCompleteEvent, WaitingEvent,
};

fn start() -> Event {
    Event::Start(StreamStart {
        agent: "crab".into(),
        run: 1,
        model: "m".into(),
        ..StreamStart::default()
    })
}

fn chunk(text: &str) -> Event {
    Event::Chunk(StreamChunk {
        content: text.into(),
    })
}

fn tool_start(id: &str) -> Event {
    Event::ToolStart(ToolStartEvent {
        calls: vec![ToolCallInfo {
            name: "bash".into(),
            arguments: r#"{"command":"ls"}"#.into(),
            call_id: id.into(),
        }],
    })
}

fn tool_result(id: &str, output: &str, is_error: bool) -> Event {
    Event::ToolResult(ToolResultEvent {
        call_id: id.into(),
        output: output.into(),
        duration_ms: 1_500,
        is_error,
        ..ToolResultEvent::default()
    })
}

fn picture(id: &str) -> Event {
    let Event::ToolResult(mut result) = tool_result(id, "a.png", false) else {
        unreachable!("it makes results")
    };
    result.images.push(Image {
        media_type: "image/png".into(),
        data: vec![0; 34_000].into(),
    });
    Event::ToolResult(result)
}

fn approval(id: &str) -> Event {
    let ask = AskUserEvent {
        ask_id: id.into(),
        kind: "approval".into(),
        tool: "bash".into(),
        detail: "ls".into(),
        always: Some(ApprovalInfo {
            agent: "crab".into(),
            ..ApprovalInfo::default()
        }),
        ..AskUserEvent::default()
    };
    Event::AskUser(ask.into())
}

fn question(id: &str) -> Event {
    let ask = AskUserEvent {
        ask_id: id.into(),
        kind: "question".into(),
        questions: vec![AskQuestion {
            question: "Which?".into(),
            ..AskQuestion::default()
        }],
        ..AskUserEvent::default()
    };
    Event::AskUser(ask.into())
}

fn end(error: &str, code: u32) -> Event {
    Event::End(StreamEnd {
        agent: "crab".into(),
        error: error.into(),
        code,
        provider: "p".into(),
        model: "m".into(),
        usage: Some(TokenUsage {
            prompt_tokens: 3,
            completion_tokens: 4,
            ..TokenUsage::default()
        }),
        money: Some(0.25),
        unpriced_tokens: 2,
        run: 1,
        ..StreamEnd::default()
    })
}

fn complete() -> Event {
    Event::ToolsComplete(ToolsCompleteEvent {})
}

async fn ask(words: &str) -> (Fake, At) {
    let fake = Fake::start().await;
    let at = fake.at(&format!("ask --no-stdin {words}"));
    (fake, at)
}

#[test]
fn queue_position_is_shown_in_words() {
    let said = |ahead, origin: &str, guest: &str| {
        view::queued(&QueuedEvent {
            ahead,
            origin: origin.into(),
            guest: guest.into(),
        })
    };
    for (ahead, origin, guest, want) in [
        (1, "client:local", "", "behind another run"),
        (1, "", "", "behind another run"),
        (1, "cron:7:user", "", "behind a cron run"),
        (1, "event:ci", "", "behind an event's run"),
        (1, "event#2:a", "", "behind an event's run"),
        (1, "delegate:a/b#1", "", "behind a delegated run"),
        (1, "compaction", "", "behind a compaction"),
        (1, "client:local", "reviewer", "behind the guest reviewer"),
        (3, "cron:7", "", "behind a cron run and 2 more"),
    ] {
        assert_eq!(said(ahead, origin, guest), want);
    }
}

#[test]
fn author_is_shown_in_words() {
    for (origin, want) in [
        ("client:local", "from another client"),
        ("client:token/laptop", "from a client with the token laptop"),
        ("cron:7:user", "from cron, entry 7"),
        ("event:ci:done", "from the event ci:done"),
        ("event#2:agent:crab:done", "from the event agent:crab:done"),
        ("delegate:a/b#1", "from another agent"),
        ("", "from another client"),
    ] {
        assert_eq!(view::origin(origin), want);
    }
}

#[tokio::test]
async fn an_answer_goes_to_stdout_and_the_rest_to_stderr() {
    let (mut fake, mut at) = ask("what is this").await;
    for event in [
        start(),
        chunk("I look."),
        Event::TextEnd(TextEndEvent::default()),
        tool_start("1"),
        tool_result("1", "no such\nfile", true),
        complete(),
        tool_start("2"),
        picture("2"),
        complete(),
        chunk("do"),
        chunk("ne"),
        end("", 0),
    ] {
        fake.send(event).await;
    }
    at.run().await.unwrap();
    assert_eq!(fake.next_told().await, "stream \"\" what is this");
    assert_eq!(at.out.text(), "I look.\ndone\n");
    assert_eq!(
        at.err.text(),
        "crab answers with m\n> bash ls\n< bash failed after 1.5 s: no such\n> bash ls\n< bash 1.5 s\n  [image/png, 34 KB]\np/m: 3 tokens read, 4 written, $0.2500 (2 tokens without price)\n"
    );
}

#[tokio::test]
async fn a_failed_run_says_why() {
    let (fake, mut at) = ask("x").await;
    for event in [start(), end("the provider is down", 502)] {
        fake.send(event).await;
    }
    assert!(matches!(at.run().await, Err(Error::RunFailed)));
    assert!(
        at.err
            .text()
            .ends_with("crabtalk: the run failed: the provider is down (502)\n")
    );
}

#[tokio::test]
async fn json_prints_one_event_per_line() {
    let (fake, mut at) = ask("--json x").await;
    for event in [start(), chunk("a\x1b"), approval("a1"), end("", 0)] {
        fake.send(event).await;
    }
    at.run().await.unwrap();
    let lines: Vec<serde_json::Value> = at
        .out
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let types: Vec<_> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["start", "chunk", "ask_user", "end"]);
    assert_eq!(lines[1]["content"], "a\x1b");
    assert_eq!(lines[2]["ask_id"], "a1");
}

#[tokio::test]
async fn broken_stream_names_attach() {
    let (mut fake, mut at) = ask("x").await;
    fake.send(start()).await;
    let drive = async {
        fake.next_told().await;
        fake.stop().await;
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    match done {
        Err(Error::Failed(message)) => assert!(message.contains("crabtalk attach"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn without_a_terminal_other_senders_approvals_are_not_awaited() {
    let waiting = || {
        Event::Waiting(WaitingEvent {
            whom: "an owner".into(),
            timeout_secs: 86_400,
        })
    };
    let (fake, mut at) = ask("--as tg:1 x").await;
    for event in [start(), waiting()] {
        fake.send(event).await;
    }
    assert!(matches!(at.run().await, Err(Error::RunFailed)));
    let err = at.err.text();
    assert!(
        err.contains("waits for an owner to approve") && err.contains("for 1 d at most"),
        "{err}"
    );
    // `--wait` waits.
    let (fake, mut at) = ask("--wait --as tg:1 x").await;
    for event in [start(), waiting(), end("", 0)] {
        fake.send(event).await;
    }
    at.run().await.unwrap();
    assert!(at.err.text().contains("waits for an owner"));
}
