use super::*;
use crate::screen::Screen;
use crate::view::View;
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::*;
use crabtalk_testkit::Buffer;
use std::path::Path;

fn call() -> ToolCallInfo {
    ToolCallInfo {
        name: "bash".into(),
        arguments: r#"{"command":"ls"}"#.into(),
        call_id: "c1".into(),
    }
}

fn image() -> Image {
    Image {
        media_type: "image/png".into(),
        data: vec![0; 3].into(),
    }
}

fn ask() -> AskUserEvent {
    AskUserEvent {
        questions: vec![AskQuestion {
            question: "Run `ls`?".into(),
            header: "Approval".into(),
            options: vec![AskOption {
                label: "Allow once".into(),
                description: "this time".into(),
            }],
            multi_select: false,
        }],
        ask_id: "19a-1".into(),
        kind: "approval".into(),
        tool: "bash".into(),
        detail: "ls".into(),
        cwd: "/w".into(),
        reason: "no rule allows it".into(),
        lines: 1,
        always: Some(ApprovalInfo {
            agent: "crab".into(),
            sender: "user".into(),
            tool: "bash".into(),
            exact: "ls".into(),
            cwd: "/w".into(),
            ..ApprovalInfo::default()
        }),
        ..AskUserEvent::default()
    }
}

fn settled() -> AskSettledEvent {
    AskSettledEvent {
        ask_id: "19a-1".into(),
        outcome: AskOutcome::Answered.into(),
        by: "local".into(),
        answer: "Allow once".into(),
    }
}

/// Events before the tool calls.
fn beginning() -> Vec<Event> {
    let agent = || "crab".to_owned();
    let queued = Event::Queued(QueuedEvent {
        ahead: 2,
        origin: "cron:7".into(),
        guest: String::new(),
    });
    vec![
        queued,
        Event::Start(StreamStart {
            agent: agent(),
            run: 4,
            model: "sonnet".into(),
            notice: String::new(),
            mode: String::new(),
        }),
        Event::UserMessage(UserMessageEvent {
            content: "list the files".into(),
            guest: String::new(),
            origin: "client".into(),
        }),
        Event::Interrupted(InterruptedEvent {
            run: 3,
            reason: "the daemon ended".into(),
        }),
        Event::ThinkingStart(ThinkingStartEvent { agent: agent() }),
        Event::Thinking(StreamThinking {
            content: "They want".into(),
        }),
        Event::ThinkingEnd(ThinkingEndEvent { agent: agent() }),
        Event::TextStart(TextStartEvent { agent: agent() }),
        Event::Chunk(StreamChunk {
            content: "I look".into(),
        }),
        Event::TextEnd(TextEndEvent { agent: agent() }),
    ]
}

/// Events of tool calls and questions.
fn calling() -> Vec<Event> {
    vec![
        Event::ToolStart(ToolStartEvent {
            calls: vec![call()],
        }),
        Event::AskUser(ask().into()),
        Event::Waiting(WaitingEvent {
            whom: "an owner".into(),
            timeout_secs: 86_400,
        }),
        Event::AskSettled(settled()),
        Event::ToolProgress(ToolProgressEvent {
            call_id: "c1".into(),
            progress: 1.0,
            total: Some(2.0),
            message: "half of it".into(),
        }),
        Event::ToolResult(ToolResultEvent {
            call_id: "c1".into(),
            output: "a\nb\n".into(),
            duration_ms: 12,
            is_error: false,
            images: vec![image()],
        }),
        Event::ToolsComplete(ToolsCompleteEvent {}),
        Event::UserSteered(UserSteeredEvent {
            content: "in short".into(),
        }),
    ]
}

/// Events after the last tool.
fn ending() -> Vec<Event> {
    vec![
        Event::Compacted(CompactedEvent {
            tokens_before: 90_000,
            tokens_after: 4_000,
            title: "Files".into(),
            failed: String::new(),
        }),
        Event::Notice(NoticeEvent {
            text: "AGENTS.md was left out".into(),
        }),
        Event::Chunk(StreamChunk {
            content: "There are a ".into(),
        }),
        Event::Chunk(StreamChunk {
            content: "and b.".into(),
        }),
        Event::End(StreamEnd {
            agent: "crab".into(),
            provider: "anthropic".into(),
            model: "sonnet".into(),
            usage: Some(TokenUsage {
                prompt_tokens: 10,
                completion_tokens: 2,
                total_tokens: 12,
                ..TokenUsage::default()
            }),
            money: Some(0.01),
            run: 4,
            ..StreamEnd::default()
        }),
    ]
}

