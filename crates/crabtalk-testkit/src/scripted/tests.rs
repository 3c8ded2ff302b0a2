use super::*;
use serde_json::{Value, json};

fn checked(format: Format, body: Value) -> String {
    check::problems(format, &body).join("; ")
}

fn openai_body(messages: Value) -> Value {
    json!({"model": "m", "stream": true, "messages": messages})
}

#[test]
fn openai_requests_are_held_to_the_rules() {
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "t", "arguments": "{}"}},
    ]});
    let user = json!({"role": "user", "content": "a"});
    let result = json!({"role": "tool", "tool_call_id": "1", "content": "r"});
    for (messages, problem) in [
        (json!([user, call, result]), ""),
        (json!([]), "no messages"),
        (json!([user, result]), "result of no call"),
        (json!([user, call]), "has no result"),
        (json!([user, call, user, result]), "has no result"),
        (json!([{"role": "user"}]), "no content"),
        (
            json!([{"role": "user", "content": "<from agent=\"a\"><from agent=\"b\">"}]),
            "<from>",
        ),
    ] {
        let found = checked(Format::OpenAi, openai_body(messages.clone()));
        assert_eq!(found.is_empty(), problem.is_empty(), "{found} {messages}");
        assert!(found.contains(problem), "{found} / {problem}");
    }
    assert!(checked(Format::OpenAi, json!([])).contains("no JSON object"));
}

#[test]
fn anthropic_requests_are_held_to_the_rules() {
    let text = |role: &str| json!({"role": role, "content": [{"type": "text", "text": "a"}]});
    let call = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "1", "name": "t", "input": {}},
    ]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]});
    for (messages, problem) in [
        (json!([text("user"), call, result]), ""),
        (
            json!([text("user"), text("user"), text("user")]),
            "instead of assistant",
        ),
        (json!([text("user"), text("assistant")]), "last message"),
        (json!([text("user"), call, text("user")]), "has no result"),
        (json!([result]), "out of place"),
        (json!([{"role": "user", "content": []}]), "no blocks"),
        (
            json!([{"role": "user", "content": [{"type": "text", "text": " "}]}]),
            "bad block",
        ),
    ] {
        let mut body = openai_body(messages.clone());
        body["max_tokens"] = json!(10);
        body["tools"] = json!([{"name": "t"}]);
        let found = checked(Format::Anthropic, body);
        assert_eq!(found.is_empty(), problem.is_empty(), "{found} {messages}");
        assert!(found.contains(problem), "{found} / {problem}");
    }
}

#[test]
fn a_script_survives_its_file() {
    let script = Script::openai([openai::text("hi").stall_after(2), Reply::rate_limited("1")])
        .page("/api/tags", "{}");
    let text = serde_json::to_string(&script).expect("plain data");
    assert_eq!(
        serde_json::from_str::<Script>(&text).expect("its own text"),
        script
    );
}
