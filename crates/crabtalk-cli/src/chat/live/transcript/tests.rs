use super::*;
use crabtalk_proto::{
    NoticeEvent, StreamChunk, TextEndEvent, TextStartEvent, TokenUsage, ToolCallInfo,
    ToolResultEvent, ToolStartEvent, WaitingEvent,
};

fn told(transcript: &mut Transcript, events: Vec<stream_event::Event>) -> String {
    let now = Instant::now();
    for event in events {
        transcript.event(&event.into(), now);
    }
    let lines = transcript.take();
    lines.iter().map(|line| line.text() + "\n").collect()
}

fn start(agent: &str) -> stream_event::Event {
    stream_event::Event::Start(StreamStart {
        agent: agent.into(),
        run: 1,
        model: "m".into(),
        ..StreamStart::default()
    })
}

fn text(agent: &str, text: &str) -> Vec<stream_event::Event> {
    let agent = agent.to_owned();
    vec![
        stream_event::Event::TextStart(TextStartEvent {
            agent: agent.clone(),
        }),
        stream_event::Event::Chunk(StreamChunk {
            content: text.into(),
        }),
        stream_event::Event::TextEnd(TextEndEvent { agent }),
    ]
}

fn call(name: &str, arguments: &str) -> stream_event::Event {
    stream_event::Event::ToolStart(ToolStartEvent {
        calls: vec![ToolCallInfo {
            name: name.into(),
            arguments: arguments.into(),
            call_id: "c".into(),
        }],
    })
}

fn result(output: &str, is_error: bool) -> stream_event::Event {
    stream_event::Event::ToolResult(ToolResultEvent {
        call_id: "c".into(),
        output: output.into(),
        duration_ms: 1_200,
        is_error,
        ..ToolResultEvent::default()
    })
}

#[test]
fn speaker_fits_the_narrowest_terminal() {
    let mut transcript = Transcript::new(20);
    transcript.person("good day", Some("from another client"));
    let lines: Vec<String> = transcript.take().iter().map(Line::text).collect();
    assert_eq!(lines, ["\u{203a} good day", "  (from another", "  client)"]);
}

