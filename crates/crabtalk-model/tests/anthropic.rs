//! Anthropic's format against a scripted server.

mod support;

use crabtalk_domain::model::{Chunk, StopReason, ToolChoice};
use crabtalk_domain::{Message, Thinking, Usage};
use crabtalk_model::Kind;
use crabtalk_testkit::scripted::anthropic::{self, Block};
use crabtalk_testkit::scripted::{Reply, Script};
use serde_json::{Value, json};
use std::sync::Arc;
use support::{Bench, calling, history, offer, request};

async fn bench(replies: impl IntoIterator<Item = Reply>) -> Bench {
    Bench::new(Kind::Anthropic, Script::anthropic(replies)).await
}

/// The body of one request, which the server found right.
async fn body_of(request: &crabtalk_domain::model::Request) -> Value {
    let bench = bench([anthropic::text("ok")]).await;
    bench.send(request).await.expect("a valid request");
    bench.server.requests()[0].body.clone()
}

#[tokio::test]
async fn every_kind_of_block_is_read() {
    let reply = anthropic::blocks(&[
        Block::Thinking("let me see".into(), "sig==".into()),
        Block::Redacted("opaque".into()),
        Block::Text(vec!["I will ".into(), "look".into()]),
        Block::Tool(
            "toolu_1".into(),
            "read".into(),
            vec![String::new(), "{\"pa".into(), "th\":1}".into()],
        ),
        Block::Tool("toolu_2".into(), "list".into(), Vec::new()),
    ]);
    let bench = bench([reply]).await;
    let chunks = bench.chunks(&request("hi")).await.expect("an answer");
    let usage = |completion_tokens| {
        Chunk::Usage(Usage {
            prompt_tokens: 13,
            completion_tokens,
            cache_hit_tokens: Some(4),
            cache_miss_tokens: Some(9),
            reasoning_tokens: None,
        })
    };
    let start = |index, id: &str, name: &str| Chunk::ToolCallStart {
        index,
        id: id.into(),
        name: name.into(),
    };
    let arguments = |index, fragment: &str| Chunk::ToolCallArguments {
        index,
        fragment: fragment.into(),
    };
    assert_eq!(
        chunks,
        [
            Chunk::Answering {
                provider: "p".into(),
                model: "m".into()
            },
            usage(1),
            Chunk::Thinking("let me see".into()),
            Chunk::ThinkingSignature("sig==".into()),
            Chunk::ThinkingSignature("redacted_thinking:opaque".into()),
            Chunk::Text("I will ".into()),
            Chunk::Text("look".into()),
            start(0, "toolu_1", "read"),
            arguments(0, "{\"pa"),
            arguments(0, "th\":1}"),
            start(1, "toolu_2", "list"),
            arguments(1, "{}"),
            usage(5),
            Chunk::Stop(StopReason::ToolCalls),
        ]
    );
    let got = &bench.server.requests()[0];
    assert_eq!(got.path, "/v1/messages");
    assert_eq!(got.header("x-api-key"), Some("sk-planted"));
    assert_eq!(got.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(got.header("authorization"), None);
}

#[tokio::test]
async fn answer_that_was_not_streamed_is_read() {
    let whole = json!({"type": "message", "role": "assistant", "content": [
        {"type": "thinking", "thinking": "t", "signature": "s"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "1", "name": "read", "input": {"path": "x"}},
    ], "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 2}});
    let bench = bench([Reply::json(200, &whole)]).await;
    let answer = bench.send(&request("hi")).await.expect("an answer");
    assert_eq!(answer.content, "hi");
    assert_eq!(
        answer.thinking,
        [Thinking {
            text: "t".into(),
            signature: "s".into()
        }]
    );
    assert_eq!(answer.tool_calls[0].arguments, "{\"path\":\"x\"}");
    assert_eq!(answer.usage.expect("figures").prompt_tokens, 3);
    assert_eq!(answer.stop, Some(StopReason::ToolCalls));
}

#[tokio::test]
async fn thinking_is_sent_back_unchanged() {
    let mut answer = calling(&[("t1", "read", "{\"path\":\"x\"}")]);
    answer.content = "looking".into();
    answer.thinking = vec![
        Thinking {
            text: "hm".into(),
            signature: "sig".into(),
        },
        Thinking {
            text: String::new(),
            signature: "redacted_thinking:opaque".into(),
        },
        Thinking {
            text: "unsigned, from elsewhere".into(),
            signature: String::new(),
        },
    ];
    let mut asked = history(vec![
        Message::user("hi"),
        answer,
        Message::tool("t1", "r", true),
    ]);
    offer(&mut asked, &["read"]);
    asked.thinking = true;
    let body = body_of(&asked).await;
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "opaque"},
                {"type": "text", "text": "looking"},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "x"}},
            ]},
            {"role": "user", "content": [{
                "type": "tool_result", "tool_use_id": "t1", "content": "r", "is_error": true,
                "cache_control": {"type": "ephemeral"},
            }]},
        ])
    );
    assert_eq!(body["thinking"]["type"], "enabled");
}

