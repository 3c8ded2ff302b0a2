//! Lines from real programs, and their interpretation.

use super::*;
use serde_json::json;

fn read(form: Form, lines: &[Value]) -> Vec<Record> {
    let reader = Reader::new(form);
    let line = |line: &Value| reader.read(line.to_string().as_bytes());
    lines.iter().flat_map(line).collect()
}

fn call(tool: &str, subject: &str) -> Record {
    Record::Call {
        id: "c1".into(),
        tool: tool.into(),
        subject: subject.into(),
    }
}

fn ended(error: Option<&str>, output: Option<&str>, name: &'static str) -> Record {
    Record::Ended {
        error: error.map(str::to_owned),
        output: output.map(str::to_owned),
        name,
    }
}

#[test]
fn codex() {
    let event = |payload: Value| json!({"type": "event_msg", "payload": payload});
    let item = |payload: Value| json!({"type": "response_item", "payload": payload});
    let arguments = json!({"cmd": "touch x", "sandbox_permissions": "require_escalated"});
    let records = read(
        Form::Codex,
        &[
            json!({"type": "session_meta", "payload": {"id": "s1", "cwd": "/w"}}),
            event(json!({"type": "task_started", "model_context_window": 258_400})),
            // Instructions and the folder's description, as sent to the model.
            item(
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]}),
            ),
            event(
                json!({"type": "item_completed", "item": {"type": "UserMessage", "content": [{"type": "text", "text": "go"}]}}),
            ),
            event(
                json!({"type": "item_completed", "item": {"type": "AgentMessage", "content": [{"type": "Text", "text": "I will"}]}}),
            ),
            item(
                json!({"type": "function_call", "name": "exec_command", "call_id": "c1", "arguments": arguments.to_string()}),
            ),
            item(json!({"type": "function_call_output", "call_id": "c1", "output": "Exited"})),
            event(
                json!({"type": "token_count", "info": {"last_token_usage": {"total_tokens": 1020}, "model_context_window": 258_400}}),
            ),
            event(json!({"type": "task_complete", "last_agent_message": "done"})),
            event(json!({"type": "turn_aborted", "reason": "interrupted"})),
            event(
                json!({"type": "task_complete", "last_agent_message": null, "error": {"message": "stream failed"}}),
            ),
            json!({"type": "compacted", "payload": {"message": "a summary"}}),
        ],
    );
    let usage = |tokens, window| Record::Usage { tokens, window };
    assert_eq!(
        records,
        [
            Record::Head {
                session: "s1".into(),
                folder: "/w".into()
            },
            Record::Began,
            usage(None, Some(258_400)),
            Record::User("go".into()),
            Record::Text("I will".into()),
            call("bash", "touch x"),
            Record::Result { id: "c1".into() },
            usage(Some(1020), Some(258_400)),
            ended(None, Some("done"), "task_complete"),
            ended(Some("cancelled"), None, "turn_aborted"),
            ended(Some("stream failed"), None, "task_complete"),
            Record::Compacted,
        ]
    );
}

#[test]
fn pi() {
    let message = |message: Value| json!({"type": "message", "id": "1", "message": message});
    let records = read(
        Form::Pi,
        &[
            json!({"type": "session", "version": 3, "id": "s1", "cwd": "/w"}),
            message(json!({"role": "user", "content": [{"type": "text", "text": "go"}]})),
            message(json!({"role": "assistant", "content": [
            {"type": "text", "text": "I will"},
            {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "touch x"}},
        ], "usage": {"totalTokens": 1020}, "stopReason": "toolUse"})),
            message(json!({"role": "toolResult", "toolCallId": "c1", "content": []})),
            message(json!({"role": "assistant", "content": [], "stopReason": "aborted"})),
            message(
                json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "503"}),
            ),
            json!({"type": "compaction", "summary": "s"}),
        ],
    );
    let usage = |tokens| Record::Usage {
        tokens,
        window: None,
    };
    assert_eq!(
        records,
        [
            Record::Head {
                session: "s1".into(),
                folder: "/w".into()
            },
            Record::User("go".into()),
            Record::Text("I will".into()),
            call("bash", "touch x"),
            usage(Some(1020)),
            Record::Result { id: "c1".into() },
            usage(None),
            ended(Some("cancelled"), None, "stopReason"),
            usage(None),
            ended(Some("503"), None, "stopReason"),
            Record::Compacted,
        ]
    );
}