#[test]
fn turn_is_rendered_as_a_page() {
    let mut transcript = Transcript::new(60);
    transcript.person("do it", None);
    let mut events = vec![start("crab")];
    events.extend(text("crab", "First *I* look.\n"));
    events.push(call("bash", r#"{"command":"ls"}"#));
    events.push(result("a\nb\nc\nd\ne\nf\n", false));
    events.extend(text("crab", "Done."));
    events.push(stream_event::Event::End(StreamEnd {
        agent: "crab".into(),
        model: "m".into(),
        usage: Some(TokenUsage {
            prompt_tokens: 1_234,
            completion_tokens: 5,
            ..TokenUsage::default()
        }),
        ..StreamEnd::default()
    }));
    assert_eq!(
        told(&mut transcript, events),
        "\u{203a} do it\n\n  First I look.\n\n\u{25cf} bash ls \u{b7} 1.2 s\n  a\n  b\n  c\n  d\n  \
         \u{2026} 2 more lines (Ctrl-T shows them)\n\n  Done.\n\n  m \u{b7} 0s \u{b7} 1.2k read, 5 written\n"
    );
    assert_eq!(transcript.answer, "First *I* look.\nDone.");
}

#[test]
fn only_guests_are_named() {
    let mut transcript = Transcript::new(60);
    transcript.set_primary("crab");
    let said = told(&mut transcript, text("reviewer", "No."));
    assert_eq!(said, "\u{25cf} reviewer\n  No.\n");
    assert_eq!(told(&mut transcript, text("crab", "Yes.")), "\n  Yes.\n");
}

#[test]
fn edits_are_shown_as_diffs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.txt"), "1\n2\nnew\n").unwrap();
    let mut transcript = Transcript::new(60);
    transcript.tools.cwd = folder.path().to_owned();
    let arguments = r#"{"path":"f.txt","old_string":"old\n","new_string":"new\n"}"#;
    let said = told(
        &mut transcript,
        vec![call("edit", arguments), result("edited", false)],
    );
    assert_eq!(
        said,
        "\u{25cf} edit f.txt \u{b7} 1.2 s\n     3 - old\n     3 + new\n"
    );
    let denied = told(
        &mut transcript,
        vec![call("edit", arguments), result("denied", true)],
    );
    assert_eq!(denied, "\u{2717} edit f.txt \u{b7} 1.2 s\n  denied\n");
}

#[test]
fn foreign_text_stays_behind_the_margin_and_is_cleaned() {
    let mut transcript = Transcript::new(40);
    transcript.person("x\x1b[2J", Some("client:y\x1b"));
    transcript.note("z\r\x1b]0;t\x07");
    let mut events = vec![start("crab")];
    events.extend(text(
        "evil\x1b",
        "\u{250f}\u{2501} crab wants\n\u{2503} rm\n\x1b[H",
    ));
    events.push(call("bash\x1b", "{\"command\":\"\u{1b}[2J\"}"));
    events.push(result("\u{2503} y\n\x1b[31mred\u{9b}2J", false));
    let said = told(&mut transcript, events);
    for line in said.lines() {
        assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
        assert!(
            !line.contains(['\u{250f}', '\u{2503}', '\u{2501}']),
            "{line:?}"
        );
    }
}

#[test]
fn open_output_fits_its_rows() {
    let mut transcript = Transcript::new(40);
    let now = Instant::now();
    let long = "word ".repeat(200);
    let chunk = stream_event::Event::Chunk(StreamChunk { content: long });
    transcript.event(&start("crab").into(), now);
    transcript.event(&chunk.into(), now);
    assert_eq!(transcript.open(5, now, "*").len(), 5);
    assert!(transcript.take().is_empty(), "a paragraph may still change");
}

#[test]
fn waits_and_failures_are_reported() {
    use stream_event::Event;
    let notice = |text: &str| Event::Notice(NoticeEvent { text: text.into() });
    let end = |code: u32, error: &str| {
        Event::End(StreamEnd {
            code,
            error: error.into(),
            ..StreamEnd::default()
        })
    };
    for (event, want) in [
        (
            notice("openai: 429; retrying in 8 s"),
            "\u{b7} openai: 429; retrying in 8 s\n",
        ),
        (
            notice("bad key; trying two instead"),
            "\u{b7} bad key; trying two instead\n",
        ),
        (
            Event::Compacted(CompactedEvent {
                tokens_before: 90_000,
                tokens_after: 4_000,
                title: "The plan".into(),
                failed: String::new(),
            }),
            "\u{b7} compacted 90000 tokens to 4000 (archive: The plan)\n",
        ),
        (
            Event::Compacted(CompactedEvent {
                failed: "nobody answered".into(),
                ..CompactedEvent::default()
            }),
            "! cannot compact: nobody answered\n",
        ),
        (
            Event::Waiting(WaitingEvent {
                whom: "user".into(),
                timeout_secs: 86_400,
            }),
            "\u{b7} the run waits for user to approve a tool call, for 1 d at most\n",
        ),
        (
            end(402, "the day's tokens are spent"),
            "! the run failed: the day's tokens are spent (402)\n",
        ),
    ] {
        let mut transcript = Transcript::new(90);
        assert_eq!(told(&mut transcript, vec![event]), want);
    }
}

#[test]
fn reasoning_is_a_few_dim_rows_then_one_line() {
    use stream_event::Event;
    let mut transcript = Transcript::new(60);
    let now = Instant::now();
    let thought = "first\nsecond\nthird\nfourth\nthe last one";
    for event in [
        Event::ThinkingStart(Default::default()),
        Event::Thinking(crabtalk_proto::StreamThinking {
            content: thought.into(),
        }),
    ] {
        transcript.event(&event.into(), now);
    }
    let open = transcript.open(20, now, "*");
    let texts: Vec<String> = open.iter().map(Line::text).collect();
    assert_eq!(
        texts,
        [
            "* thinking \u{b7} 0s",
            "  third",
            "  fourth",
            "  the last one"
        ]
    );
    let dim = |line: &Line| {
        let mut spans = line
            .spans()
            .iter()
            .filter(|span| !span.text().trim().is_empty());
        spans.all(|span| span.style() == theme::DIM)
    };
    assert!(open.iter().all(dim), "{open:?}");
    let after = told(
        &mut transcript,
        vec![Event::ThinkingEnd(Default::default())],
    );
    assert_eq!(after, "\u{b7} thought for 0s (Ctrl-T shows it)\n");
    assert_eq!(transcript.thought, thought, "it unfolds whole");
}

#[test]
fn wide_characters_and_emoji_stay_within_forty_columns() {
    let mut transcript = Transcript::new(40);
    transcript.person(&"\u{6f22}\u{5b57}".repeat(30), None);
    let mut events = vec![start("crab")];
    let said =
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} caf\u{e9} \u{1f980} \u{65e5}\u{672c}\u{8a9e} "
            .repeat(20);
    events.extend(text(
        "crab",
        &format!("{said}\n\n| \u{540d}\u{524d} | a |\n|---|---|\n| \u{1f980} crab | 1 |\n"),
    ));
    for event in events {
        transcript.event(&event.into(), Instant::now());
    }
    let lines = transcript.take();
    assert!(lines.len() > 8);
    for line in &lines {
        assert!(line.width() <= 40, "{}: {:?}", line.width(), line.text());
    }
}

