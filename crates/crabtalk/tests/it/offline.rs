//! The offline model's commands, through the whole program (interface.md).

use crate::rig::{TestEnv, asked, chunks, end_of, entries, kinds, stream_to_end};
use crabtalk_proto::{Client, ReplyToAsk, StreamMsg};
use futures_util::StreamExt;

fn say(content: &str) -> StreamMsg {
    StreamMsg {
        content: content.into(),
        ..StreamMsg::default()
    }
}

#[tokio::test]
async fn it_says_what_it_is_and_what_it_sees() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let first = stream_to_end(&env, say("good day")).await;
    let text = chunks(&first);
    assert!(text.contains("offline demonstration"), "{text}");
    assert!(text.contains("You told me: good day"), "{text}");
    assert!(text.contains("1 message,"), "{text}");
    assert_eq!(end_of(&first).model, "offline");
    let second = stream_to_end(&env, say("good night")).await;
    assert!(chunks(&second).contains("3 messages"), "{second:?}");
}

#[tokio::test]
async fn it_calls_tools_and_reports() {
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    let _daemon = env.daemon().await;
    let call = "/tool bash {\"command\":\"echo $((6 * 7))\"}";
    let events = stream_to_end(&env, say(call)).await;
    assert_eq!(chunks(&events), "bash answered:\n42\n");
    assert_eq!(
        kinds(&events),
        "Start ToolStart ToolResult ToolsComplete TextStart Chunk TextEnd End"
    );
    let title = "/tool set_title {\"title\":\"Sums and more\"}";
    stream_to_end(&env, say(title)).await;
    let name = env.logs().pop().unwrap();
    let name = name.file_name().unwrap().to_str().unwrap();
    assert_eq!(name, "crab_user_1_sums-and-more.jsonl");
}

#[tokio::test]
async fn it_asks_and_takes_the_answer() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let mut events = std::pin::pin!(connection.stream(say("/ask Which colour?")));
    let ask = asked(&mut events).await;
    assert_eq!(ask.kind, "question");
    assert_eq!(ask.questions[0].question, "Which colour?");
    let reply = |id: Option<&str>| ReplyToAsk {
        content: "green".into(),
        ask_id: id.map(Into::into),
        ..ReplyToAsk::default()
    };
    let mut other = env.connect().await;
    let wrong = other.reply_to_ask(reply(Some("no-such-ask"))).await;
    assert_eq!(wrong.unwrap_err().code(), Some(404));
    other.reply_to_ask(reply(None)).await.unwrap();
    let rest: Vec<_> = events.map(Result::unwrap).collect().await;
    assert!(
        chunks(&rest).contains("{\"Which colour?\":\"green\"}"),
        "{rest:?}"
    );
}

#[tokio::test]
async fn it_thinks_apart_from_what_it_says() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let events = stream_to_end(&env, say("/slow 1 /think of crabs\nand then talk")).await;
    assert_eq!(
        kinds(&events),
        "Start ThinkingStart Thinking ThinkingEnd TextStart Chunk TextEnd End"
    );
    assert!(chunks(&events).contains("and then talk"));
    let history = entries(&env, "crab", "user").await;
    assert!(!history[1].content.contains("of crabs"), "{history:?}");
}
