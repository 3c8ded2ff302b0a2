use super::*;
use axum::routing::post;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

/// A gate whose connections end by no time that a test waits for.
fn open(router: axum::Router) -> (SocketAddr, JoinSet<()>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("set");
    let address = listener.local_addr().expect("bound");
    let listener = TcpListener::from_std(listener).expect("a listener");
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut places = Places::new(router, Duration::from_secs(24 * 3600));
        match places.serve(&listener).await {}
    });
    (address, serving)
}

async fn sends(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(text.as_bytes()).await.expect("sent");
    stream
}

async fn answer(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    // One that is cut off has none.
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

const WHOLE: &str = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";

/// What slow senders have sent, in their turn.
const SLOW: [&str; 3] = [
    "",
    "POST / HT",
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nh",
];

#[tokio::test]
async fn however_many_send_slowly_the_next_is_served() {
    let echo = axum::Router::new().route("/", post(|body: String| async { body }));
    let (address, _serving) = open(echo);
    let mut slow = Vec::new();
    for at in 0..MAX_CONNECTIONS * 3 {
        slow.push(sends(address, SLOW[at % SLOW.len()]).await);
        if at % 10 == 0 {
            assert!(answer(sends(address, WHOLE).await).await.ends_with("hi"));
        }
    }
    // The oldest gave way, the latest goes on where it was.
    let mut last = slow.pop().expect("many");
    assert_eq!(answer(slow.swap_remove(0)).await, "");
    last.write_all(b"elloyouu").await.expect("sent");
    assert!(answer(last).await.ends_with("helloyouu"));
}

#[tokio::test]
async fn who_has_sent_all_keeps_its_place() {
    let (go, (came, mut coming)) = (Arc::new(Notify::new()), mpsc::channel(1));
    let waiting = Arc::clone(&go);
    let wait = move |body: String| {
        let (came, go) = (came.clone(), Arc::clone(&waiting));
        async move {
            came.send(()).await.expect("somebody counts");
            go.notified().await;
            body
        }
    };
    let (address, _serving) = open(axum::Router::new().route("/", post(wait)));
    let mut at_work = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        at_work.push(sends(address, WHOLE).await);
        coming.recv().await.expect("it is taken");
    }
    let next = sends(address, WHOLE).await;
    // Each that is let go answers, and makes room for one.
    for done in at_work {
        go.notify_one();
        assert!(answer(done).await.ends_with("hi"));
    }
    coming.recv().await.expect("it is taken");
    go.notify_one();
    assert!(answer(next).await.ends_with("hi"));
}
