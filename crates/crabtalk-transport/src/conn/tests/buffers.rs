//! What a connection writes at a time, and what memory it keeps.

use super::*;

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
        writes
            .iter()
            .all(|bytes| *bytes < super::super::reply::WRITE_BUFFER + 16 * 1024),
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
