use super::*;
use crate::tests::{At, Fake, shows};
use crate::view;
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{
    AskOutcome, AskQuestion, AskSettledEvent, AskUserEvent, Image, QueuedEvent, Status,
    StreamChunk, StreamStart, TextEndEvent, TokenUsage, ToolCallInfo, ToolResultEvent,
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
    Event::AskUser(AskUserEvent {
        ask_id: id.into(),
        kind: "approval".into(),
        tool: "bash".into(),
        detail: "ls".into(),
        ..AskUserEvent::default()
    })
}

fn question(id: &str) -> Event {
    Event::AskUser(AskUserEvent {
        ask_id: id.into(),
        kind: "question".into(),
        questions: vec![AskQuestion {
            question: "Which?".into(),
            ..AskQuestion::default()
        }],
        ..AskUserEvent::default()
    })
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
fn what_a_message_waits_behind_is_said_in_words() {
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
        (1, "cron:7:user", "", "behind a run of cron"),
        (1, "event:ci", "", "behind a run that an event began"),
        (1, "event#2:a", "", "behind a run that an event began"),
        (1, "delegate:a/b#1", "", "behind a delegated run"),
        (1, "compaction", "", "behind a compaction"),
        (
            1,
            "client:local",
            "reviewer",
            "behind a turn of the guest reviewer",
        ),
        (3, "cron:7", "", "behind a run of cron and 2 more"),
    ] {
        assert_eq!(said(ahead, origin, guest), want);
    }
}

