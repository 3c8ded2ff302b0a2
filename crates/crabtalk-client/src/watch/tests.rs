use super::*;
use crate::tests::{Fake, cut, stay};
use crabtalk_proto::client_message::Msg;
use futures_util::StreamExt;

fn begins(life: &str, seq: u64, missed: u64) -> AgentEventMsg {
    AgentEventMsg {
        kind: AgentEventKind::Subscribed.into(),
        life: life.into(),
        seq,
        missed,
        ..AgentEventMsg::default()
    }
}

fn event(seq: u64) -> AgentEventMsg {
    AgentEventMsg {
        kind: AgentEventKind::RunStarted.into(),
        seq,
        ..AgentEventMsg::default()
    }
}

/// Describes the first `count` news.
async fn told(watch: &mut Watch, count: usize) -> String {
    let words = watch.take(count).map(|news| match news {
        Ok(WatchNews::Event(event)) => event.seq.to_string(),
        Ok(WatchNews::Lost { .. }) => "LOST".into(),
        Ok(WatchNews::Back { missed }) => format!("BACK {missed}"),
        Ok(WatchNews::Restarted { missed }) => format!("RESTARTED {missed}"),
        Err(error) => error.to_string(),
    });
    words.collect::<Vec<String>>().await.join(" ")
}

#[tokio::test]
async fn watch_resumes_and_detects_a_restart() {
    let mut fake = Fake::turns([
        cut([begins("a", 5, 0), event(6), event(9)]),
        cut([begins("a", 12, 3), event(13)]),
        stay([begins("b", 0, 0), event(1)]),
    ])
    .await;
    let request = SubscribeEvents {
        sender: Some("me".into()),
        ..SubscribeEvents::default()
    };
    let mut watch = fake.client().watch(request);
    assert_eq!(
        told(&mut watch, 8).await,
        "6 9 LOST BACK 3 13 LOST RESTARTED 0 1"
    );
    for (after, life) in [(0, ""), (9, "a"), (13, "a")] {
        let Msg::SubscribeEvents(request) = fake.heard().await else {
            panic!("it subscribes")
        };
        assert_eq!((request.after, request.life.as_str()), (Some(after), life));
        assert_eq!(request.sender.as_deref(), Some("me"));
    }
}

#[tokio::test]
async fn given_position_is_checked() {
    let place = SubscribeEvents {
        after: Some(4),
        life: "a".into(),
        ..SubscribeEvents::default()
    };
    let fake = Fake::turns([stay([begins("a", 4, 0)]), stay([begins("b", 2, 2)])]).await;
    let client = fake.client();
    let same = told(&mut client.watch(place.clone()), 1).await;
    assert_eq!(same, "BACK 0");
    let other = told(&mut client.watch(place), 1).await;
    assert_eq!(other, "RESTARTED 2");
}
