//! Frames that are broken, cut, or too large.

use super::*;

#[tokio::test]
async fn malformed_frame_is_answered_and_keeps_the_connection() {
    let mut fixture = Fixture::new();
    write(&mut fixture.client, &[0, 0, 0, 2, 0x0a, 0xff]).await;
    let answer = fixture.next().await;
    assert!(answer.starts_with("400: malformed frame: "), "{answer}");
    write(&mut fixture.client, &[0, 0, 0, 0]).await;
    let answer = fixture.next().await;
    assert!(
        answer.starts_with("400: daemon 9.9.9 does not know"),
        "{answer}"
    );
    fixture.ask(Ping {}).await;
    assert_eq!(fixture.next().await, "pong");
}

#[tokio::test]
async fn frame_above_the_limit_closes_the_connection() {
    let mut fixture = Fixture::new();
    write(&mut fixture.client, &[1, 0, 0, 1, 0x0a]).await;
    assert_eq!(
        fixture.next().await,
        "413: a frame of 16777217 bytes exceeds the limit of 16777216 bytes"
    );
    assert_eq!(fixture.next().await, "closed");
    let ended = fixture.ended().await;
    assert!(
        matches!(ended, Err(Ended::Frame(FrameError::TooLarge(_)))),
        "{ended:?}"
    );
}

#[tokio::test]
async fn end_within_a_payload_is_an_error() {
    for (sent, error) in [
        (&[][..], None),
        (&[0, 0, 0][..], None),
        (
            &[0, 0, 0, 9, 1, 2][..],
            Some("the connection ended within a frame: received 2 of 9 bytes"),
        ),
    ] {
        let mut fixture = Fixture::new();
        write(&mut fixture.client, sent).await;
        drop(fixture.client);
        let ended = fixture
            .running
            .join_next()
            .await
            .expect("ends")
            .expect("no panic");
        assert_eq!(ended.err().map(|error| error.to_string()).as_deref(), error);
    }
}

#[tokio::test]
async fn answer_above_the_limit_is_replaced() {
    let mut fixture = Fixture::new();
    fixture.ask(GetConfig {}).await;
    let answer = fixture.next().await;
    assert!(
        answer.starts_with("500: the reply cannot be sent: a frame of 16777"),
        "{answer}"
    );
    fixture.ask(Ping {}).await;
    assert_eq!(fixture.next().await, "pong");
}

#[tokio::test]
async fn run_with_an_oversized_event_ends_with_an_end() {
    let mut fixture = Fixture::new();
    fixture.ask(StreamMsg::default()).await;
    let start = stream_event::Event::Start(StreamStart::default());
    fixture.events.send(start.into()).await.expect("open");
    fixture
        .events
        .send(chunk("x".repeat(codec::MAX_FRAME)))
        .await
        .expect("open");
    assert!(fixture.next().await.contains("Start"));
    let answer = fixture.next().await;
    assert!(
        answer.starts_with("end 500the reply cannot be sent"),
        "{answer}"
    );
    fixture.events.closed().await;
}
