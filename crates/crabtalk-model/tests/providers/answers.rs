//! Decoding of answers.

use crate::dialect::Dialect;
use crate::support::request;
use crate::{Case, Cell};
use crabtalk_domain::Usage;
use crabtalk_domain::model::{Chunk, Response, StopReason};
use crabtalk_testkit::scripted::answer::{self, ANSWER_TOKENS, CACHED_TOKENS, PROMPT_TOKENS};
use crabtalk_testkit::scripted::anthropic::event;
use crabtalk_testkit::scripted::{FinishReason, Format, Part, Reply, bedrock, openai};
use serde_json::json;

pub(crate) const CASES: [Case; 12] = [
    Case::new("text streams piece by piece", |d| Box::pin(pieces(d))),
    Case::new("chunks of one byte give the same answer", |d| {
        Box::pin(dribbled(d))
    }),
    Case::new("a response without streaming", |d| Box::pin(whole(d))),
    Case::new("a tool call", |d| Box::pin(call(d))),
    Case::new("parallel tool calls", |d| Box::pin(parallel(d))),
    Case::new("interleaved tool calls", |d| Box::pin(interleaved(d))),
    Case::new("thinking is separate from the answer", |d| {
        Box::pin(thinking(d))
    }),
    Case::new("usage, with cached tokens", |d| Box::pin(usage(d))),
    Case::new("an empty answer is accepted", |d| Box::pin(empty(d))),
    Case::new("the provider's length limit is reported", |d| {
        Box::pin(length(d))
    }),
    Case::new("the provider's filter is reported", |d| {
        Box::pin(filtered(d))
    }),
    Case::new("the answer names the model", |d| Box::pin(who(d))),
];

async fn read(dialect: Dialect, reply: Reply) -> Response {
    let bench = dialect.bench([reply]).await;
    let answer = bench.send(&request("hi")).await.expect("an answer");
    assert_eq!(bench.server.problems(), Vec::<String>::new());
    answer
}

async fn pieces(dialect: Dialect) -> Cell {
    let said = ["he", "ll\u{f6} ", "\u{1f980}\n\"x\\"];
    let bench = dialect.bench([dialect.text(&said)]).await;
    let chunks = bench.chunks(&request("hi")).await.expect("an answer");
    let heard: Vec<&str> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Text(text) => Some(text.as_str()),
            Chunk::Answering { .. }
            | Chunk::Notice(_)
            | Chunk::Thinking(_)
            | Chunk::ThinkingSignature(_)
            | Chunk::ToolCallStart { .. }
            | Chunk::ToolCallArguments { .. }
            | Chunk::Usage(_)
            | Chunk::Stop(_) => None,
        })
        .collect();
    assert_eq!(heard, said);
    assert_eq!(chunks.last(), Some(&Chunk::Stop(StopReason::Done)));
    Cell::Holds
}

async fn dribbled(dialect: Dialect) -> Cell {
    let parts = [
        Part::thinking("hm", "proof"),
        Part::text(&["h\u{e9} ", "\u{1f980}"]),
        Part::call("c1", "read", &["{\"path\":", "\"x\"}"]),
    ];
    let reply = dialect.answer(&parts, FinishReason::Calls);
    let whole = read(dialect, reply.clone()).await;
    assert_eq!(read(dialect, reply.dribbled()).await, whole);
    assert_eq!(whole.content, "h\u{e9} \u{1f980}");
    Cell::Holds
}

async fn whole(dialect: Dialect) -> Cell {
    let answer = read(dialect, answer::whole(dialect.format(), "all at once")).await;
    assert_eq!(answer.content, "all at once");
    assert_eq!(answer.stop, Some(StopReason::Done));
    Cell::Holds
}

fn calls(answer: &Response) -> Vec<(&str, &str, &str)> {
    assert_eq!(answer.stop, Some(StopReason::ToolCalls));
    answer
        .tool_calls
        .iter()
        .map(|call| (&*call.id, &*call.name, &*call.arguments))
        .collect()
}

async fn call(dialect: Dialect) -> Cell {
    let part = Part::call("c1", "read", &["{\"pa", "th\":\"x\"}"]);
    let answer = read(dialect, dialect.answer(&[part], FinishReason::Calls)).await;
    assert_eq!(calls(&answer), [("c1", "read", "{\"path\":\"x\"}")]);
    Cell::Holds
}

