//! Unauthenticated and revoked clients.

use super::*;

/// A server that requires a token.
#[derive(Default)]
pub(super) struct Guarded {
    pub(super) known: Arc<std::sync::atomic::AtomicBool>,
}

impl Guarded {
    pub(super) const TOKEN: &str = "secret";
}

impl Server for Guarded {
    fn version(&self) -> &str {
        "1"
    }

    fn role(&self) -> Role {
        match self.known.load(std::sync::atomic::Ordering::Relaxed) {
            true => Role::Talk,
            false => Role::Stranger,
        }
    }

    async fn hello(&self, request: HelloMsg) -> Result<WelcomeMsg, Status> {
        if request.token != Self::TOKEN {
            return Err(Status::unauthorized("no such token"));
        }
        self.known.store(true, std::sync::atomic::Ordering::Relaxed);
        Ok(WelcomeMsg::default())
    }

    async fn ping(&self, _: Ping) -> Result<(), Status> {
        Ok(())
    }

    async fn send(&self, request: SendMsg) -> Result<SendResponse, Status> {
        assert_eq!(
            self.role(),
            Role::Talk,
            "unauthenticated requests are refused"
        );
        Ok(SendResponse {
            content: format!("{} bytes", request.content.len()),
            ..SendResponse::default()
        })
    }
}

fn hello(token: &str) -> ClientMessage {
    HelloMsg {
        token: token.into(),
        ..HelloMsg::default()
    }
    .into()
}

/// A connection to a server that requires a token.
fn guarded() -> (DuplexStream, JoinSet<Result<(), Ended>>) {
    let (client, ours) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(ours);
    let mut running = JoinSet::new();
    let token = CancellationToken::new();
    let server = Guarded::default();
    running.spawn(run(server, read, write, ConnectionSlot::uncounted(), token));
    (client, running)
}

pub(super) const LATE: &str = "401: not authenticated within 5 s: send `hello` with a token first";

#[tokio::test(start_paused = true)]
async fn silent_client_is_closed_after_the_handshake_time() {
    let began = Instant::now();
    let (mut client, mut running) = guarded();
    assert_eq!(next(&mut client).await, LATE);
    assert_eq!(next(&mut client).await, "closed");
    assert_eq!(began.elapsed(), HANDSHAKE_TIME);
    let ended = running.join_next().await.expect("one").expect("no panic");
    assert!(matches!(ended, Err(Ended::Late)), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn pings_and_wrong_tokens_do_not_extend_the_handshake() {
    let began = Instant::now();
    let (mut client, _running) = guarded();
    let mut answers = Vec::new();
    loop {
        let _ = client
            .write_all(&frames([Ping {}.into(), hello("guess")]))
            .await;
        let answer = next(&mut client).await;
        if answer == LATE {
            break;
        }
        answers.push(answer);
        answers.push(next(&mut client).await);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert_eq!(answers[..2], ["pong", "401: no such token"]);
    assert!(began.elapsed() <= HANDSHAKE_TIME + Duration::from_millis(300));
}

#[tokio::test(start_paused = true)]
async fn unauthenticated_client_may_send_small_frames_only() {
    let (mut client, _running) = guarded();
    write(&mut client, &frames([send("hi")])).await;
    let refused = next(&mut client).await;
    assert!(
        refused.starts_with("403: `send` needs the role talk"),
        "{refused}"
    );
    // The length alone is refused.
    write(&mut client, &4097_u32.to_be_bytes()).await;
    let refused = next(&mut client).await;
    assert_eq!(
        refused,
        "413: a frame of 4097 bytes exceeds the limit of 4096 bytes"
    );
    assert_eq!(next(&mut client).await, "closed");
}

#[tokio::test(start_paused = true)]
async fn authenticated_client_has_no_handshake_limits() {
    let (mut client, _running) = guarded();
    let both = frames([hello("secret"), send(&"x".repeat(10_000))]);
    write(&mut client, &both).await;
    let welcome = next(&mut client).await;
    assert!(welcome.starts_with("Welcome"), "{welcome}");
    assert_eq!(next(&mut client).await, "10000 bytes");
    tokio::time::sleep(HANDSHAKE_TIME * 10).await;
    write(&mut client, &frames([Ping {}.into()])).await;
    assert_eq!(next(&mut client).await, "pong");
}

#[tokio::test(start_paused = true)]
async fn owner_socket_needs_no_handshake() {
    let mut fixture = Fixture::new();
    tokio::time::sleep(HANDSHAKE_TIME * 10).await;
    write(&mut fixture.client, &frames([send(&"x".repeat(10_000))])).await;
    assert_eq!(next(&mut fixture.client).await.len(), 10_000);
}

#[tokio::test]
async fn revoked_client_gets_the_reason_and_loses_its_stream() {
    for streaming in [false, true] {
        let mut fixture = Fixture::new();
        if streaming {
            fixture.ask(StreamMsg::default()).await;
            fixture.events.send(chunk("one")).await.expect("open");
            assert_eq!(fixture.next().await, "one");
        } else {
            fixture.ask(Ping {}).await;
            assert_eq!(fixture.next().await, "pong");
        }
        fixture.server.cut.cancel();
        assert_eq!(fixture.next().await, "401: the token was removed");
        assert_eq!(fixture.next().await, "closed");
        let ended = fixture.ended().await;
        assert!(matches!(ended, Err(Ended::Cut(_))), "{ended:?}");
        if streaming {
            fixture.events.closed().await;
        }
    }
}
