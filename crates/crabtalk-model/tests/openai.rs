//! The OpenAI format against a scripted server.

mod support;

use crabtalk_domain::model::{Chunk, ErrorKind, StopReason};
use crabtalk_domain::{Message, Usage};
use crabtalk_model::Kind;
use crabtalk_testkit::scripted::openai::{self, delta, ended, finish, fragment};
use crabtalk_testkit::scripted::{Action, Reply, Script};
use serde_json::json;
use support::{Bench, request};

async fn bench(replies: impl IntoIterator<Item = Reply>) -> Bench {
    Bench::new(Kind::OpenAi, Script::openai(replies)).await
}

#[tokio::test]
async fn an_answer_streams_as_it_was_written() {
    let bench = bench([openai::pieces(&["he", "llo", "\u{1f980}"])]).await;
    let chunks = bench.chunks(&request("hi")).await.expect("an answer");
    let usage = Usage {
        prompt_tokens: 10,
        completion_tokens: 5,
        cache_hit_tokens: Some(4),
        cache_miss_tokens: Some(6),
        reasoning_tokens: Some(0),
    };
    let text = |text: &str| Chunk::Text(text.into());
    assert_eq!(
        chunks,
        [
            Chunk::Answering {
                provider: "p".into(),
                model: "m".into()
            },
            text("he"),
            text("llo"),
            text("\u{1f980}"),
            Chunk::Usage(usage),
            Chunk::Stop(StopReason::Done),
        ]
    );
    let got = &bench.server.requests()[0];
    assert_eq!(got.path, "/v1/chat/completions");
    assert_eq!(got.header("authorization"), Some("Bearer sk-planted"));
    assert_eq!(got.body["model"], "the-id");
    assert_eq!(got.body["stream_options"]["include_usage"], true);
    let messages = json!([
        {"role": "system", "content": "sys"}, {"role": "user", "content": "hi"},
    ]);
    assert_eq!(got.body["messages"], messages);
}

#[tokio::test]
async fn interleaved_fragments_become_whole_calls() {
    let events = vec![
        fragment(0, Some(("a", "read")), ""),
        fragment(1, Some(("b", "bash")), "{\"com"),
        fragment(0, None, "{\"path\":"),
        fragment(1, None, "mand\":1}"),
        fragment(0, None, "\"x\"}"),
    ];
    let bench = bench([ended(events, "tool_calls")]).await;
    let answer = bench.send(&request("hi")).await.expect("an answer");
    let calls: Vec<_> = answer
        .tool_calls
        .iter()
        .map(|c| (&*c.id, &*c.name, &*c.arguments))
        .collect();
    assert_eq!(
        calls,
        [
            ("a", "read", "{\"path\":\"x\"}"),
            ("b", "bash", "{\"command\":1}")
        ]
    );
    assert_eq!(answer.stop, Some(StopReason::ToolCalls));
}

#[tokio::test]
async fn calls_of_careless_servers_are_told_apart() {
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
    assert_eq!(
        answer.stop,
        Some(StopReason::ToolCalls),
        "whatever the server calls it"
    );
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
async fn every_way_to_end_is_an_end() {
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

#[tokio::test]
async fn an_empty_answer_is_an_answer() {
    let bench = bench([ended(Vec::new(), "stop")]).await;
    let answer = bench.send(&request("hi")).await.expect("an answer");
    assert_eq!(
        (answer.content.as_str(), answer.stop),
        ("", Some(StopReason::Done))
    );
}

#[tokio::test(start_paused = true)]
async fn last_words_that_never_come_are_not_waited_for() {
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
async fn one_byte_at_a_time_is_the_same_answer() {
    let bench = bench([openai::pieces(&["h\u{e9}", "\u{1f980}"]).dribbled()]).await;
    assert_eq!(
        bench.send(&request("hi")).await.expect("an answer").content,
        "h\u{e9}\u{1f980}"
    );
}

#[tokio::test]
async fn a_character_split_between_chunks_is_whole() {
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
async fn broken_answers_say_what_came() {
    let hi = || delta(&json!({"content": "hi"}));
    let event = |text: &str| Action::Body(format!("data: {text}\n\n"));
    for (name, reply, want) in [
        (
            "cut",
            Reply::events([hi()]).then([Action::Cut]),
            "the answer was cut",
        ),
        ("ended", Reply::events([hi()]), "the answer was cut"),
        (
            "half an event",
            Reply::events([hi()]).then([Action::Body("data: {\"cho".into())]),
            "the answer was cut",
        ),
        (
            "malformed",
            Reply::events([hi()]).then([event("{oops sk-planted")]),
            "this came: {oops ***",
        ),
        (
            "bad utf-8",
            Reply::events([hi()]).then([Action::Bytes(
                b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n".into(),
            )]),
            "makes no sense",
        ),
        (
            "not HTTP",
            Reply::events([hi()]).then([Action::Raw("oops\r\n".into())]),
            "the answer was cut",
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
async fn an_error_within_the_stream_is_the_providers() {
    let hi = || delta(&json!({"content": "hi"}));
    for (error, kind) in [
        (
            json!({"error": {"message": "boom", "type": "server_error"}}),
            ErrorKind::Provider { retry_after: None },
        ),
        (
            json!({"error": {"message": "boom", "code": 429}}),
            ErrorKind::RateLimited { retry_after: None },
        ),
        (
            json!({"error": "boom"}),
            ErrorKind::Provider { retry_after: None },
        ),
    ] {
        let bench = bench([Reply::events([hi(), error.to_string()])]).await;
        let chunks = bench.chunks(&request("hi")).await;
        let got = chunks.expect_err("an error");
        assert_eq!(got.kind, kind, "{got}");
        assert!(got.message.contains("boom"), "{got}");
    }
}

#[tokio::test]
async fn tools_and_speakers_reach_the_model() {
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
async fn consecutive_requests_share_their_prefix_byte_for_byte() {
    let bench = bench([openai::text("a"), openai::text("b")]).await;
    let mut first = support::history(vec![
        Message::user("hi"),
        support::calling(&[
            ("c1", "bash", "{\"command\":\"ls\"}"),
            ("c2", "bash", "{broken"),
        ]),
        Message::tool("c1", "r", false),
        Message::tool("c2", "r", true),
    ]);
    support::offer(&mut first, &["bash"]);
    bench.send(&first).await.expect("an answer");
    let mut second = first.clone();
    second
        .history
        .extend([Message::assistant("a"), Message::user("go on")].map(std::sync::Arc::new));
    bench.send(&second).await.expect("an answer");
    let requests = bench.server.requests();
    let shared = requests[0]
        .text
        .strip_suffix("]}")
        .expect("messages come last");
    assert!(requests[1].text.starts_with(shared), "{}", requests[1].text);
    assert_eq!(bench.server.problems(), Vec::<String>::new());
}

#[tokio::test]
async fn where_results_need_an_answer_before_a_user_speaks_they_get_one() {
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
