use super::*;
use serde_json::{Value, json};

fn checked(format: Format, body: Value) -> String {
    let path = match format {
        Format::OpenAi | Format::Anthropic => "/v1",
        Format::Google => "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
        Format::Bedrock => "/model/amazon.titan-v1%3A0/converse-stream",
    };
    check::problems(format, path, &body).join("; ")
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
    let shown = |role: &str, url: &str| {
        json!({"role": role, "content": [
            {"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": url}},
        ]})
    };
    let result = json!({"role": "tool", "tool_call_id": "1", "content": "r"});
    for (messages, problem) in [
        (json!([user, call, result]), ""),
        (json!([]), "no messages"),
        (json!([user, result]), "result of no call"),
        (json!([user, call]), "has no result"),
        (json!([user, call, user, result]), "has no result"),
        (json!([{"role": "user"}]), "no content"),
        (json!([shown("user", "data:image/png;base64,AAAA")]), ""),
        (json!([shown("user", "http://x/a.png")]), "no content"),
        (
            json!([shown("user", "data:image/tiff;base64,AAAA")]),
            "no content",
        ),
        (
            json!([user, call, shown("tool", "data:image/png;base64,AAAA")]),
            "no content",
        ),
        (
            json!([{"role": "user", "content": "<from agent=\"a\"><from agent=\"b\">"}]),
            "<from>",
        ),
    ] {
        let found = checked(Format::OpenAi, openai_body(messages.clone()));
        assert_eq!(found.is_empty(), problem.is_empty(), "{found} {messages}");
        assert!(found.contains(problem), "{found} / {problem}");
    }
    let mut strict = openai_body(json!([user, call, result, user]));
    assert_eq!(checked(Format::OpenAi, strict.clone()), "");
    strict["model"] = json!("mistral-medium");
    assert!(checked(Format::OpenAi, strict).contains("user after role tool"));
    assert!(checked(Format::OpenAi, json!([])).contains("no JSON object"));
}