async fn parallel(dialect: Dialect) -> Cell {
    let parts = [
        Part::text(&["both"]),
        Part::call("c1", "read", &["{\"a\":1}"]),
        Part::call("c2", "read", &["{\"a\":2}"]),
    ];
    let answer = read(dialect, dialect.answer(&parts, FinishReason::Calls)).await;
    assert_eq!(
        calls(&answer),
        [("c1", "read", "{\"a\":1}"), ("c2", "read", "{\"a\":2}")]
    );
    assert_eq!(answer.content, "both");
    Cell::Holds
}

async fn interleaved(dialect: Dialect) -> Cell {
    let reply = match dialect.format() {
        Format::OpenAi => openai::ended(
            vec![
                openai::fragment(0, Some(("c1", "read")), ""),
                openai::fragment(1, Some(("c2", "bash")), "{\"a\""),
                openai::fragment(0, None, "{\"b\":"),
                openai::fragment(1, None, ":1}"),
                openai::fragment(0, None, "2}"),
            ],
            "tool_calls",
        ),
        Format::Anthropic => {
            let start = |index, id, name| {
                let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                event(
                    &json!({"type": "content_block_start", "index": index, "content_block": block}),
                )
            };
            let input = |index, piece| {
                let delta = json!({"type": "input_json_delta", "partial_json": piece});
                event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
            };
            Reply::new([
                start(0, "c1", "read"),
                start(1, "c2", "bash"),
                input(1, "{\"a\""),
                input(0, "{\"b\":"),
                input(1, ":1}"),
                input(0, "2}"),
                event(&json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})),
                event(&json!({"type": "message_stop"})),
            ])
        }
        Format::Bedrock => Reply::new([
            bedrock::head(),
            bedrock::begin(0, "c1", "read"),
            bedrock::begin(1, "c2", "bash"),
            bedrock::input(1, "{\"a\""),
            bedrock::input(0, "{\"b\":"),
            bedrock::input(1, ":1}"),
            bedrock::input(0, "2}"),
        ])
        .then(bedrock::ended(FinishReason::Calls)),
        Format::Google => return Cell::Absent("calls are not streamed"),
    };
    let answer = read(dialect, reply).await;
    assert_eq!(
        calls(&answer),
        [("c1", "read", "{\"b\":2}"), ("c2", "bash", "{\"a\":1}")]
    );
    Cell::Holds
}

async fn thinking(dialect: Dialect) -> Cell {
    let parts = [Part::thinking("let me see", "proof"), Part::text(&["so"])];
    let answer = read(dialect, dialect.answer(&parts, FinishReason::Done)).await;
    let thought: String = answer.thinking.iter().map(|t| t.text.as_str()).collect();
    assert_eq!(
        (thought.as_str(), answer.content.as_str()),
        ("let me see", "so")
    );
    Cell::Holds
}

async fn usage(dialect: Dialect) -> Cell {
    let figures = read(dialect, dialect.text(&["a"])).await.usage;
    let figures = figures.expect("figures");
    let want = Usage {
        prompt_tokens: PROMPT_TOKENS,
        completion_tokens: ANSWER_TOKENS,
        cache_hit_tokens: Some(CACHED_TOKENS),
        cache_miss_tokens: Some(PROMPT_TOKENS - CACHED_TOKENS),
        // Some count it apart, some do not.
        reasoning_tokens: figures.reasoning_tokens,
    };
    assert_eq!(figures, want);
    Cell::Holds
}

async fn empty(dialect: Dialect) -> Cell {
    let answer = read(dialect, dialect.answer(&[], FinishReason::Done)).await;
    assert_eq!(
        (answer.content.as_str(), answer.stop),
        ("", Some(StopReason::Done))
    );
    Cell::Holds
}

async fn length(dialect: Dialect) -> Cell {
    let answer = read(
        dialect,
        dialect.answer(&[Part::text(&["a"])], FinishReason::Length),
    )
    .await;
    assert_eq!(
        (answer.content.as_str(), answer.stop),
        ("a", Some(StopReason::Length))
    );
    Cell::Holds
}

async fn filtered(dialect: Dialect) -> Cell {
    let answer = read(
        dialect,
        dialect.answer(&[Part::text(&["a"])], FinishReason::Filtered),
    )
    .await;
    assert_eq!(answer.stop, Some(StopReason::ContentFilter));
    Cell::Holds
}

async fn who(dialect: Dialect) -> Cell {
    let answer = read(dialect, dialect.text(&["a"])).await;
    assert_eq!(
        (answer.provider.as_str(), answer.model.as_str()),
        ("p", "m")
    );
    Cell::Holds
}
