mod frames;
mod fuzz;
mod strangers;

use super::*;
use crate::tests::*;
use crabtalk_proto::{
    GetConfig, HelloMsg, Ping, SendMsg, SendResponse, StreamEvent, StreamMsg, StreamStart,
    WelcomeMsg, stream_event,
};
use std::sync::Arc;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A connection over a real socket pair, with its loop running.
struct Fixture {
    client: UnixStream,
    events: mpsc::Sender<StreamEvent>,
    server: Scripted,
    shutdown: CancellationToken,
    running: JoinSet<Result<(), Ended>>,
}

impl Fixture {
    fn new() -> Self {
        let (events, server) = Scripted::new();
        let (client, ours) = UnixStream::pair().expect("a pair");
        let (read, write) = ours.into_split();
        let shutdown = CancellationToken::new();
        let mut running = JoinSet::new();
        let place = ConnectionSlot::uncounted();
        running.spawn(run(server.clone(), read, write, place, shutdown.clone()));
        Self {
            client,
            events,
            server,
            shutdown,
            running,
        }
    }

    async fn ask(&mut self, message: impl Into<ClientMessage>) {
        write(&mut self.client, &frames([message.into()])).await;
    }

    async fn next(&mut self) -> String {
        next(&mut self.client).await
    }

    async fn ended(&mut self) -> Result<(), Ended> {
        self.running
            .join_next()
            .await
            .expect("one task")
            .expect("no panic")
    }
}

#[tokio::test]
async fn requests_are_answered_in_order() {
    let mut fixture = Fixture::new();
    let requests = [send("a"), Ping {}.into(), unknown_agent(), send("b")];
    write(&mut fixture.client, &frames(requests)).await;
    assert_eq!(fixture.next().await, "a");
    assert_eq!(fixture.next().await, "pong");
    assert_eq!(fixture.next().await, "501: daemon 9.9.9 has no `get_agent`");
    assert_eq!(fixture.next().await, "b");
    drop(fixture.client);
    fixture
        .running
        .join_next()
        .await
        .expect("ends")
        .expect("no panic")
        .expect("clean");
}

#[tokio::test]
async fn next_request_waits_for_the_end_of_the_reply() {
    let mut fixture = Fixture::new();
    fixture.ask(StreamMsg::default()).await;
    fixture.ask(Ping {}).await;
    fixture.events.send(chunk("one")).await.expect("open");
    assert_eq!(fixture.next().await, "one");
    assert_eq!(*fixture.server.pings.lock().unwrap(), 0);
    fixture.events.send(end()).await.expect("open");
    let (closed, _) = mpsc::channel(1);
    drop(std::mem::replace(&mut fixture.events, closed));
    assert_eq!(fixture.next().await, "end 0");
    assert_eq!(fixture.next().await, "pong");
}

#[tokio::test]
async fn closed_client_drops_its_reply() {
    let mut fixture = Fixture::new();
    fixture.ask(StreamMsg::default()).await;
    fixture.events.send(chunk("one")).await.expect("open");
    assert_eq!(fixture.next().await, "one");
    drop(fixture.client);
    fixture.events.closed().await;
    let ended = fixture
        .running
        .join_next()
        .await
        .expect("ends")
        .expect("no panic");
    assert!(matches!(ended, Err(Ended::Gone)), "{ended:?}");
}

#[tokio::test]
async fn flood_during_a_stream_is_not_read() {
    let mut fixture = Fixture::new();
    fixture.ask(StreamMsg::default()).await;
    let flood = frames(std::iter::repeat_with(|| Ping {}.into()).take(500_000));
    // Socket pairs buffer a few hundred KiB; the rest must stay unwritten.
    let written = tokio::select! {
        written = fixture.client.write_all(&flood) => written.map(|()| "all"),
        () = async {
            fixture.events.send(chunk("one")).await.expect("open");
            while fixture.events.capacity() < 64 { tokio::task::yield_now().await; }
            for _ in 0..10_000 { tokio::task::yield_now().await; }
        } => Ok("part"),
    };
    assert_eq!(written.expect("open"), "part");
    drop(fixture.client);
    // The next write detects that the client has closed.
    while fixture.events.send(chunk("two")).await.is_ok() {}
}

#[tokio::test]
async fn request_of_a_closed_client_is_begun() {
    let mut fixture = Fixture::new();
    fixture.ask(Ping {}).await;
    drop(fixture.client);
    let _ = fixture
        .running
        .join_next()
        .await
        .expect("ends")
        .expect("no panic");
    assert_eq!(*fixture.server.pings.lock().unwrap(), 1);
}

#[tokio::test]
async fn reply_is_not_pulled_beyond_the_buffer() {
    let mut fixture = Fixture::new();
    fixture.ask(StreamMsg::default()).await;
    let text = "x".repeat(32 * 1024);
    let mut taken = 0;
    // Ends when the channel stays full, because the connection polls no more events.
    let stuck = async |events: &mpsc::Sender<StreamEvent>| {
        for _ in 0..10_000 {
            if events.capacity() > 0 {
                return false;
            }
            tokio::task::yield_now().await;
        }
        true
    };
    while !stuck(&fixture.events).await {
        fixture.events.try_send(chunk(&*text)).expect("room");
        taken += text.len();
        assert!(taken < 8 * 1024 * 1024, "the reply is pulled without bound");
    }
    assert_eq!(fixture.next().await, text);
}

#[tokio::test]
async fn shutdown_closes_idle_and_drains_busy_connections() {
    let mut idle = Fixture::new();
    idle.shutdown.cancel();
    idle.ended().await.expect("clean");

    let mut busy = Fixture::new();
    busy.ask(StreamMsg::default()).await;
    busy.ask(Ping {}).await;
    busy.events.send(chunk("one")).await.expect("open");
    assert_eq!(busy.next().await, "one");
    busy.shutdown.cancel();
    busy.events.send(end()).await.expect("still drains");
    let (closed, _) = mpsc::channel(1);
    drop(std::mem::replace(&mut busy.events, closed));
    assert_eq!(busy.next().await, "end 0");
    assert_eq!(
        busy.next().await,
        "503: the daemon is shutting down; try again later"
    );
    assert_eq!(busy.next().await, "closed");
    busy.ended().await.expect("clean");
}
