//! Idle connections.

use super::*;

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
async fn connection_is_closed_after_an_idle_hour() {
    let (mut client, _events, mut running) = in_memory();
    write(&mut client, &frames([Ping {}.into()])).await;
    assert_eq!(next(&mut client).await, "pong");
    let almost = HOUR - Duration::from_secs(1);
    tokio::time::sleep(almost).await;
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
async fn stream_is_never_idle() {
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
