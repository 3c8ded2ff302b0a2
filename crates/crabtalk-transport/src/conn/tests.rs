mod fuzz;

use super::*;
use crate::testing::*;
use crabtalk_proto::{
    GetConfig, HelloMsg, Ping, SendMsg, SendResponse, StreamMsg, StreamStart, SubscribeEvents,
    WelcomeMsg,
};
use futures_util::FutureExt;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

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
        let place = Place::uncounted();
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
async fn the_next_request_waits_for_the_end_of_the_reply() {
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
async fn a_client_that_closes_drops_its_silent_reply_at_once() {
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
async fn a_half_closed_client_gets_its_answer() {
    let mut fixture = Fixture::new();
    fixture.ask(StreamMsg::default()).await;
    fixture.client.shutdown().await.expect("half closes");
    for text in ["one", "two"] {
        fixture.events.send(chunk(text)).await.expect("open");
        assert_eq!(fixture.next().await, text);
    }
    fixture.events.send(end()).await.expect("open");
    let (closed, _) = mpsc::channel(1);
    drop(std::mem::replace(&mut fixture.events, closed));
    assert_eq!(fixture.next().await, "end 0");
    assert_eq!(fixture.next().await, "closed");
    fixture.ended().await.expect("clean");
}

#[tokio::test]
async fn a_half_closed_client_that_then_closes_drops_its_reply() {
    let mut fixture = Fixture::new();
    fixture.ask(StreamMsg::default()).await;
    fixture.client.shutdown().await.expect("half closes");
    fixture.events.send(chunk("one")).await.expect("open");
    assert_eq!(fixture.next().await, "one");
    drop(fixture.client);
    fixture.events.closed().await;
}

#[tokio::test]
async fn a_client_that_floods_while_streaming_is_read_no_further_yet_noticed() {
    let mut fixture = Fixture::new();
    fixture.ask(StreamMsg::default()).await;
    let flood = frames(std::iter::repeat_with(|| Ping {}.into()).take(500_000));
    // Pairs of sockets hold a few hundred KiB; the rest must stay unwritten.
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
    fixture.events.closed().await;
}

#[tokio::test]
async fn a_request_is_begun_even_if_its_client_leaves_at_once() {
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
async fn a_client_that_does_not_read_bounds_what_is_pulled() {
    let mut fixture = Fixture::new();
    fixture.ask(StreamMsg::default()).await;
    let text = "x".repeat(32 * 1024);
    let mut taken = 0;
    // Ends when the channel stays full: the connection pulls no more.
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
        assert!(
            taken < 8 * 1024 * 1024,
            "a client that reads nothing is served on and on"
        );
    }
    assert_eq!(fixture.next().await, text);
}

#[tokio::test]
async fn a_malformed_frame_is_answered_and_the_connection_lives() {
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
async fn a_frame_above_the_limit_is_answered_and_ends_the_connection() {
    let mut fixture = Fixture::new();
    write(&mut fixture.client, &[1, 0, 0, 1, 0x0a]).await;
    assert_eq!(
        fixture.next().await,
        "413: a frame of 16777217 bytes is above the limit of 16777216 bytes"
    );
    assert_eq!(fixture.next().await, "closed");
    let ended = fixture.ended().await;
    assert!(
        matches!(ended, Err(Ended::Frame(FrameError::TooLarge(_)))),
        "{ended:?}"
    );
}

#[tokio::test]
async fn the_end_in_a_length_is_clean_and_in_a_payload_is_an_error() {
    for (sent, error) in [
        (&[][..], None),
        (&[0, 0, 0][..], None),
        (
            &[0, 0, 0, 9, 1, 2][..],
            Some("the connection ended within a frame: 9 bytes were announced, 2 came"),
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
async fn an_answer_above_the_limit_is_replaced() {
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
async fn a_run_with_an_event_above_the_limit_still_ends_with_an_end() {
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

#[tokio::test]
async fn shutdown_closes_an_idle_connection_and_refuses_what_comes_after_a_reply() {
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

/// Notes what every write carries.
#[derive(Clone, Default)]
struct Writes(Arc<Mutex<Vec<usize>>>);

impl AsyncWrite for Writes {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, b: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().unwrap().push(b.len());
        Poll::Ready(Ok(b.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn chunks_that_come_one_at_a_time_share_writes() {
    // Room for one, as the body of an HTTP response hands them over.
    let (events, server) = Scripted::with_capacity(1);
    let (mut client, ours) = tokio::io::duplex(1024);
    let (read, _write) = tokio::io::split(ours);
    let writes = Writes::default();
    let mut running = JoinSet::new();
    running.spawn(run(
        server,
        read,
        writes.clone(),
        Place::uncounted(),
        CancellationToken::new(),
    ));
    running.spawn(async move {
        for _ in 0..20 {
            events.send(chunk("a")).await.expect("open");
        }
        Ok(())
    });
    write(&mut client, &frames([StreamMsg::default().into()])).await;
    while writes.0.lock().unwrap().iter().sum::<usize>() < 20 * 11 {
        tokio::task::yield_now().await;
    }
    let writes = writes.0.lock().unwrap().len();
    assert!(writes <= 11, "{writes} writes for 20 chunks");
}

#[tokio::test]
async fn a_backlog_leaves_in_writes_of_the_buffers_size() {
    let (events, server) = Scripted::new();
    for _ in 0..64 {
        events.try_send(chunk("x".repeat(10_000))).expect("room");
    }
    drop(events);
    let (mut client, ours) = tokio::io::duplex(1024);
    let (read, _write) = tokio::io::split(ours);
    let writes = Writes::default();
    let mut running = JoinSet::new();
    running.spawn(run(
        server,
        read,
        writes.clone(),
        Place::uncounted(),
        CancellationToken::new(),
    ));
    write(&mut client, &frames([StreamMsg::default().into()])).await;
    while writes.0.lock().unwrap().iter().sum::<usize>() < 64 * 10_000 {
        tokio::task::yield_now().await;
    }
    let writes = writes.0.lock().unwrap();
    assert!(writes.len() <= 10, "{writes:?}");
    assert!(
        writes.iter().all(|bytes| *bytes < WRITE_BUFFER + 16 * 1024),
        "{writes:?}"
    );
}

#[tokio::test]
async fn an_idle_connection_gives_its_memory_back() {
    let (_, server) = Scripted::new();
    let (client, ours) = tokio::io::duplex(1024 * 1024);
    let (read, _write) = tokio::io::split(ours);
    let mut connection = Connection::new(read, Writes::default(), Place::uncounted());
    let (_read, mut client) = tokio::io::split(client);
    write(&mut client, &frames([send(&"x".repeat(500_000))])).await;
    let token = CancellationToken::new();
    let mut cancelled = pin!(token.cancelled());
    let request = poll_fn(|cx| connection.poll_next(cancelled.as_mut(), cx)).await;
    let Ok(Next::Request(request)) = request else {
        panic!("a request")
    };
    connection
        .answer(Arc::new(server).dispatch(*request))
        .await
        .expect("answered");
    connection.release_buffers();
    let held = connection.input.capacity() + connection.output.capacity();
    assert!(held <= 2 * IDLE_BUFFER, "{held} bytes");
}

#[tokio::test]
async fn a_connection_is_a_small_task() {
    let (_, server) = Scripted::new();
    let (_client, ours) = UnixStream::pair().expect("a pair");
    let (read, write) = ours.into_split();
    let task = run(
        server,
        read,
        write,
        Place::uncounted(),
        CancellationToken::new(),
    );
    let size = std::mem::size_of_val(&task);
    assert!(size + 2 * IDLE_BUFFER < 4096, "{size} bytes");
}

/// A connection in memory, on the paused clock.
fn in_memory() -> (
    tokio::io::DuplexStream,
    mpsc::Sender<StreamEvent>,
    JoinSet<Result<(), Ended>>,
) {
    let (events, server) = Scripted::new();
    let (client, ours) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(ours);
    let mut running = JoinSet::new();
    let place = Place::uncounted();
    running.spawn(run(server, read, write, place, CancellationToken::new()));
    (client, events, running)
}

#[tokio::test(start_paused = true)]
async fn an_hour_without_a_byte_ends_a_connection() {
    let (mut client, _events, mut running) = in_memory();
    write(&mut client, &frames([Ping {}.into()])).await;
    assert_eq!(next(&mut client).await, "pong");
    let almost = IDLE_TIME - Duration::from_secs(1);
    tokio::time::sleep(almost).await;
    // Part of a frame is a sign of life.
    write(&mut client, &frames([Ping {}.into()])[..2]).await;
    tokio::time::sleep(almost).await;
    write(&mut client, &frames([Ping {}.into()])[2..]).await;
    assert_eq!(next(&mut client).await, "pong");
    let answered = Instant::now();
    assert_eq!(next(&mut client).await, "closed");
    assert!(answered.elapsed().abs_diff(IDLE_TIME) < Duration::from_secs(1));
    running
        .join_next()
        .await
        .expect("one")
        .expect("no panic")
        .expect("clean");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_never_idle() {
    let (mut client, events, _running) = in_memory();
    write(&mut client, &frames([StreamMsg::default().into()])).await;
    events.send(chunk("one")).await.expect("open");
    assert_eq!(next(&mut client).await, "one");
    tokio::time::sleep(24 * IDLE_TIME).await;
    events.send(end()).await.expect("open");
    assert_eq!(next(&mut client).await, "end 0");
    drop(events);
    // The hour begins when the stream has ended.
    tokio::time::sleep(IDLE_TIME - Duration::from_secs(1)).await;
    write(&mut client, &frames([Ping {}.into()])).await;
    assert_eq!(next(&mut client).await, "pong");
}

/// Connections that one process has open, as the accept loop serves them.
fn crowded(
    crowd: &crate::crowd::Crowd,
    source: i32,
    running: &mut JoinSet<Result<(), Ended>>,
) -> UnixStream {
    let (client, ours) = UnixStream::pair().expect("a pair");
    let (read, write) = ours.into_split();
    let source = crate::Source::Process(source);
    let (place, _) = crowd.enter(Some(source)).expect("a place");
    let token = CancellationToken::new();
    running.spawn(run(Scripted::new().1, read, write, place, token));
    client
}

#[tokio::test]
async fn frames_that_are_not_complete_cannot_take_all_memory() {
    let crowd = crate::Crowd::default();
    let mut running = JoinSet::new();
    let almost = frames([send(&"x".repeat(15 << 20))]);
    let almost = &almost[..almost.len() - 1];
    let mut held = Vec::new();
    let refused = loop {
        let mut client = crowded(&crowd, 1, &mut running);
        if client.write_all(almost).await.is_err() || held.len() == 3 {
            break client;
        }
        held.push(client);
        assert!(held.len() <= 3, "more than the budget was taken");
    };
    let mut refused = refused;
    let answer = next(&mut refused).await;
    assert!(
        answer.starts_with("503: too many large messages"),
        "{answer}"
    );
    // Neither another process nor what is small is harmed.
    let mut other = crowded(&crowd, 2, &mut running);
    write(&mut other, &frames([send(&"y".repeat(15 << 20))])).await;
    assert_eq!(next(&mut other).await.len(), 15 << 20);
    let mut small = crowded(&crowd, 1, &mut running);
    write(&mut small, &frames([Ping {}.into()])).await;
    assert_eq!(next(&mut small).await, "pong");
    // What was held is given back with the connection that held it.
    drop(held);
    for _ in 0..4 {
        running.join_next().await;
    }
    let mut again = crowded(&crowd, 1, &mut running);
    write(&mut again, &frames([send(&"z".repeat(15 << 20))])).await;
    assert_eq!(next(&mut again).await.len(), 15 << 20);
}

#[test]
fn a_subscription_is_dropped_with_its_client() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let mut fixture = Fixture::new();
        fixture.ask(SubscribeEvents::default()).await;
        tokio::task::yield_now().await;
        assert!(fixture.running.join_next().now_or_never().is_none());
        drop(fixture.client);
        let ended = fixture
            .running
            .join_next()
            .await
            .expect("ends")
            .expect("no panic");
        assert!(matches!(ended, Err(Ended::Gone)), "{ended:?}");
    });
}

/// Takes one token, and anything after that.
#[derive(Default)]
struct Guarded {
    known: Arc<std::sync::atomic::AtomicBool>,
}

impl Guarded {
    const TOKEN: &str = "secret";
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
        assert_eq!(self.role(), Role::Talk, "nothing is done for a stranger");
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

/// A connection that asks who it is.
fn guarded() -> (DuplexStream, JoinSet<Result<(), Ended>>) {
    let (client, ours) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(ours);
    let mut running = JoinSet::new();
    let token = CancellationToken::new();
    let server = Guarded::default();
    running.spawn(run(server, read, write, Place::uncounted(), token));
    (client, running)
}

const LATE: &str = "401: nobody said within 5 s who this is; begin with `hello` and a token";

#[tokio::test(start_paused = true)]
async fn who_does_not_say_who_it_is_is_told_and_closed() {
    let began = Instant::now();
    let (mut client, mut running) = guarded();
    assert_eq!(next(&mut client).await, LATE);
    assert_eq!(next(&mut client).await, "closed");
    assert_eq!(began.elapsed(), HANDSHAKE_TIME);
    let ended = running.join_next().await.expect("one").expect("no panic");
    assert!(matches!(ended, Err(Ended::Late)), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stranger_gains_no_time_by_pings_and_wrong_tokens() {
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
async fn a_stranger_is_held_to_small_frames_and_little_else() {
    let (mut client, _running) = guarded();
    write(&mut client, &frames([send("hi")])).await;
    let refused = next(&mut client).await;
    assert!(
        refused.starts_with("403: `send` needs the role talk"),
        "{refused}"
    );
    // Its length is enough: not a byte of it is waited for.
    write(&mut client, &4097_u32.to_be_bytes()).await;
    let refused = next(&mut client).await;
    assert_eq!(
        refused,
        "413: a frame of 4097 bytes is above the limit of 4096 bytes"
    );
    assert_eq!(next(&mut client).await, "closed");
}

#[tokio::test(start_paused = true)]
async fn who_has_said_who_it_is_has_all_the_time_and_room() {
    let (mut client, _running) = guarded();
    // What follows at once counts as said by somebody known.
    let both = frames([hello("secret"), send(&"x".repeat(10_000))]);
    write(&mut client, &both).await;
    let welcome = next(&mut client).await;
    assert!(welcome.starts_with("Welcome"), "{welcome}");
    assert_eq!(next(&mut client).await, "10000 bytes");
    tokio::time::sleep(HANDSHAKE_TIME * 10).await;
    write(&mut client, &frames([Ping {}.into()])).await;
    assert_eq!(next(&mut client).await, "pong");
}

/// The owner's socket asks for nothing.
#[tokio::test(start_paused = true)]
async fn a_listener_that_does_not_ask_waits() {
    let mut fixture = Fixture::new();
    tokio::time::sleep(HANDSHAKE_TIME * 10).await;
    write(&mut fixture.client, &frames([send(&"x".repeat(10_000))])).await;
    assert_eq!(next(&mut fixture.client).await.len(), 10_000);
}

/// Says who it is at once, and may be cut off.
struct Cuttable(CancellationToken, Arc<Scripted>);

impl Server for Cuttable {
    fn version(&self) -> &str {
        VERSION
    }

    fn role(&self) -> Role {
        Role::Admin
    }

    async fn ping(&self, _: Ping) -> Result<(), Status> {
        Ok(())
    }

    fn stream(
        self: Arc<Self>,
        request: StreamMsg,
    ) -> impl Stream<Item = Result<StreamEvent, Status>> + Send + 'static {
        Arc::clone(&self.1).stream(request)
    }

    fn ended(&self) -> impl Future<Output = Status> + Send + 'static {
        let cut = self.0.clone();
        async move {
            cut.cancelled().await;
            Status::unauthorized("the token was removed")
        }
    }
}

#[tokio::test]
async fn who_is_cut_off_is_told_and_loses_its_stream_at_once() {
    for streaming in [false, true] {
        let (events, server) = Scripted::new();
        let cut = CancellationToken::new();
        let (mut client, ours) = UnixStream::pair().expect("a pair");
        let (read, write_half) = ours.into_split();
        let mut running = JoinSet::new();
        let server = Cuttable(cut.clone(), Arc::new(server));
        running.spawn(run(
            server,
            read,
            write_half,
            Place::uncounted(),
            CancellationToken::new(),
        ));
        if streaming {
            write(&mut client, &frames([StreamMsg::default().into()])).await;
            events.send(chunk("one")).await.expect("open");
            assert_eq!(next(&mut client).await, "one");
        } else {
            write(&mut client, &frames([Ping {}.into()])).await;
            assert_eq!(next(&mut client).await, "pong");
        }
        cut.cancel();
        assert_eq!(next(&mut client).await, "401: the token was removed");
        assert_eq!(next(&mut client).await, "closed");
        let ended = running.join_next().await.expect("one").expect("no panic");
        assert!(matches!(ended, Err(Ended::Cut(_))), "{ended:?}");
        // Nobody reads the stream any more.
        if streaming {
            events.closed().await;
        }
    }
}