/// One of each event of a run, in a possible order.
fn events() -> Vec<String> {
    let events = [beginning(), calling(), ending()].concat();
    let (out, mut view) = (Buffer::default(), View::new(true));
    let mut screen = Screen::test(out.clone(), Buffer::default(), false);
    // Events before Start have no number.
    for (event, seq) in events.into_iter().zip(0..) {
        let event = StreamEvent {
            event: Some(event),
            seq,
        };
        view.event(&mut screen, &event).unwrap();
    }
    out.text().lines().map(str::to_owned).collect()
}

fn agent_event(kind: AgentEventKind) -> AgentEventMsg {
    AgentEventMsg {
        agent: "crab".into(),
        sender: "user".into(),
        kind: kind.into(),
        timestamp: "2026-11-22T10:00:00.000Z".into(),
        run: 4,
        speaker: "crab".into(),
        seq: 31,
        ..AgentEventMsg::default()
    }
}

fn watched() -> Vec<String> {
    let text = AgentEventMsg {
        content: "I look".into(),
        ..agent_event(AgentEventKind::TextDelta)
    };
    let ended = AgentEventMsg {
        ask_id: "19a-1".into(),
        content: "Allow once".into(),
        settled: Some(settled()),
        ..agent_event(AgentEventKind::AskSettled)
    };
    [text, ended].iter().map(|e| of(e).to_string()).collect()
}

fn history() -> Vec<String> {
    let entry = HistoryEntry {
        index: 512,
        role: "assistant".into(),
        content: "I look".into(),
        timestamp: "2026-11-22T10:00:00.000Z".into(),
        tool_calls: vec![call()],
        images: vec![image()],
        failed: Some(FailedRun {
            run: 4,
            code: 499,
            error: "cancelled".into(),
        }),
        ..HistoryEntry::default()
    };
    vec![history_entry(&entry).to_string()]
}

fn found() -> Vec<String> {
    let message = FoundMessage {
        agent: "crab".into(),
        sender: "user".into(),
        title: "Paint jobs".into(),
        index: Some(512),
        role: "user".into(),
        at: "2026-11-22T10:00:00.000Z".into(),
        snippet: "the door is Green".into(),
    };
    vec![of(&message).to_string()]
}

/// The JSON blocks of the page, in order.
fn blocks() -> [Vec<String>; 4] {
    [events(), watched(), history(), found()]
}

#[test]
fn guide_matches_json_output() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/scripts.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let mut parts: Vec<String> = text.split("```json\n").map(str::to_owned).collect();
    assert_eq!(parts.len(), blocks().len() + 1);
    for (part, lines) in parts[1..].iter_mut().zip(blocks()) {
        let (_, behind) = part.split_once("```").unwrap();
        *part = format!("{}\n```{behind}", lines.join("\n"));
    }
    let wanted = parts.join("```json\n");
    if std::env::var_os("CRABTALK_UPDATE_DOCS").is_some() {
        std::fs::write(&page, &wanted).unwrap();
        return;
    }
    assert_eq!(text, wanted, "CRABTALK_UPDATE_DOCS=1 writes the page anew");
}

#[test]
fn unknown_event_has_a_type() {
    let event = StreamEvent {
        event: None,
        seq: 3,
    };
    assert_eq!(stream_event(&event), json!({"type": "unknown", "seq": 3}));
}

#[test]
fn spending_rows_have_only_fields_of_their_group() {
    let row = |by: &str, run| Spending {
        by: by.into(),
        agent: "crab".into(),
        run,
        ..Spending::default()
    };
    let stats = stats(&DaemonStats {
        spending: vec![row("agent", 0), row("run", 2)],
        ..DaemonStats::default()
    });
    let names = |row: &Value| row.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let rows = stats["spending"].as_array().unwrap();
    assert!(
        !names(&rows[0])
            .iter()
            .any(|name| name == "run" || name == "model")
    );
    assert_eq!((&rows[1]["run"], &rows[1]["code"]), (&json!(2), &json!(0)));
}
