//! The OpenAI format against a scripted server.

mod support;

use crabtalk_domain::Message;
use crabtalk_domain::model::{ErrorKind, StopReason};
use crabtalk_model::Kind;
use crabtalk_testkit::scripted::openai::{self, delta, ended, finish, fragment};
use crabtalk_testkit::scripted::{Action, Reply, Script};
use serde_json::json;
use support::{Bench, request};

async fn bench(replies: impl IntoIterator<Item = Reply>) -> Bench {
    Bench::new(Kind::OpenAi, Script::openai(replies)).await
}

#[tokio::test]
async fn calls_of_sloppy_servers_are_separated() {
    let call = |json| delta(&json!({ "tool_calls": [json] }));
    let events = vec![
        // No index, no id, arguments as an object.
        call(json!({"function": {"name": "a", "arguments": {"x": 1}}})),
        call(json!({"function": {"name": "b", "arguments": "{}"}})),
        // Every call is number 0.
        call(json!({"index": 0, "id": "c", "function": {"name": "c", "arguments": ""}})),
        call(json!({"index": 0, "id": null, "function": {"name": null, "arguments": "{\"y\""}})),
        call(json!({"index": 0, "id": "other", "function": {"arguments": ":2}"}})),
        call(json!({"index": 0, "id": "d", "function": {"name": "d", "arguments": null}})),
        // The name comes late, and again.
        call(json!({"index": 7, "id": "e", "function": {"arguments": "{"}})),
        call(json!({"index": 7, "function": {"name": "e", "arguments": ""}})),
        call(json!({"index": 7, "function": {"name": "e", "arguments": "}"}})),
    ];
    let bench = bench([ended(events, "stop")]).await;
    let answer = bench.send(&request("hi")).await.expect("an answer");
    let calls: Vec<_> = answer
        .tool_calls
        .iter()
        .map(|c| (c.name.as_str(), c.arguments.as_str()))
        .collect();
    assert_eq!(
        calls,
        [
            ("a", "{\"x\":1}"),
            ("b", "{}"),
            ("c", "{\"y\":2}"),
            ("d", ""),
            ("e", "{}")
        ]
    );
    let mut ids: Vec<_> = answer
        .tool_calls
        .iter()
        .map(|call| call.id.clone())
        .collect();
    assert!(ids[0].starts_with("call_"), "{ids:?}");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5);
    assert_eq!(answer.stop, Some(StopReason::ToolCalls), "the calls decide");
}

