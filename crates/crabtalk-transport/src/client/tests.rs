use super::*;
use crate::tests::*;
use crabtalk_proto::{GetConfig, Ping, StreamEvent, StreamMsg};
use futures_util::StreamExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

fn pair() -> (Connection, UnixStream) {
    let (client, server) = UnixStream::pair().expect("a pair");
    let (read, write) = client.into_split();
    (Connection::new(read, write), server)
}

/// A client connected to a running server.
fn served() -> (Connection, mpsc::Sender<StreamEvent>, JoinSet<()>) {
    let (client, server) = pair();
    let (events, session) = Scripted::new();
    let mut running = JoinSet::new();
    let (read, write) = server.into_split();
    running.spawn(async move {
        let _ = crate::conn::run(
            session,
            read,
            write,
            crate::crowd::ConnectionSlot::uncounted(),
            CancellationToken::new(),
        )
        .await;
    });
    (client, events, running)
}

#[tokio::test]
async fn requests_and_streams_share_a_connection() {
    let (mut client, events, _running) = served();
    client.ping(Ping {}).await.expect("pong");
    for event in [chunk("a"), chunk("b"), end()] {
        events.send(event).await.expect("open");
    }
    drop(events);
    let texts: Vec<_> = client
        .stream(StreamMsg::default())
        .map(|event| show(event.expect("an event").into()))
        .collect()
        .await;
    assert_eq!(texts, ["a", "b", "end 0"]);
    client.ping(Ping {}).await.expect("pong");
}

#[tokio::test]
async fn refusal_leaves_the_connection_usable() {
    let (mut client, _events, _running) = served();
    let error = client
        .get_config(GetConfig {})
        .await
        .expect_err("too large");
    assert_eq!(error.code(), Some(500));
    client.ping(Ping {}).await.expect("pong");
}

#[tokio::test]
async fn half_read_reply_is_not_the_next_answer() {
    let (mut client, events, _running) = served();
    events.send(chunk("a")).await.expect("open");
    {
        let mut stream = std::pin::pin!(client.stream(StreamMsg::default()));
        stream.next().await.expect("an event").expect("a chunk");
    }
    let error = client.ping(Ping {}).await.expect_err("unfinished");
    assert!(matches!(error, ClientError::Unfinished));
}

#[tokio::test]
async fn dead_daemon_closes_the_connection() {
    let (mut client, server) = pair();
    drop(server);
    let error = client.ping(Ping {}).await.expect_err("gone");
    assert!(
        matches!(error, ClientError::Connection(FrameError::Closed)),
        "{error:?}"
    );

    // The system reports a reset if the request was not read.
    let (mut client, server) = pair();
    let died = async {
        server.readable().await.expect("the request came");
        drop(server);
    };
    let (answer, ()) = tokio::join!(client.ping(Ping {}), died);
    let error = answer.expect_err("gone");
    assert!(
        matches!(error, ClientError::Connection(FrameError::Closed)),
        "{error:?}"
    );
}

#[tokio::test]
async fn refusal_is_read_from_a_closed_connection() {
    let (mut client, mut server) = pair();
    let refusal = ServerMessage::from(crabtalk_proto::Status::too_many("full"));
    let mut frame = bytes::BytesMut::new();
    codec::encode(&refusal, &mut frame).expect("short");
    server.write_all(&frame).await.expect("written");
    drop(server);
    let error = client.ping(Ping {}).await.expect_err("refused");
    assert_eq!(error.code(), Some(429));
}

#[tokio::test]
async fn request_above_the_limit_is_not_sent() {
    let (mut client, _events, _running) = served();
    let content = "x".repeat(codec::MAX_FRAME);
    let request = crabtalk_proto::SendMsg {
        content,
        ..Default::default()
    };
    let error = client.send(request).await.expect_err("too large");
    assert!(matches!(
        error,
        ClientError::Connection(FrameError::TooLarge(_))
    ));
    client.ping(Ping {}).await.expect("pong");
}
