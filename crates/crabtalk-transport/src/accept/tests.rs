use super::*;
use crate::tests::*;
use crabtalk_proto::{Ping, ReloadMsg, SubscribeEvents};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

struct Fixture {
    connect: mpsc::Sender<io::Result<DuplexStream>>,
    shutdown: CancellationToken,
    serving: JoinSet<()>,
}

impl Fixture {
    fn new() -> Self {
        Self::among(Crowd::new(64))
    }

    fn among(crowd: Crowd) -> Self {
        Self::of(crowd, |()| Ok(Scripted::new().1))
    }

    fn of(crowd: Crowd, session: impl Fn(()) -> Result<Scripted, Status> + Send + 'static) -> Self {
        let (connect, connections) = mpsc::channel(64);
        let shutdown = CancellationToken::new();
        let mut serving = JoinSet::new();
        serving.spawn(serve(
            InMemory(connections),
            crowd,
            session,
            shutdown.clone(),
        ));
        Self {
            connect,
            shutdown,
            serving,
        }
    }

    async fn connect(&self) -> DuplexStream {
        let (client, ours) = tokio::io::duplex(4096);
        self.connect.send(Ok(ours)).await.expect("serving");
        client
    }

    async fn ping(&self) -> (DuplexStream, String) {
        let mut client = self.connect().await;
        let _ = client.write_all(&frames([Ping {}.into()])).await;
        let answer = next(&mut client).await;
        (client, answer)
    }

    async fn stopped(&mut self) {
        self.serving
            .join_next()
            .await
            .expect("one task")
            .expect("no panic");
    }
}

#[tokio::test]
async fn connections_are_served_side_by_side() {
    let fixture = Fixture::new();
    let mut silent = fixture.connect().await;
    write(&mut silent, &frames([SubscribeEvents::default().into()])).await;
    assert_eq!(fixture.ping().await.1, "pong");
    assert_eq!(fixture.ping().await.1, "pong");
}

#[tokio::test]
async fn connection_beyond_the_limit_gets_429() {
    let fixture = Fixture::among(Crowd::new(2));
    let (first, answer) = fixture.ping().await;
    assert_eq!(answer, "pong");
    let (_second, _) = fixture.ping().await;
    let mut third = fixture.connect().await;
    let answer = next(&mut third).await;
    assert!(
        answer.starts_with("429: the daemon has 2 open connections"),
        "{answer}"
    );
    assert_eq!(next(&mut third).await, "closed");
    drop(first);
    // The place is free once the task has ended.
    while fixture.ping().await.1 != "pong" {}
}

#[tokio::test]
async fn refused_peer_gets_the_reason() {
    let fixture = Fixture::of(Crowd::new(64), |()| Err(Status::forbidden("not you")));
    let mut client = fixture.connect().await;
    assert_eq!(next(&mut client).await, "403: not you");
    assert_eq!(next(&mut client).await, "closed");
}

#[tokio::test(start_paused = true)]
async fn accept_errors_back_off() {
    let fixture = Fixture::new();
    let began = tokio::time::Instant::now();
    for _ in 0..5 {
        fixture
            .connect
            .send(Err(io::Error::other("no files left")))
            .await
            .expect("serving");
    }
    assert_eq!(fixture.ping().await.1, "pong");
    // 10 + 20 + 40 + 80 + 160 ms.
    assert_eq!(began.elapsed().as_millis() / 10, 31);
}

#[tokio::test]
async fn panic_closes_only_its_connection() {
    let fixture = Fixture::new();
    let mut client = fixture.connect().await;
    write(&mut client, &frames([ReloadMsg {}.into()])).await;
    assert_eq!(next(&mut client).await, "closed");
    assert_eq!(fixture.ping().await.1, "pong");
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_replies_up_to_its_deadline() {
    let mut fixture = Fixture::new();
    let (_idle, _) = fixture.ping().await;
    let mut hanging = fixture.connect().await;
    write(&mut hanging, &frames([Ping {}.into(), send("hang")])).await;
    assert_eq!(next(&mut hanging).await, "pong");
    let began = tokio::time::Instant::now();
    fixture.shutdown.cancel();
    fixture.stopped().await;
    assert_eq!(began.elapsed().as_secs(), DRAIN_TIME.as_secs());
    assert_eq!(next(&mut hanging).await, "closed");
}

#[tokio::test(start_paused = true)]
async fn shutdown_of_idle_connections_takes_no_time() {
    let mut fixture = Fixture::new();
    let (mut idle, _) = fixture.ping().await;
    let began = tokio::time::Instant::now();
    fixture.shutdown.cancel();
    fixture.stopped().await;
    assert!(began.elapsed().is_zero());
    assert_eq!(next(&mut idle).await, "closed");
}

/// Two listeners share one crowd, like a socket and a port.
#[tokio::test(start_paused = true)]
async fn listeners_share_the_limit() {
    let crowd = Crowd::new(2);
    let one = Fixture::among(crowd.clone());
    let other = Fixture::among(crowd.clone());
    let (first, answer) = one.ping().await;
    assert_eq!(answer, "pong");
    let (_second, answer) = other.ping().await;
    assert_eq!(answer, "pong");
    assert_eq!(crowd.open(), 2);
    for listener in [&one, &other] {
        let refused = next(&mut listener.connect().await).await;
        assert!(refused.starts_with("429"), "{refused}");
    }
    drop(first);
    // Wait until the loop notices the close.
    while crowd.open() == 2 {
        tokio::task::yield_now().await;
    }
    let (_third, answer) = other.ping().await;
    assert_eq!(answer, "pong");
}
