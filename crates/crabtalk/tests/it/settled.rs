//! The end of asks, as every kind of client sees it.

use crate::rig::{TestEnv, asked, within};
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{
    AgentEventKind, AskOutcome, AskSettledEvent, AttachMsg, Client, ReplyToAsk, StreamEvent,
    StreamMsg, SubscribeEvents,
};
use futures_util::StreamExt;
use serde_json::Value;

fn order() -> StreamMsg {
    StreamMsg {
        content: r#"/tool bash {"command":"echo hi"}"#.into(),
        ..StreamMsg::default()
    }
}

/// The settled asks among the events.
fn settled(events: &[StreamEvent]) -> Vec<AskSettledEvent> {
    let settled = events.iter().filter_map(|event| match &event.event {
        Some(Event::AskSettled(settled)) => Some(settled.clone()),
        _ => None,
    });
    settled.collect()
}

#[tokio::test]
async fn every_reader_sees_who_answered_an_ask() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let (mut asking, mut attached) = (env.connect().await, env.connect().await);
    let (mut watching, mut other) = (env.connect().await, env.connect().await);
    let mut watched = std::pin::pin!(watching.subscribe_events(SubscribeEvents {
        after: Some(0),
        ..SubscribeEvents::default()
    }));
    let begins = within("the beginning", watched.next())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(begins.kind(), AgentEventKind::Subscribed);
    let mut run = std::pin::pin!(asking.stream(order()));
    let ask = asked(&mut run).await;
    let mut seen = std::pin::pin!(attached.attach(AttachMsg::default()));
    asked(&mut seen).await;
    let reply = ReplyToAsk {
        content: "y".into(),
        ask_id: Some(ask.ask_id.clone()),
        ..ReplyToAsk::default()
    };
    other.reply_to_ask(reply).await.unwrap();
    let want = AskSettledEvent {
        ask_id: ask.ask_id.clone(),
        outcome: AskOutcome::Answered.into(),
        by: "local".into(),
        answer: "Allow once".into(),
    };
    for events in [
        within("the end", run.map(Result::unwrap).collect::<Vec<_>>()).await,
        within("the end", seen.map(Result::unwrap).collect::<Vec<_>>()).await,
    ] {
        assert_eq!(settled(&events), std::slice::from_ref(&want));
    }
    let told = within("the ask's end among the events", async {
        loop {
            let event = watched.next().await.unwrap().unwrap();
            if event.kind() == AgentEventKind::AskSettled {
                return event;
            }
        }
    })
    .await;
    assert_eq!(told.ask_id, ask.ask_id);
    assert_eq!(told.settled, Some(want));
}

#[tokio::test]
async fn json_output_has_the_end_of_asks() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let denied = env.run(&["ask", "--json", &order().content]).await.ok();
    let events = denied
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let settled: Vec<Value> = events
        .filter(|event: &Value| event["type"] == "ask_settled")
        .collect();
    assert_eq!(settled.len(), 1, "{denied}");
    assert_eq!(settled[0]["outcome"], "answered");
    assert_eq!(settled[0]["by"], "local");
    assert_eq!(settled[0]["answer"], "Deny: no terminal to approve it on");
}
