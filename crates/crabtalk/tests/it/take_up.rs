//! Watchers who lost the connection, and take up where they were (WIRE-8).

use crate::rig::{TestEnv, entries, stream_to_end, within};
use crabtalk_proto::{
    AgentEventKind as Kind, AgentEventMsg, AttachMsg, Client, StreamMsg, SubscribeEvents,
    stream_event,
};
use futures_util::StreamExt;
use std::pin::pin;
use tokio::sync::Notify;

fn say(content: &str) -> StreamMsg {
    StreamMsg {
        content: content.into(),
        ..StreamMsg::default()
    }
}

fn after(seq: u64, life: &str) -> SubscribeEvents {
    SubscribeEvents {
        after: Some(seq),
        life: life.into(),
        ..SubscribeEvents::default()
    }
}

/// What a subscription gives up to the end of a run.
async fn to_end(env: &TestEnv, request: SubscribeEvents) -> Vec<AgentEventMsg> {
    to_end_from(env, request, &Notify::new()).await
}

/// The same, where somebody waits for its begin.
async fn to_end_from(
    env: &TestEnv,
    request: SubscribeEvents,
    stands: &Notify,
) -> Vec<AgentEventMsg> {
    let mut connection = env.connect().await;
    let mut events = std::pin::pin!(connection.subscribe_events(request));
    let mut seen = Vec::new();
    within("the end of a run", async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            let is_end = event.kind() == Kind::Done;
            seen.push(event);
            stands.notify_one();
            if is_end {
                return;
            }
        }
    })
    .await;
    seen
}

#[tokio::test]
async fn who_comes_back_gets_what_came_meanwhile_and_who_was_away_too_long_a_number() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let stands = Notify::new();
    let (seen, _) = tokio::join!(to_end_from(&env, after(0, ""), &stands), async {
        within("a subscription", stands.notified()).await;
        stream_to_end(&env, say("one")).await
    });
    assert_eq!((seen[0].kind(), seen[0].seq), (Kind::Subscribed, 0));
    let (life, last) = (seen[0].life.clone(), seen.last().unwrap().seq);
    assert!(!life.is_empty());
    assert!(seen[1..].is_sorted_by(|a, b| a.seq < b.seq));

    // Nobody watches now.
    stream_to_end(&env, say("two")).await;
    let missed = to_end(&env, after(last, &life)).await;
    assert_eq!(missed[0].kind(), Kind::Subscribed);
    assert_eq!((missed[0].seq, missed[0].missed), (last, 0));
    assert_eq!(missed[1].kind(), Kind::RunStarted);
    assert_eq!(missed[1].seq, last + 1);
    let latest = missed.last().unwrap().seq;

    // Another life of the daemon knows nothing of the numbers of the first.
    daemon.terminate().await;
    let _daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let mut events = std::pin::pin!(connection.subscribe_events(after(latest, &life)));
    let begins = within("the beginning", events.next())
        .await
        .unwrap()
        .unwrap();
    assert_eq!((begins.seq, begins.missed), (0, 0));
    assert_ne!(begins.life, life);
}

#[tokio::test]
async fn what_was_not_kept_is_counted() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let life = {
        let mut events = std::pin::pin!(connection.subscribe_events(after(0, "")));
        events.next().await.unwrap().unwrap().life
    };
    drop(connection);
    // More than is kept for all watchers together.
    let words = "word ".repeat(1_500_000);
    for _ in 0..2 {
        stream_to_end(&env, say(&words)).await;
    }
    let mut connection = env.connect().await;
    let mut events = std::pin::pin!(connection.subscribe_events(after(0, &life)));
    let begins = within("the beginning", events.next())
        .await
        .unwrap()
        .unwrap();
    assert!(begins.missed > 0);
    assert_eq!(begins.seq, begins.missed);
    let next = within("the rest", events.next()).await.unwrap().unwrap();
    assert_eq!((next.seq, next.missed), (begins.seq + 1, 0));
}

#[tokio::test]
async fn one_run_is_followed_behind_an_event_also_when_it_is_over() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let events = stream_to_end(&env, say("hello")).await;
    let (first, last) = (&events[0], events.last().unwrap());
    let Some(stream_event::Event::End(end)) = &last.event else {
        panic!("{last:?}")
    };
    assert_eq!(end.run, 1);
    let attach = |run, after| AttachMsg {
        run: Some(run),
        after: Some(after),
        only_run: true,
        ..AttachMsg::default()
    };
    let told = async |request| {
        let mut connection = env.connect().await;
        connection.attach(request).collect::<Vec<_>>().await
    };
    // All of it but its beginning.
    let rest = told(attach(1, first.seq + 1)).await;
    let rest: Vec<_> = rest.into_iter().map(Result::unwrap).collect();
    assert!(rest[0].seq > first.seq + 1 && rest.len() > 2, "{rest:?}");
    assert_eq!(rest.last(), Some(last));
    let none = told(attach(7, 1)).await;
    assert_eq!(none[0].as_ref().unwrap_err().code(), Some(404), "{none:?}");
    // Another daemon knows how it ended, and no more.
    daemon.terminate().await;
    let _daemon = env.daemon().await;
    let rest = told(attach(1, first.seq)).await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    let Some(stream_event::Event::End(again)) = &rest[0].as_ref().unwrap().event else {
        panic!("{rest:?}")
    };
    assert_eq!((again.run, again.code), (1, 0));
    // However many came behind it, and whichever goes on now.
    stream_to_end(&env, say("hello again")).await;
    let mut other = env.connect().await;
    let mut third = pin!(other.stream(say("/slow 60000 for long")));
    loop {
        let event = third.next().await.unwrap().unwrap();
        if matches!(event.event, Some(stream_event::Event::Chunk(_))) {
            break;
        }
    }
    assert_eq!(told(attach(1, first.seq)).await.len(), 1);
    let runs = entries(&env, "", "").await;
    let runs: Vec<u64> = runs.iter().map(|entry| entry.run).collect();
    assert_eq!(runs, [1, 1, 2, 2, 3]);
    let mut bad = attach(1, 1);
    bad.run = None;
    let refused = told(bad).await;
    assert_eq!(refused[0].as_ref().unwrap_err().code(), Some(400));
}