#[test]
fn claude() {
    let line = |kind: &str, message: Value| json!({"type": kind, "message": message});
    let records = read(
        Form::Claude,
        &[
            json!({"type": "user", "sessionId": "s1", "cwd": "/w", "message": {"role": "user", "content": "go"}}),
            json!({"type": "assistant", "isSidechain": true, "message": {"content": "an inner agent's"}}),
            line(
                "assistant",
                json!({"content": [
            {"type": "text", "text": "I will"},
            {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "touch x"}},
        ], "stop_reason": "tool_use", "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 2}}),
            ),
            line(
                "user",
                json!({"content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]}),
            ),
            line(
                "assistant",
                json!({"content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"}),
            ),
            line(
                "user",
                json!({"content": [{"type": "text", "text": "[Request interrupted by user]"}]}),
            ),
            json!({"type": "system", "subtype": "compact_boundary"}),
            json!({"type": "system", "subtype": "turn_duration", "durationMs": 5}),
        ],
    );
    assert_eq!(
        records,
        [
            Record::Head {
                session: "s1".into(),
                folder: "/w".into()
            },
            Record::User("go".into()),
            Record::Text("I will".into()),
            call("bash", "touch x"),
            Record::Usage {
                tokens: Some(17),
                window: None
            },
            Record::Result { id: "c1".into() },
            Record::Text("done".into()),
            ended(None, None, "stop_reason"),
            ended(Some("cancelled"), None, "interrupted"),
            Record::Compacted,
            ended(None, None, "turn_duration"),
        ]
    );
}

#[test]
fn gemini_and_our_own_log() {
    let records = read(
        Form::Gemini,
        &[
            json!({"sessionId": "s1", "projectHash": "x"}),
            json!({"type": "user", "content": "go"}),
            json!({"type": "gemini", "content": "done", "tokens": {"total": 40}, "toolCalls": [
                {"id": "c1", "name": "run_shell_command", "args": {"command": "touch x"}, "result": []},
            ]}),
        ],
    );
    assert_eq!(records[1], Record::User("go".into()));
    assert_eq!(
        records[3..5],
        [call("bash", "touch x"), Record::Result { id: "c1".into() }]
    );

    let records = read(
        Form::Crabtalk,
        &[
            json!({"agent": "crab", "created_by": "user", "created_at": "2026-11-01T08:00:00Z"}),
            json!({"run": {"id": 1, "event": "start"}}),
            json!({"role": "user", "content": "go"}),
            json!({"role": "user", "content": "recalled", "auto_injected": true}),
            json!({"role": "assistant", "tool_calls": [{"id": "c1", "name": "bash", "arguments": "{\"command\":\"touch x\"}"}], "usage": {"prompt_tokens": 10, "completion_tokens": 3}}),
            json!({"role": "tool", "tool_call_id": "c1", "content": "ok"}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "done"}]}),
            json!({"run": {"id": 1, "event": "end", "code": 499}}),
            json!({"compact": "A summary."}),
        ],
    );
    assert_eq!(
        records,
        [
            Record::Head {
                session: "crab/user".into(),
                folder: String::new()
            },
            Record::Began,
            Record::User("go".into()),
            call("bash", "touch x"),
            Record::Usage {
                tokens: Some(13),
                window: None
            },
            Record::Result { id: "c1".into() },
            Record::Text("done".into()),
            ended(Some("cancelled"), None, "run end"),
            Record::Compacted,
        ]
    );
}

#[test]
fn arbitrary_records_are_parsed() {
    let lines = [
        "",
        "{",
        "[]",
        "1",
        "null",
        "{\"type\":1}",
        "{\"type\":\"message\",\"message\":[]}",
        "{\"type\":\"event_msg\",\"payload\":\"x\"}",
        "{\"role\":[],\"run\":7}",
    ];
    for form in [
        Form::Codex,
        Form::Pi,
        Form::Claude,
        Form::Gemini,
        Form::Crabtalk,
    ] {
        for line in lines {
            let records = Reader::new(form).read(line.as_bytes());
            let said = records
                .iter()
                .any(|r| matches!(r, Record::User(text) if !text.is_empty()));
            assert!(!said, "{form:?} {line}: {records:?}");
        }
    }
}
