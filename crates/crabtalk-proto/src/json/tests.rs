use crate::*;
use serde_json::{Value, json};

#[track_caller]
fn check(message: impl serde::Serialize, want: Value) {
    assert_eq!(serde_json::to_value(message).expect("it is JSON"), want);
}

#[test]
fn an_event_of_a_run_has_its_type_and_its_fields_in_one_object() {
    let event = stream_event::Event::ToolResult(ToolResultEvent {
        call_id: "c".into(),
        output: "out".into(),
        duration_ms: u64::MAX,
        images: vec![Image {
            media_type: "image/png".into(),
            data: vec![0, 255].into(),
        }],
        ..ToolResultEvent::default()
    });
    let event = StreamEvent {
        event: Some(event),
        seq: 7,
    };
    check(
        event,
        json!({
            "type": "tool_result", "seq": 7, "call_id": "c", "output": "out",
            "duration_ms": u64::MAX, "is_error": false,
            "images": [{"media_type": "image/png", "data": "AP8="}],
        }),
    );
    let empty = stream_event::Event::ToolsComplete(ToolsCompleteEvent {});
    check(
        StreamEvent::from(empty),
        json!({"type": "tools_complete", "seq": 0}),
    );
    // One that a newer daemon sent has no type that could be told.
    check(StreamEvent::default(), json!({"seq": 0}));
}

#[test]
fn enums_have_names_and_unknown_ones_numbers() {
    let settled = AskSettledEvent {
        ask_id: "1-1".into(),
        outcome: AskOutcome::TimedOut.into(),
        ..AskSettledEvent::default()
    };
    check(
        &settled,
        json!({"ask_id": "1-1", "outcome": "timed_out", "by": "", "answer": ""}),
    );
    let event = AgentEventMsg {
        kind: AgentEventKind::AskSettled.into(),
        settled: Some(settled),
        ..AgentEventMsg::default()
    };
    let value = serde_json::to_value(event).expect("it is JSON");
    assert_eq!(value["type"], "ask_settled");
    assert_eq!(value["settled"]["outcome"], "timed_out");
    assert_eq!(value["ask"], Value::Null);
    let newer = AgentEventMsg {
        kind: 999,
        ..AgentEventMsg::default()
    };
    assert_eq!(
        serde_json::to_value(newer).expect("it is JSON")["type"],
        "999"
    );
    let model = ModelInfo {
        kind: ProviderKind::Openai.into(),
        ..ModelInfo::default()
    };
    assert_eq!(
        serde_json::to_value(model).expect("it is JSON")["kind"],
        "openai"
    );
}

#[test]
fn a_pending_ask_is_an_ask_and_where_it_waits() {
    let pending = PendingAsk {
        agent: "crab".into(),
        ask: Some(AskUserEvent {
            ask_id: "1-1".into(),
            ..AskUserEvent::default()
        }),
        ..PendingAsk::default()
    };
    let value = serde_json::to_value(pending).expect("it is JSON");
    assert_eq!(
        (&value["agent"], &value["ask_id"]),
        (&json!("crab"), &json!("1-1"))
    );
    assert_eq!(value["always"], Value::Null);
    assert!(value.get("ask").is_none());
}
