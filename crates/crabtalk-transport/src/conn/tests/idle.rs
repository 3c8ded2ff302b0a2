//! Connections on which nothing comes, and frames that never end.

use super::*;

/// What is promised, whatever the limit is called.
const HOUR: Duration = Duration::from_secs(60 * 60);

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
    let almost = HOUR - Duration::from_secs(1);
    tokio::time::sleep(almost).await;
    // Part of a frame is a sign of life.
    write(&mut client, &frames([Ping {}.into()])[..2]).await;
    tokio::time::sleep(almost).await;
    write(&mut client, &frames([Ping {}.into()])[2..]).await;
    assert_eq!(next(&mut client).await, "pong");
    let answered = Instant::now();
    assert_eq!(next(&mut client).await, "closed");
    assert!(answered.elapsed().abs_diff(HOUR) < Duration::from_secs(1));
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
    tokio::time::sleep(24 * HOUR).await;
    events.send(end()).await.expect("open");
    assert_eq!(next(&mut client).await, "end 0");
    drop(events);
    // The hour begins when the stream has ended.
    tokio::time::sleep(HOUR - Duration::from_secs(1)).await;
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
    let place = crowd.enter(Some(source)).expect("a place");
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