#[test]
fn next_run_does_not_continue_a_broken_off_answer() {
    let mut transcript = Transcript::new(60);
    let chunk = |text: &str| {
        stream_event::Event::Chunk(StreamChunk {
            content: text.into(),
        })
    };
    let begun = vec![start("crab"), chunk("half a "), chunk("sentence")];
    assert_eq!(told(&mut transcript, begun), "", "it may go on");
    transcript.cut_off(Instant::now());
    transcript.problem("it broke");
    let next = [vec![start("crab")], text("crab", "Another answer.")].concat();
    assert_eq!(
        told(&mut transcript, next),
        "  half a sentence\n\n! it broke\n\n  Another answer.\n"
    );
    told(
        &mut transcript,
        vec![start("crab"), call("bash", "{\"command\": \"ls\"}")],
    );
    transcript.cut_off(Instant::now());
    assert_eq!(
        told(&mut transcript, vec![]),
        "\n? bash ls: result unknown\n"
    );
    let open = transcript.open(10, Instant::now(), "*");
    assert!(open.is_empty(), "nothing runs any more");
}

/// A call of `todo` with its result.
fn plan(items: &[(&str, &str)], is_error: bool) -> Vec<stream_event::Event> {
    let items: Vec<_> = items
        .iter()
        .map(|(text, status)| serde_json::json!({"text": text, "status": status}))
        .collect();
    let arguments = serde_json::json!({ "items": items }).to_string();
    vec![call("todo", &arguments), result("1 of 2 done", is_error)]
}

#[test]
fn todo_list_changes_in_place_and_is_written_once() {
    let mut transcript = Transcript::new(60);
    let rows = |transcript: &Transcript| -> Vec<String> {
        transcript.todo_rows(10).iter().map(Line::text).collect()
    };
    let mut events = vec![start("crab")];
    events.extend(plan(
        &[("read", "in_progress"), ("write", "pending")],
        false,
    ));
    assert_eq!(
        told(&mut transcript, events),
        "",
        "only the live rows show it"
    );
    assert_eq!(
        rows(&transcript),
        [
            "Todo \u{b7} 0 of 2 done",
            "  \u{25b8} read",
            "  \u{25cb} write"
        ]
    );
    assert_eq!(
        told(&mut transcript, plan(&[("bad", "done")], true)),
        "\u{2717} todo 1 of 1 done \u{b7} 1.2 s\n  1 of 2 done\n"
    );
    assert_eq!(rows(&transcript).len(), 3, "a refused list changes nothing");
    let done = plan(&[("read", "done"), ("write", "done")], false);
    assert_eq!(told(&mut transcript, done), "");
    let end = || stream_event::Event::End(StreamEnd::default());
    assert_eq!(
        told(&mut transcript, vec![end()]),
        "Todo \u{b7} 2 of 2 done\n  \u{2713} read\n  \u{2713} write\n\n  0s\n"
    );
    assert_eq!(
        told(&mut transcript, vec![start("crab"), end()]),
        "\n  0s\n"
    );
    assert!(rows(&transcript).is_empty(), "a finished list is forgotten");
}

#[test]
fn members_answers_have_a_line_each() {
    let mut transcript = Transcript::new(60);
    let tasks = r#"{"tasks":[{"agent":"ada","task":"look"},{"agent":"bob","task":"dig"}]}"#;
    let output = r#"[{"agent":"ada","sender":"delegate:1","answer":"It is\nfine."},
        {"agent":"bob","error":"no model"}]"#;
    assert_eq!(
        told(
            &mut transcript,
            vec![call("delegate", tasks), result(output, false)]
        ),
        "\u{25cf} delegate ada, bob \u{b7} 1.2 s\n  \u{2713} ada It is fine.\n  \u{2717} bob no model\n"
    );
}
