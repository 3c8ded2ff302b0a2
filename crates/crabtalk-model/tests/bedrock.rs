//! Peculiarities of Bedrock, against a scripted server.

mod support;

use crabtalk_domain::model::{Request, StopReason};
use crabtalk_domain::{Message, Thinking};
use crabtalk_model::{Kind, Secret};
use crabtalk_testkit::scripted::bedrock::{self, event};
use crabtalk_testkit::scripted::{FinishReason, Format, Reply, Script};
use serde_json::{Value, json};
use support::{Bench, calling, history, offer, request, site};

const CLAUDE: &str = "eu.anthropic.claude-sonnet-4-5-v1:0";

async fn bench(model_id: &str, replies: impl IntoIterator<Item = Reply>) -> Bench {
    let script = Script::new(Format::Bedrock, replies);
    Bench::with(Kind::Bedrock, script, |config| {
        config.models[0].id = model_id.into();
        config.max_retries = 0;
    })
    .await
}

/// The body of one request, which the server found right.
async fn body_of(model_id: &str, request: &Request) -> Value {
    let bench = bench(model_id, [bedrock::text("ok")]).await;
    bench.send(request).await.expect("a valid request");
    bench.server.requests()[0].body.clone()
}

#[tokio::test]
async fn request_follows_amazons_documentation() {
    let mut answer = calling(&[("t:1", "read", "{\"path\":1}")]);
    answer.content = "looking".into();
    let block = |text: &str, signature: &str| Thinking {
        text: text.into(),
        signature: signature.into(),
    };
    answer.thinking = vec![
        block("hm", "sig"),
        block("", "bedrock_redacted:b64=="),
        block("unsigned", ""),
    ];
    let mut asked = history(vec![
        Message::user("hi"),
        answer,
        Message::tool("t:1", " ", true),
    ]);
    offer(&mut asked, &["read"]);
    asked.thinking = true;
    let mark = json!({"cachePoint": {"type": "default"}});
    assert_eq!(
        body_of(CLAUDE, &asked).await,
        json!({
            "inferenceConfig": {"maxTokens": 32000},
            "additionalModelRequestFields": {
                "thinking": {"type": "enabled", "budget_tokens": 8000},
            },
            "toolConfig": {"tools": [
                {"toolSpec": {
                    "name": "read", "description": "does it",
                    "inputSchema": {"json": {"type": "object"}},
                }},
                mark,
            ]},
            "system": [{"text": "sys"}, mark],
            "messages": [
                {"role": "user", "content": [{"text": "hi"}]},
                {"role": "assistant", "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
                    {"reasoningContent": {"redactedContent": "b64=="}},
                    {"text": "looking"},
                    {"toolUse": {"toolUseId": "t_1", "name": "read", "input": {"path": 1}}},
                ]},
                {"role": "user", "content": [
                    {"toolResult": {
                        "toolUseId": "t_1", "content": [{"text": "(no output)"}],
                        "status": "error",
                    }},
                    mark,
                ]},
            ],
        })
    );
}

#[tokio::test]
async fn models_get_only_what_they_know() {
    for (id, points, thinks, tokens) in [
        (CLAUDE, 3, true, json!(32_000)),
        (
            "anthropic.claude-3-haiku-20240307-v1:0",
            0,
            true,
            json!(4_096),
        ),
        ("us.amazon.nova-pro-v1:0", 2, false, json!(10_000)),
        ("meta.llama3-3-70b-instruct-v1:0", 0, false, Value::Null),
    ] {
        let mut asked = request("hi");
        offer(&mut asked, &["read"]);
        asked.thinking = true;
        let body = body_of(id, &asked).await;
        let found = body.to_string().matches("cachePoint").count();
        assert_eq!(found, points, "{id}: {body}");
        assert_eq!(body["inferenceConfig"]["maxTokens"], tokens, "{id}");
        let fields = &body["additionalModelRequestFields"];
        assert_eq!(fields["thinking"].is_object(), thinks, "{id}: {body}");
    }
}

#[tokio::test]
async fn access_key_signs_and_is_not_sent() {
    let script = Script::new(
        Format::Bedrock,
        [
            bedrock::text("ok"),
            bedrock::refusal(403, "AccessDeniedException", "secret-planted token-planted"),
        ],
    );
    let bench = Bench::with(Kind::Bedrock, script, |config| {
        config.api_key = Some(Secret::new("AKID:secret-planted:token-planted"));
    })
    .await;
    bench.send(&request("hi")).await.expect("an answer");
    let got = &bench.server.requests()[0];
    let authorization = got.header("authorization").expect("a signature");
    assert!(
        authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKID/")
            && authorization.contains(
                "/us-east-1/bedrock/aws4_request, SignedHeaders=\
             content-type;host;x-amz-date;x-amz-security-token, Signature="
            ),
        "{authorization}"
    );
    assert_eq!(got.header("x-amz-security-token"), Some("token-planted"));
    assert!(
        got.header("x-amz-date")
            .is_some_and(|date| date.ends_with('Z'))
    );
    let headers = format!("{:?}", got.headers);
    assert!(!headers.contains("secret-planted"), "{headers}");
    let error = bench.send(&request("hi")).await.expect_err("403").message;
    assert!(!error.contains("planted"), "{error}");
}

#[tokio::test]
async fn hidden_thinking_and_calls_without_input_are_read() {
    let delta = |delta: Value| {
        event(
            "contentBlockDelta",
            &json!({"contentBlockIndex": 0, "delta": delta}),
        )
    };
    let reply = Reply::new([
        bedrock::head(),
        delta(json!({"reasoningContent": {"redactedContent": "b64=="}})),
        bedrock::begin(1, "c1", "list"),
        event("contentBlockStop", &json!({"contentBlockIndex": 1})),
        event("somethingNew", &json!({})),
    ])
    .then(bedrock::ended(FinishReason::Calls));
    let answer = bench(CLAUDE, [reply]).await.send(&request("hi")).await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.thinking[0].signature, "bedrock_redacted:b64==");
    assert_eq!(answer.tool_calls[0].arguments, "{}");
    assert_eq!(answer.stop, Some(StopReason::ToolCalls));
}

#[tokio::test]
async fn web_site_is_not_taken_for_a_model_server() {
    let error = bench(CLAUDE, [site()]).await.send(&request("hi")).await;
    let error = error.expect_err("a page").message;
    assert!(
        error.contains("not an event stream") && error.contains("<html>Welcome"),
        "{error}"
    );
}