#[test]
fn whose_message_it_is_is_said_in_words() {
    for (origin, want) in [
        ("client:local", "from another client"),
        ("client:token/laptop", "from a client with the token laptop"),
        ("cron:7:user", "from cron, entry 7"),
        ("event:ci:done", "from the event ci:done"),
        ("event#2:agent:crab:done", "from the event agent:crab:done"),
        ("delegate:a/b#1", "from another agent"),
        ("", "from somebody"),
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
        "crab answers with m\n> bash ls\n< bash failed after 1.5 s: no such\n> bash ls\n< bash 1.5 s\n  [image/png, 34 KB]\np/m: 3 tokens read, 4 written, 0.2500 in money (2 tokens without price)\n"
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
async fn json_has_one_event_on_a_line() {
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
async fn an_approval_is_answered_at_the_terminal_while_the_stream_stays_open() {
    let (mut fake, mut at) = ask("x").await;
    let (typist, shown) = at.with_person();
    let drive = async {
        for event in [start(), tool_start("1"), approval("a1")] {
            fake.send(event).await;
        }
        assert_eq!(fake.next_told().await, "stream \"\" x");
        shows(&shown, "> ", 1).await;
        typist.send("what?").await.unwrap();
        typist.send("y").await.unwrap();
        assert_eq!(fake.next_told().await, "reply a1 Allow once");
        for event in [tool_result("1", "", false), complete(), end("", 0)] {
            fake.send(event).await;
        }
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
    assert_eq!(
        shown.text(),
        "\ncrab wants to use bash:\n    ls\nAllow? [y]es once, [n]o (or n: reason) > \
         Please answer y, a, n, or n: and a reason > "
    );
    assert!(at.err.text().contains("< bash 1.5 s\n"));
}

#[tokio::test]
async fn what_was_typed_before_a_question_never_answers_it() {
    let (mut fake, mut at) = ask("x").await;
    let (typist, shown) = at.with_person();
    let drive = async {
        fake.next_told().await;
        for early in ["y", "a", "1"] {
            typist.send(early).await.unwrap();
        }
        for event in [start(), approval("a1"), approval("a2")] {
            fake.send(event).await;
        }
        // While the question has only just appeared, too.
        shows(&shown, "    ls\n", 1).await;
        typist.send("y").await.unwrap();
        shows(&shown, "> ", 1).await;
        typist.send("n: no").await.unwrap();
        // And what answers one question says nothing of the next.
        typist.send("y").await.unwrap();
        assert_eq!(fake.next_told().await, "reply a1 Deny: no");
        shows(&shown, "> ", 2).await;
        typist.send("n").await.unwrap();
        assert_eq!(fake.next_told().await, "reply a2 Deny");
        for event in [complete(), end("", 0)] {
            fake.send(event).await;
        }
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
}

#[tokio::test]
async fn several_asks_are_put_one_after_another_and_results_wait() {
    let (mut fake, mut at) = ask("x").await;
    let (typist, shown) = at.with_person();
    let drive = async {
        for event in [
            start(),
            approval("a1"),
            question("q2"),
            tool_result("9", "", false),
        ] {
            fake.send(event).await;
        }
        fake.next_told().await;
        shows(&shown, "> ", 1).await;
        typist.send("n: no").await.unwrap();
        assert_eq!(fake.next_told().await, "reply a1 Deny: no");
        shows(&shown, "> ", 2).await;
        typist.send("this one").await.unwrap();
        assert_eq!(fake.next_told().await, "reply q2 this one");
        for event in [complete(), end("", 0)] {
            fake.send(event).await;
        }
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
    assert!(
        shown.text().ends_with("\ncrab asks: Which?\n> "),
        "{}",
        shown.text()
    );
    assert!(at.err.text().contains("< tool 1.5 s\n"), "shown in the end");
}

#[tokio::test]
async fn an_answer_that_comes_too_late_or_is_refused_is_said() {
    let (mut fake, mut at) = ask("x").await;
    let (typist, shown) = at.with_person();
    let refusals = [
        Err(Status::bad_request("one of Red, Blue")),
        Err(Status::not_found("gone")),
    ];
    fake.script.replies.lock().unwrap().extend(refusals);
    let drive = async {
        for event in [start(), question("q1")] {
            fake.send(event).await;
        }
        fake.next_told().await;
        for times in 1..=2 {
            shows(&shown, "> ", times).await;
            typist.send("green").await.unwrap();
            assert_eq!(fake.next_told().await, "reply q1 green");
        }
        fake.send(end("", 0)).await;
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
    assert_eq!(
        shown.text(),
        "\ncrab asks: Which?\n> one of Red, Blue\n\ncrab asks: Which?\n> (it was answered elsewhere already)\n"
    );
}

fn settled(id: &str, outcome: AskOutcome, answer: &str) -> Event {
    Event::AskSettled(AskSettledEvent {
        ask_id: id.into(),
        outcome: outcome.into(),
        by: "laptop".into(),
        answer: answer.into(),
    })
}

#[tokio::test]
async fn a_prompt_that_somebody_else_answered_vanishes_with_a_word() {
    let (mut fake, mut at) = ask("x").await;
    let (typist, shown) = at.with_person();
    let drive = async {
        for event in [start(), question("q1"), question("q2"), question("q3")] {
            fake.send(event).await;
        }
        shows(&shown, "> ", 1).await;
        // One that stands behind another goes without a word.
        fake.send(settled("q2", AskOutcome::Withdrawn, "")).await;
        fake.send(settled("q1", AskOutcome::Answered, "Red")).await;
        shows(&shown, "> ", 2).await;
        typist.send("Blue").await.unwrap();
        fake.next_told().await;
        assert_eq!(fake.next_told().await, "reply q3 Blue");
        // Our own answer is no news.
        fake.send(settled("q3", AskOutcome::Answered, "Blue")).await;
        for event in [complete(), end("", 0)] {
            fake.send(event).await;
        }
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
    let question = "\ncrab asks: Which?\n> ";
    let want = format!("{question}\n(answered by laptop: Red)\n{question}");
    assert_eq!(shown.text(), want);
    assert!(!at.err.text().contains("answered"), "{}", at.err.text());
}

#[tokio::test]
async fn who_leaves_questions_to_others_is_told_how_they_ended() {
    let (fake, mut at) = ask("--wait x").await;
    let drive = async {
        for (id, outcome) in [("a", AskOutcome::TimedOut), ("b", AskOutcome::Withdrawn)] {
            fake.send(approval(id)).await;
            fake.send(settled(id, outcome, "")).await;
        }
        fake.send(end("", 0)).await;
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
    let err = at.err.text();
    assert!(err.contains("crabtalk: nobody answered in time\n"), "{err}");
    assert!(err.contains("the run ended\n"), "{err}");
}

#[tokio::test]
async fn a_prompt_is_withdrawn_when_the_step_went_on() {
    let (fake, mut at) = ask("x").await;
    let (_typist, shown) = at.with_person();
    let drive = async {
        for event in [start(), approval("a1"), tool_result("1", "", false)] {
            fake.send(event).await;
        }
        shows(&shown, "> ", 1).await;
        for event in [complete(), end("", 0)] {
            fake.send(event).await;
        }
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
    assert!(shown.text().ends_with("> \n(settled elsewhere)\n"));
    assert!(at.err.text().contains("< tool 1.5 s\n"));
}

#[tokio::test]
async fn without_a_terminal_approvals_are_denied_with_advice() {
    let (mut fake, mut at) = ask("x").await;
    for event in [start(), approval("a1"), question("q1"), end("", 0)] {
        fake.send(event).await;
    }
    at.run().await.unwrap();
    fake.next_told().await;
    let told = fake.next_told().await;
    assert_eq!(told, "reply a1 Deny: nobody is at a terminal to approve it");
    assert_eq!(fake.next_told().await, "reply q1 nobody is here");
    let err = at.err.text();
    assert!(err.contains("there is no terminal to ask on: crab wants to use bash:\n    ls\n"));
    let pasted = "agents/crab.md, and run `crabtalk daemon reload`:\n---\npermissions: { \"bash(ls)\": allow }\n---\n";
    assert!(err.contains(pasted), "{err}");
}

#[tokio::test]
async fn wait_leaves_questions_to_others() {
    let (mut fake, mut at) = ask("--wait x").await;
    let (_typist, shown) = at.with_person();
    for event in [start(), approval("a1"), complete(), end("", 0)] {
        fake.send(event).await;
    }
    at.run().await.unwrap();
    fake.next_told().await;
    assert!(fake.told.try_recv().is_err(), "nothing was answered");
    assert_eq!(shown.text(), "");
    assert!(
        at.err
            .text()
            .contains("waiting for an answer: `crabtalk asks`")
    );
}

#[tokio::test]
async fn ctrl_c_cancels_the_run_and_waits_for_its_end() {
    let (mut fake, mut at) = ask("--agent crab --as me x").await;
    let (interrupt, out) = (at.interrupt.clone(), at.out.clone());
    let drive = async {
        fake.send(start()).await;
        fake.send(chunk("hal")).await;
        fake.next_told().await;
        // Shown, so the run is known to have begun.
        while out.text().is_empty() {
            tokio::task::yield_now().await;
        }
        interrupt.send(()).await.unwrap();
        assert_eq!(fake.next_told().await, "kill \"crab\" \"me\"");
        fake.send(end("cancelled", 499)).await;
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    assert!(matches!(done, Err(Error::Interrupted)));
    assert_eq!(out.text(), "hal\n");
}

#[tokio::test]
async fn ctrl_c_before_the_run_begins_cancels_nobody_elses() {
    let (mut fake, mut at) = ask("x").await;
    at.interrupt.send(()).await.unwrap();
    assert!(matches!(at.run().await, Err(Error::Interrupted)));
    assert!(at.err.text().contains("stays in the queue"));
    while let Ok(told) = fake.told.try_recv() {
        assert!(!told.starts_with("kill"), "{told}");
    }
}

#[tokio::test]
async fn a_cancelled_run_that_does_not_end_is_left() {
    let fake = Fake::start().await;
    let mut at = fake.at("ask --no-stdin x");
    let interrupt = at.interrupt.clone();
    let follow = at.context.follow();
    // Ctrl-C as soon as the run has begun, and then silence.
    let begun = RunNews::Event(Box::new(start().into()));
    let events = futures_util::stream::iter([Ok(begun)])
        .inspect(move |_| interrupt.try_send(()).unwrap())
        .chain(futures_util::stream::pending());
    tokio::time::pause();
    let ended = follow.run(events, &mut at.context.console).await.unwrap();
    assert_eq!(ended, Ended::Interrupted);
    assert!(
        at.err
            .text()
            .ends_with("the run was told to end and has not yet\n")
    );
}

/// What it said last waits for a disk that is busy.
#[tokio::test]
async fn a_cancelled_run_may_take_its_time_to_end() {
    let mut fake = Fake::start().await;
    let mut at = fake.at("ask --no-stdin x");
    let interrupt = at.interrupt.clone();
    let follow = at.context.follow();
    let begun = RunNews::Event(Box::new(start().into()));
    let ended = async {
        assert_eq!(fake.next_told().await, "kill \"\" \"\"");
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok(RunNews::Event(Box::new(end("cancelled", 499).into())))
    };
    let events = futures_util::stream::iter([Ok(begun)])
        .inspect(move |_| interrupt.try_send(()).unwrap())
        .chain(futures_util::stream::once(ended));
    tokio::time::pause();
    let ended = follow.run(events, &mut at.context.console).await.unwrap();
    assert_eq!(ended, Ended::Interrupted);
    assert!(
        at.err.text().ends_with("the run was cancelled\n"),
        "{}",
        at.err.text()
    );
}

/// The daemon does not even say that it heard.
#[tokio::test]
async fn another_ctrl_c_leaves_a_run_that_does_not_end() {
    let fake = Fake::start().await;
    let mut at = fake.at("ask --no-stdin x");
    let interrupt = at.interrupt.clone();
    let follow = at.context.follow();
    // Nobody answers any more.
    drop(fake);
    let begun = RunNews::Event(Box::new(start().into()));
    let events = futures_util::stream::iter([Ok(begun)])
        .inspect(move |_| {
            interrupt.try_send(()).unwrap();
            interrupt.try_send(()).unwrap();
        })
        .chain(futures_util::stream::pending());
    let ended = follow.run(events, &mut at.context.console).await.unwrap();
    assert_eq!(ended, Ended::Interrupted);
    assert!(!at.err.text().contains("has not yet"), "{}", at.err.text());
}

#[tokio::test]
async fn attach_leaves_on_ctrl_c_and_kills_nothing() {
    let mut fake = Fake::start().await;
    let mut at = fake.at("attach");
    let interrupt = at.interrupt.clone();
    fake.send(start()).await;
    fake.send(approval("a1")).await;
    let drive = async {
        assert_eq!(fake.next_told().await, "attach");
        interrupt.send(()).await.unwrap();
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    assert!(matches!(done, Err(Error::Interrupted)));
    assert!(fake.told.try_recv().is_err());
}

#[tokio::test]
async fn a_stream_that_breaks_says_where_the_run_is() {
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
async fn without_a_terminal_nobody_waits_for_a_strangers_approval() {
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
    // Who is told to wait does.
    let (fake, mut at) = ask("--wait --as tg:1 x").await;
    for event in [start(), waiting(), end("", 0)] {
        fake.send(event).await;
    }
    at.run().await.unwrap();
    assert!(at.err.text().contains("waits for an owner"));
}
