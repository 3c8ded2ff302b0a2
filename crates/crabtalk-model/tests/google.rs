//! Peculiarities of Google, against a scripted server.

mod support;

use crabtalk_domain::model::{Request, StopReason};
use crabtalk_domain::{Message, Thinking};
use crabtalk_model::Kind;
use crabtalk_testkit::scripted::google::{self, event};
use crabtalk_testkit::scripted::{Format, Reply, Script};
use serde_json::{Value, json};
use support::{Bench, calling, history, offer, request};

async fn bench(model_id: &str, replies: impl IntoIterator<Item = Reply>) -> Bench {
    let script = Script::new(Format::Google, replies);
    Bench::with(Kind::Google, script, |config| {
        config.models[0].id = model_id.into();
        config.max_retries = 0;
    })
    .await
}

/// The body of one request, which the server found right.
async fn body_of(model_id: &str, request: &Request) -> Value {
    let bench = bench(model_id, [google::text("ok")]).await;
    bench.send(request).await.expect("a valid request");
    bench.server.requests()[0].body.clone()
}

fn with_call(thinking: Vec<Thinking>) -> Request {
    let mut answer = calling(&[
        ("call_0123456789abcdef", "read", "{\"path\":1}"),
        ("own", "bash", ""),
    ]);
    answer.content = "looking".into();
    answer.thinking = thinking;
    let mut asked = history(vec![
        Message::user("hi"),
        answer,
        Message::tool("call_0123456789abcdef", "r", false),
        Message::tool("own", "no", true),
    ]);
    offer(&mut asked, &["read"]);
    asked
}

fn signed(signature: &str) -> Thinking {
    Thinking {
        text: "hm".into(),
        signature: signature.into(),
    }
}

#[tokio::test]
async fn request_follows_googles_documentation() {
    let proofs = vec![signed("gemini_text:t=="), signed("gemini_call:1:c==")];
    let mut asked = with_call(proofs);
    asked.thinking = true;
    // The first call lacks its proof: the server of a Gemini 3 would refuse it.
    let body = body_of("gemini-3-pro", &asked).await;
    assert_eq!(
        body,
        json!({
            "generationConfig": {"thinkingConfig": {"includeThoughts": true}},
            "tools": [{"functionDeclarations": [{
                "name": "read", "description": "does it",
                "parametersJsonSchema": {"type": "object"},
            }]}],
            "systemInstruction": {"parts": [{"text": "sys"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [
                    {"text": "looking", "thoughtSignature": "t=="},
                    {"functionCall": {"name": "read", "args": {"path": 1}},
                     "thoughtSignature": "skip_thought_signature_validator"},
                    {"functionCall": {"id": "own", "name": "bash", "args": {}},
                     "thoughtSignature": "c=="},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "read", "response": {"output": "r"}}},
                    {"functionResponse": {
                        "id": "own", "name": "bash", "response": {"error": "no"},
                    }},
                ]},
            ],
        })
    );
}

#[tokio::test]
async fn older_model_gets_no_thought_options() {
    let mut asked = with_call(Vec::new());
    asked.thinking = true;
    let body = body_of("gemini-2.0-flash", &asked).await;
    assert_eq!(body["generationConfig"], Value::Null);
    assert_eq!(
        body["contents"][1]["parts"][1]["thoughtSignature"],
        Value::Null
    );
}

#[tokio::test]
async fn proofs_are_kept_with_what_they_prove() {
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let mut first = call("read");
    first["thoughtSignature"] = "of the call".into();
    let events = [
        event(&[json!({"text": "thought", "thought": true})], None),
        event(&[json!({"text": "said"})], None),
        event(
            &[json!({"text": "", "thoughtSignature": "of the text"})],
            None,
        ),
        event(&[first, call("bash")], Some("STOP")),
    ];
    let bench = bench("gemini-3-pro", [Reply::events(events)]).await;
    let answer = bench.send(&request("hi")).await.expect("an answer");
    let blocks: Vec<_> = answer
        .thinking
        .iter()
        .map(|block| (block.text.as_str(), block.signature.as_str()))
        .collect();
    assert_eq!(
        blocks,
        [
            ("thought", "gemini_text:of the text"),
            ("", "gemini_call:0:of the call"),
        ]
    );
    let ids: Vec<_> = answer.tool_calls.iter().map(|call| &call.id).collect();
    assert!(ids[0].starts_with("call_") && ids[0] != ids[1], "{ids:?}");
    assert_eq!(answer.stop, Some(StopReason::ToolCalls));
}

#[tokio::test]
async fn finish_reasons_are_mapped() {
    for (reason, stop) in [
        ("STOP", Ok(StopReason::Done)),
        ("MAX_TOKENS", Ok(StopReason::Length)),
        ("RECITATION", Ok(StopReason::ContentFilter)),
        ("MALFORMED_FUNCTION_CALL", Err("MALFORMED_FUNCTION_CALL")),
        ("SOMETHING_NEW", Ok(StopReason::Done)),
    ] {
        let reply = Reply::events([event(&[json!({"text": "a"})], Some(reason))]);
        let outcome = bench("g", [reply]).await.send(&request("hi")).await;
        match (outcome, stop) {
            (Ok(answer), Ok(stop)) => assert_eq!(answer.stop, Some(stop), "{reason}"),
            (Err(error), Err(part)) => assert!(error.message.contains(part), "{error}"),
            (outcome, _) => panic!("{reason}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn list_instead_of_a_stream_is_read() {
    let list = [
        event(&[json!({"text": "a"})], None),
        event(&[json!({"text": "b"})], Some("STOP")),
    ];
    let body = format!("[{}]", list.join(","));
    let reply = Reply::page(
        200,
        &[("content-type", "application/json; charset=UTF-8")],
        &body,
    );
    let answer = bench("g", [reply]).await.send(&request("hi")).await;
    assert_eq!(answer.expect("an answer").content, "ab");
}

#[tokio::test]
async fn older_models_find_images_beside_the_results() {
    use crabtalk_domain::tool::ToolOutput;
    use crabtalk_domain::{Image, ImageType};
    let image = Image::new(ImageType::Png, b"xyz").expect("small");
    let mut asked = history(vec![
        Message::user("look"),
        calling(&[("a", "read", "{}"), ("b", "read", "{}")]),
        Message::result("a", ToolOutput::ok("1").with_images(vec![image])),
        Message::tool("b", "2", false),
    ]);
    offer(&mut asked, &["read"]);
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "eHl6"}});
    for (model, nested) in [
        ("gemini-3-pro", true),
        ("gemini-2.5-flash", false),
        ("gemini-flash-latest", false),
    ] {
        let body = body_of(model, &asked).await;
        let parts = body["contents"][2]["parts"].as_array().expect("parts");
        if nested {
            assert_eq!(parts[0]["functionResponse"]["parts"], json!([picture]));
        } else {
            assert_eq!(parts[1], picture);
        }
        assert_eq!(parts.len(), if nested { 2 } else { 3 }, "{model}");
    }
}
