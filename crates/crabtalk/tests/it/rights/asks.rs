//! Approvals of other senders.

use super::{say, tool};
use crate::rig::{TestEnv, eventually, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{
    Client, ClientError, ListAsksMsg, PendingAsk, ReplyToAsk, StreamEvent, StreamMsg,
};
use futures_util::StreamExt;
use serde_json::json;

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