#[tokio::test]
async fn thinking_is_requested_where_allowed() {
    let mut asked = request("hi");
    asked.thinking = true;
    assert_eq!(body_of(&asked).await["thinking"]["budget_tokens"], 4096);
    // A forced call excludes it.
    offer(&mut asked, &["read"]);
    asked.tool_choice = ToolChoice::Required;
    let body = body_of(&asked).await;
    assert_eq!(
        (&body["thinking"], &body["tool_choice"]["type"]),
        (&Value::Null, &json!("any"))
    );
    // So does a call group that began without, for instance at another provider.
    let unsigned = vec![
        Message::user("hi"),
        calling(&[("1", "read", "{}")]),
        Message::tool("1", "r", false),
    ];
    let mut asked = history(unsigned);
    offer(&mut asked, &["read"]);
    asked.thinking = true;
    assert_eq!(body_of(&asked).await["thinking"], Value::Null);
    // Words of the user beside the results do not end that group.
    asked.history.push(Arc::new(Message::user("steered")));
    asked.injected_at = asked.history.len();
    assert_eq!(body_of(&asked).await["thinking"], Value::Null);
    // The next turn does.
    asked
        .history
        .extend([Message::assistant("done"), Message::user("next")].map(Arc::new));
    assert_eq!(body_of(&asked).await["thinking"]["type"], "enabled");
    // Newer models decide themselves.
    for (id, kind) in [
        ("claude-sonnet-4-5-20250929", "enabled"),
        ("claude-opus-4-6", "adaptive"),
        ("claude-opus-5", "adaptive"),
        ("claude-3-7-sonnet-20250219", "enabled"),
        ("claude-opus-4-20250514", "enabled"),
    ] {
        let mut asked = request("hi");
        asked.thinking = true;
        let script = Script::anthropic([anthropic::text("ok")]);
        let bench = Bench::with(Kind::Anthropic, script, |config| {
            config.models[0].id = id.into()
        })
        .await;
        bench.send(&asked).await.expect("a valid request");
        assert_eq!(
            bench.server.requests()[0].body["thinking"]["type"],
            kind,
            "{id}"
        );
    }
}

#[tokio::test]
async fn without_tools_calls_and_results_become_text() {
    let asked = history(vec![
        Message::user("hi"),
        calling(&[("1", "read", "{\"path\":\"x\"}")]),
        Message::tool("1", "contents", false),
        Message::assistant("done"),
        Message::user("and you?"),
    ]);
    let body = body_of(&asked).await;
    assert_eq!(
        body["messages"][1]["content"][0]["text"],
        "[called the tool read with {\"path\":\"x\"}]"
    );
    assert_eq!(
        body["messages"][2]["content"][0]["text"],
        "[the tool answered: contents]"
    );
    // The same messages with tools are blocks again.
    let mut with = asked.clone();
    offer(&mut with, &["read"]);
    assert_eq!(
        body_of(&with).await["messages"][1]["content"][0]["type"],
        "tool_use"
    );
}

#[tokio::test]
async fn output_limit_depends_on_the_model() {
    for (id, limit) in [
        ("claude-3-haiku-20240307", 4_096),
        ("claude-sonnet-4-5", 32_000),
        ("some-proxy-model", 8_192),
    ] {
        let script = Script::anthropic([anthropic::text("ok")]);
        let bench = Bench::with(Kind::Anthropic, script, |config| {
            config.models[0].id = id.into()
        })
        .await;
        bench.send(&request("hi")).await.expect("an answer");
        assert_eq!(bench.server.requests()[0].body["max_tokens"], limit, "{id}");
    }
}