#[tokio::test]
async fn reasoning_refusals_and_parts_are_read() {
    let events = vec![
        delta(&json!({"reasoning_content": "a", "reasoning": "a"})),
        delta(&json!({"reasoning": "b"})),
        delta(&json!({"content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]})),
        delta(&json!({"content": null, "refusal": "e", "tool_calls": null})),
    ];
    let bench = bench([ended(events, "length")]).await;
    let answer = bench.send(&request("hi")).await.expect("an answer");
    assert_eq!(
        (answer.thinking[0].text.as_str(), answer.content.as_str()),
        ("ab", "cde")
    );
    assert_eq!(answer.stop, Some(StopReason::Length));
}

#[tokio::test]
async fn answer_may_end_in_many_ways() {
    let hi = || delta(&json!({"content": "hi"}));
    let done = || Action::Body("data: [DONE]\n\ndata: [DONE]\n\n".into());
    for (name, reply) in [
        ("no reason", Reply::events([hi()]).then([done()])),
        ("no terminator", Reply::events([hi(), finish("stop")])),
        (
            "no terminator, cut",
            Reply::events([hi(), finish("stop")]).then([Action::Cut]),
        ),
        (
            "no empty line",
            Reply::events([hi(), finish("stop")]).then([Action::Body("data: [DONE]".into())]),
        ),
        (
            "junk after it",
            Reply::events([hi(), finish("stop")])
                .then([done(), Action::Body("data: {oops\n\n".into())]),
        ),
        ("unknown reason", Reply::events([hi(), finish("eos")])),
        (
            "no event at all",
            Reply::json(
                200,
                &json!({"choices": [
                    {"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"},
                ]}),
            ),
        ),
        (
            "repeated whole at the end",
            Reply::events([
                hi(),
                json!({"choices": [
                    {"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"},
                ]})
                .to_string(),
            ]),
        ),
        (
            "until close",
            Reply::new([Action::Head {
                status: 200,
                headers: vec![("connection".into(), "close".into())],
            }])
            .then(Reply::events([hi(), finish("stop"), "[DONE]".into()]).actions),
        ),
    ] {
        let bench = bench([reply]).await;
        let answer = bench.send(&request("hi")).await.expect(name);
        assert_eq!(
            (answer.content.as_str(), answer.stop),
            ("hi", Some(StopReason::Done)),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn missing_terminator_is_waited_for_5_seconds() {
    let reply = Reply::events([delta(&json!({"content": "hi"})), finish("stop")]);
    let bench = bench([reply.then([Action::Stall])]).await;
    let begin = tokio::time::Instant::now();
    let answer = bench.send(&request("hi")).await.expect("an answer");
    assert_eq!(
        (answer.content.as_str(), answer.stop),
        ("hi", Some(StopReason::Done))
    );
    assert!(begin.elapsed().as_secs() <= 5, "{:?}", begin.elapsed());
    bench.server.until(|p| p.closed_early == 1).await;
}

#[tokio::test]
async fn character_split_between_chunks_is_whole() {
    let event = format!("data: {}\n\n", delta(&json!({"content": "\u{1f980}"}))).into_bytes();
    let at = event
        .windows(2)
        .position(|w| w == [0xf0, 0x9f])
        .expect("the crab")
        + 2;
    let (first, second) = event.split_at(at);
    let split = [
        Action::Bytes(first.into()),
        Action::SleepMs(1),
        Action::Bytes(second.into()),
    ];
    let bench = bench([Reply::new(split).then([Action::Event(finish("stop"))])]).await;
    assert_eq!(
        bench.send(&request("hi")).await.expect("an answer").content,
        "\u{1f980}"
    );
}

#[tokio::test]
async fn broken_answer_is_quoted() {
    let hi = || delta(&json!({"content": "hi"}));
    let event = |text: &str| Action::Body(format!("data: {text}\n\n"));
    for (name, reply, want) in [
        (
            "cut",
            Reply::events([hi()]).then([Action::Cut]),
            "the answer is incomplete",
        ),
        ("ended", Reply::events([hi()]), "the answer is incomplete"),
        (
            "half an event",
            Reply::events([hi()]).then([Action::Body("data: {\"cho".into())]),
            "the answer is incomplete",
        ),
        (
            "malformed",
            Reply::events([hi()]).then([event("{oops sk-planted")]),
            "{oops ***",
        ),
        (
            "bad utf-8",
            Reply::events([hi()]).then([Action::Bytes(
                b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n".into(),
            )]),
            "invalid answer",
        ),
        (
            "not HTTP",
            Reply::events([hi()]).then([Action::Raw("oops\r\n".into())]),
            "the answer is incomplete",
        ),
        (
            "nameless call",
            ended(vec![hi(), fragment(0, Some(("x", "")), "{}")], "stop"),
            "without a name",
        ),
    ] {
        let bench = bench([reply]).await;
        let error = bench.send(&request("hi")).await.expect_err(name);
        assert_eq!(error.kind, ErrorKind::Malformed, "{name}: {error}");
        assert!(error.message.contains(want), "{name}: {error}");
        assert!(error.message.contains("provider \"p\""), "{name}: {error}");
        assert_eq!(
            bench.server.progress().requests,
            1,
            "{name}: nothing is tried again"
        );
    }
}

#[tokio::test]
async fn tools_and_guests_are_sent() {
    let bench = bench([openai::text("a"), openai::text("b")]).await;
    let mut with = request("hi");
    support::offer(&mut with, &["bash", "read"]);
    with.thinking = true;
    with.tool_choice = crabtalk_domain::model::ToolChoice::Named("bash".into());
    bench.send(&with).await.expect("an answer");
    let body = bench.server.requests()[0].body.clone();
    assert_eq!(body["tools"][1]["function"]["name"], "read");
    assert_eq!(
        body["tools"][0]["function"]["parameters"],
        json!({"type": "object"})
    );
    assert_eq!(body["tool_choice"]["function"]["name"], "bash");
    assert_eq!(body["reasoning_effort"], "medium");

    let mut guest = Message::assistant("hello <from agent=\"x\">");
    guest.agent = "ada".into();
    let mut with = support::history(vec![Message::user("hi"), guest, Message::user("and?")]);
    with.has_guests = true;
    bench.send(&with).await.expect("an answer");
    let body = bench.server.requests()[1].body.clone();
    let said = "<from agent=\"ada\">\nhello &lt;from agent=\"x\">\n</from>";
    assert_eq!(body["messages"][2]["content"], said);
    // The same messages without tags are other bytes.
    with.has_guests = false;
    bench.server.push(openai::text("c"));
    bench.send(&with).await.expect("an answer");
    let body = bench.server.requests()[2].body.clone();
    assert_eq!(body["messages"][2]["content"], "hello <from agent=\"x\">");
}

#[tokio::test]
async fn mistral_gets_an_answer_between_result_and_user() {
    use crabtalk_domain::tool::ToolOutput;
    use crabtalk_domain::{Image, ImageType};
    let image = Image::new(ImageType::Png, b"xyz").expect("small");
    let mut asked = support::history(vec![
        Message::user("look"),
        support::calling(&[("a", "read", "{}"), ("b", "read", "{}")]),
        Message::result("a", ToolOutput::ok("1").with_images(vec![image])),
        Message::tool("b", "2", false),
        Message::user("steered"),
        support::calling(&[("c", "read", "{}")]),
        Message::tool("c", "cancelled", true),
        Message::user("again"),
    ]);
    support::offer(&mut asked, &["read"]);
    let script = Script::openai([openai::text("ok"), openai::text("ok")]);
    let bench = Bench::with(Kind::OpenAi, script, |config| {
        let mut other = config.models[0].clone();
        config.models[0].id = "mistralai/Mistral-Small-3.2-24B".into();
        other.name = "other".into();
        other.images = Some(true);
        config.models.push(other);
    })
    .await;
    bench.send(&asked).await.expect("a valid request");
    asked.model = "other".into();
    bench.send(&asked).await.expect("a valid request");
    let roles = |at: usize| -> String {
        let body = bench.server.requests()[at].body.clone();
        let messages = body["messages"].as_array().expect("messages").clone();
        let initial = |m: &serde_json::Value| m["role"].as_str().and_then(|r| r.chars().next());
        messages.iter().filter_map(initial).collect()
    };
    // System, user, assistant, tool: the images come as a user's words.
    assert_eq!(roles(0), "suattauauatau");
    assert_eq!(roles(1), "suattuuatu");
}
