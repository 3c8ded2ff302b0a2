//! Tests of the follower.

use super::*;
use crabtalk_client::{Endpoint, StreamEnd, StreamMsg, StreamStart};

fn event(event: stream_event::Event) -> StreamEvent {
    StreamEvent {
        event: Some(event),
        ..StreamEvent::default()
    }
}

fn start(run: u64) -> StreamEvent {
    event(stream_event::Event::Start(StreamStart {
        run,
        ..StreamStart::default()
    }))
}

fn end(run: u64) -> StreamEvent {
    event(stream_event::Event::End(StreamEnd {
        run,
        ..StreamEnd::default()
    }))
}

/// A follower whose daemon is nowhere, and what tells it which runs begin.
fn follower() -> (Follower, watch::Sender<News>) {
    let (tell, news) = watch::channel(News::default());
    let client = Client::new(Endpoint::of_home("/nowhere"), "test/1");
    let (_, told) = mpsc::channel(1);
    let seen = Arc::default();
    let names = ("crab".into(), "nexus-CRAB-".into());
    let follower = Follower::new(client, names, Some(told), news, seen);
    (follower, tell)
}

#[test]
fn window_ends_where_the_daemon_compacts() {
    for (window, compact_at, usable_) in [
        (Some(200_000), Some(100_000), Some(100_000)),
        (Some(100_000), Some(100_000), Some(80_000)),
        (Some(200_000), None, Some(200_000)),
        (None, Some(100_000), Some(100_000)),
        (None, None, None),
    ] {
        assert_eq!(usable(window, compact_at), usable_);
    }
}

#[tokio::test]
async fn compaction_within_a_run_is_told() {
    let (mut follower, _tell) = follower();
    let run = Box::new(follower.client.stream(StreamMsg::default()));
    follower.begin("letter".into(), run);
    follower.take(0, start(7));
    for failed in ["", "no model"] {
        let done = crabtalk_client::CompactedEvent {
            failed: failed.into(),
            ..Default::default()
        };
        follower.take(0, event(stream_event::Event::Compacted(done)));
    }
    let told = follower.ready.iter();
    assert_eq!(told.filter(|e| e.what == What::Compacted).count(), 1);
}

fn began(run: u64, request_id: &str) -> News {
    News {
        run,
        request_id: request_id.into(),
        ..News::default()
    }
}

#[tokio::test]
async fn only_runs_of_others_are_attached_to() {
    let (mut follower, tell) = follower();
    let run = Box::new(follower.client.stream(StreamMsg::default()));
    follower.begin("letter".into(), run);
    tell.send(began(7, "nexus-CRAB-letter")).unwrap();
    follower.take_news();
    assert_eq!(follower.runs.len(), 1);
    follower.take(0, start(7));
    follower.take(0, end(7));
    assert_eq!(follower.ready.len(), 3, "{:?}", follower.ready);

    tell.send(began(8, "")).unwrap();
    follower.take_news();
    assert_eq!(follower.runs.len(), 1);
    follower.take(0, start(8));
    follower.take(0, end(8));
    assert_eq!(follower.ready.len(), 5, "{:?}", follower.ready);
    // Late news of the same run.
    follower.take_news();
    assert!(follower.runs.is_empty());
}

#[tokio::test]
async fn run_in_flight_is_followed_unless_it_is_a_letters() {
    for (in_flight, follows) in [
        (None, 0),
        (Some("nexus-CRAB-letter"), 0),
        (Some("other"), 1),
        (Some(""), 1),
    ] {
        let (mut follower, _tell) = follower();
        follower.say_ready(in_flight.map(str::to_owned));
        assert_eq!(follower.runs.len(), follows, "{in_flight:?}");
    }
}

#[tokio::test]
async fn compaction_of_an_idle_conversation_is_reported_once() {
    let (mut follower, tell) = follower();
    tell.send_modify(|news| news.compactions += 1);
    follower.take_news();
    follower.take_news();
    let told = follower.ready.iter();
    assert_eq!(told.filter(|e| e.what == What::Compacted).count(), 1);
}
