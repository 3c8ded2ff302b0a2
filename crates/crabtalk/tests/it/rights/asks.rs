//! Answers to approvals from another connection, with and without the ask's id.

use super::{results, say, tool};
use crate::rig::{TestEnv, asked, eventually, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{
    Client, ClientError, ListAsksMsg, PendingAsk, ReplyToAsk, StreamEvent, StreamMsg,
};
use futures_util::StreamExt;
use serde_json::json;
use std::fs;

async fn pending(env: &TestEnv) -> PendingAsk {
    eventually("an ask", async || {
        let list = env.connect().await.list_asks(ListAsksMsg::default()).await;
        list.unwrap().asks.pop()
    })
    .await
}

fn code(error: ClientError) -> u32 {
    let ClientError::Refused(status) = error else {
        panic!("{error:?}");
    };
    status.code
}

#[tokio::test]
async fn second_client_answers_with_and_without_the_ask_id() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let answers = [
        ("Allow once", true),
        ("2", true),
        ("Deny: not there", false),
        ("n", false),
    ];
    for with_id in [true, false] {
        for (number, (answer, allowed)) in answers.iter().enumerate() {
            let file = format!("made-{with_id}-{number}");
            let command = format!("touch {file}");
            let mut asking = env.connect().await;
            let request = say(&env, tool("bash", &json!({"command": command})));
            let mut events = std::pin::pin!(asking.stream(request));
            let ask = asked(&mut events).await;
            assert_eq!(ask.kind, "approval");
            let reply = |content: &str| ReplyToAsk {
                agent: "crab".into(),
                sender: "user".into(),
                content: content.into(),
                ask_id: with_id.then(|| ask.ask_id.clone()),
            };
            // Clients without the id need not say Hello.
            let mut second = if with_id {
                env.connect().await
            } else {
                env.connect_silently().await
            };
            let unclear = second.reply_to_ask(reply("perhaps")).await;
            assert_eq!(code(unclear.unwrap_err()), 400);
            second.reply_to_ask(reply(answer)).await.unwrap();
            let rest: Vec<StreamEvent> =
                within("the end", events.map(Result::unwrap).collect()).await;
            let result = results(&rest).pop().unwrap();
            assert_eq!(result.is_error, !allowed, "{answer}: {result:?}");
            assert_eq!(env.work.join(&file).exists(), *allowed, "{answer}");
            if let Some((_, reason)) = answer.split_once(": ") {
                assert!(result.output.contains(reason), "{result:?}");
            }
            let late = second.reply_to_ask(reply(answer)).await;
            assert_eq!(code(late.unwrap_err()), 404);
        }
    }
    let text = fs::read_to_string(env.home.join("config/approvals.toml")).unwrap();
    assert_eq!(text.matches("[[approval]]").count(), 2, "{text}");
    assert!(text.contains("by = \"local\""), "{text}");
}

#[tokio::test]
async fn owner_answers_the_approval_of_a_stranger() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let command = json!({"command": "touch made"});
    let mut asking = env.connect().await;
    let request = StreamMsg {
        sender: Some("tg:1".into()),
        ..say(&env, tool("bash", &command))
    };
    let events = asking.stream(request);
    let read = async {
        let events: Vec<StreamEvent> = events.map(Result::unwrap).collect().await;
        events
    };
    let answer = async {
        let pending = pending(&env).await;
        assert_eq!(
            (pending.agent.as_str(), pending.sender.as_str()),
            ("crab", "tg:1")
        );
        let by_words = ReplyToAsk {
            agent: "crab".into(),
            sender: "tg:1".into(),
            content: "Allow always".into(),
            ask_id: None,
        };
        let refused = env.connect_silently().await.reply_to_ask(by_words).await;
        assert_eq!(code(refused.unwrap_err()), 404);
        env.run(&["approve", &pending.ask.unwrap().ask_id])
            .await
            .ok();
    };
    let (events, ()) = within("the run", async { tokio::join!(read, answer) }).await;
    let shown = |e: &StreamEvent| matches!(e.event, Some(Event::AskUser(_)));
    assert!(!events.iter().any(shown), "{events:?}");
    assert!(env.work.join("made").exists());
}