#[test]
fn anthropic_requests_are_held_to_the_rules() {
    let text = |role: &str| json!({"role": role, "content": [{"type": "text", "text": "a"}]});
    let call = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "1", "name": "t", "input": {}},
    ]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]});
    let shows = |media_type: &str, is_error: bool| {
        let source = json!({"type": "base64", "media_type": media_type, "data": "AAAA"});
        let mut result = result.clone();
        result["content"][0]["content"] = json!([{"type": "image", "source": source}]);
        result["content"][0]["is_error"] = json!(is_error);
        result
    };
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
        (json!([text("user"), call, shows("image/webp", false)]), ""),
        (
            json!([text("user"), call, shows("image/bmp", false)]),
            "bad block",
        ),
        (
            json!([text("user"), call, shows("image/webp", true)]),
            "\"image\" in a result",
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
fn google_requests_are_held_to_the_rules() {
    let text = |role: &str| json!({"role": role, "parts": [{"text": "a"}]});
    let part = json!({"functionCall": {"name": "t", "args": {}}, "thoughtSignature": "s"});
    let call = json!({"role": "model", "parts": [part]});
    let mut unproved = call.clone();
    unproved["parts"][0]["thoughtSignature"] = Value::Null;
    let result = json!({"role": "user", "parts": [
        {"functionResponse": {"name": "t", "response": {"output": "r"}}},
    ]});
    let shows = |kind: &str| {
        let mut result = result.clone();
        result["parts"][0]["functionResponse"]["parts"] =
            json!([{"inlineData": {"mimeType": kind, "data": "AAAA"}}]);
        result
    };
    for (contents, problem) in [
        (json!([text("user"), call, result]), ""),
        (json!([]), "not specified"),
        (json!([text("user"), text("user"), text("user")]), "role"),
        (json!([text("user"), text("model")]), "last content"),
        (json!([text("user"), call, text("user")]), "calls [\"t\"]"),
        (json!([result]), "results [\"t\"]"),
        (json!([text("user"), unproved, result]), "thought_signature"),
        (json!([{"role": "user", "parts": []}]), "no parts"),
        (
            json!([{"role": "user", "parts": [{"text": ""}]}]),
            "bad part",
        ),
        (json!([text("user"), call, shows("image/png")]), ""),
        (json!([text("user"), call, shows("image/gif")]), "bad part"),
    ] {
        let found = checked(Format::Google, json!({ "contents": contents }));
        assert_eq!(found.is_empty(), problem.is_empty(), "{found} {contents}");
        assert!(found.contains(problem), "{found} / {problem}");
    }
    let nested = json!({"contents": [text("user"), call, shows("image/png")]});
    let older = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
    let found = check::problems(Format::Google, older, &nested).join("; ");
    assert!(found.contains("bad part"), "{found}");
    let unknown = json!({"contents": [text("user")], "model": "m"});
    assert!(checked(Format::Google, unknown).contains("unknown name \"model\""));
}

#[test]
fn bedrock_requests_are_held_to_the_rules() {
    let text = |role: &str| json!({"role": role, "content": [{"text": "a"}]});
    let call = json!({"role": "assistant", "content": [
        {"toolUse": {"toolUseId": "1", "name": "t", "input": {}}},
    ]});
    let result = json!({"role": "user", "content": [
        {"toolResult": {"toolUseId": "1", "content": [{"text": "r"}]}},
    ]});
    let shows = |format: &str| {
        let mut result = result.clone();
        result["content"][0]["toolResult"]["content"][0] =
            json!({"image": {"format": format, "source": {"bytes": "AAAA"}}});
        result
    };
    for (messages, problem) in [
        (json!([text("user"), call, result]), ""),
        (json!([text("user"), text("user"), text("user")]), "role"),
        (json!([text("user"), text("assistant")]), "last message"),
        (json!([text("user"), call, text("user")]), "has no result"),
        (json!([result]), "out of place"),
        (json!([{"role": "user", "content": []}]), "no blocks"),
        (
            json!([{"role": "user", "content": [{"text": " "}]}]),
            "bad block",
        ),
        (json!([text("user"), call, shows("jpeg")]), ""),
        (
            json!([text("user"), call, shows("image/jpeg")]),
            "bad block",
        ),
        (
            json!([{"role": "user", "content": [
                {"text": "a"}, {"cachePoint": {"type": "default"}},
            ]}]),
            "1 cache points",
        ),
    ] {
        let tools = json!({"tools": [{"toolSpec": {"name": "t"}}]});
        let body = json!({"messages": messages, "toolConfig": tools});
        let found = checked(Format::Bedrock, body);
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

/// Sends raw bytes, and reads until the server closes or sends nothing more.
async fn exchange(server: &Server, request: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(server.address())
        .await
        .expect("it listens");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it reads");
    stream.shutdown().await.expect("half a close");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("text");
    answer
}

fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn server_in_another_process_answers_and_releases() {
    let stalled = openai::text("late").then([Action::Stall]);
    let server = Server::start(Script::openai([stalled]).page("/api/tags", "{}")).await;
    let body = openai_body(json!([{"role": "user", "content": "a"}])).to_string();
    let asked = async {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(server.address())
            .await
            .expect("listens");
        stream
            .write_all(post("/v1/chat/completions", &body).as_bytes())
            .await
            .expect("reads");
        let mut answer = String::new();
        while !answer.ends_with("0\r\n\r\n") {
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).await.expect("bytes");
            answer.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        answer
    };
    let released = async {
        server.until(|p| p.stalled == 1).await;
        exchange(&server, &post("/release", "")).await
    };
    let (answer, _) = tokio::join!(asked, released);
    assert!(
        answer.contains("late") && answer.contains("[DONE]"),
        "{answer}"
    );

    let wrong = exchange(&server, &post("/v1/chat/completions", "{}")).await;
    assert!(wrong.starts_with("HTTP/1.1 400"), "{wrong}");
    let requests = exchange(&server, "GET /requests HTTP/1.1\r\n\r\n").await;
    let list = requests.split("\r\n\r\n").nth(1).expect("a body");
    let list: Value = serde_json::from_str(list).expect("json");
    assert_eq!(list[0]["body"]["messages"][0]["content"], "a");
    assert_eq!(list[0]["problems"], json!([]));
    assert!(list[1]["problems"][0].is_string(), "{list}");
    assert!(
        exchange(&server, "GET /api/tags HTTP/1.1\r\n\r\n")
            .await
            .ends_with("{}")
    );
    assert!(
        exchange(&server, "GET /x HTTP/1.1\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 404")
    );
}
