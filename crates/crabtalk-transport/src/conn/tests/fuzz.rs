//! Random bytes from an unauthenticated client.

use super::strangers::{Guarded, LATE};
use super::*;
use crabtalk_proto::client_message;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/corpus/handshakes");

/// Longest answer to one request of an unauthenticated client: a peer that sends little
/// must not receive much.
const LONGEST_ANSWER: usize = 1024;

/// Longest connection of an unauthenticated client: the handshake and the reason.
const LONGEST: Duration = Duration::from_secs(6);

/// Whether the bytes contain a Hello with the right token, in a frame of allowed size
/// and after nothing that ends a connection.
fn knows_the_token(bytes: &[u8]) -> bool {
    let mut buffer = BytesMut::from(bytes);
    loop {
        match codec::decode_within::<ClientMessage>(&mut buffer, HANDSHAKE_FRAME) {
            Ok(Some(ClientMessage {
                msg: Some(client_message::Msg::Hello(hello)),
            })) if hello.token == Guarded::TOKEN => return true,
            Ok(Some(_)) | Err(FrameError::Malformed(_)) => {}
            Ok(None) | Err(_) => return false,
        }
    }
}

/// Sends the bytes in two pieces.
async fn write(mut client: impl AsyncWrite + Unpin, bytes: &[u8], cut: usize, close: bool) {
    let (before, after) = bytes.split_at(cut.min(bytes.len()));
    for piece in [before, after] {
        // The write fails if an earlier piece ended the connection.
        let _ = client.write_all(piece).await;
        tokio::task::yield_now().await;
    }
    if close {
        let _ = client.shutdown().await;
    } else {
        std::future::pending().await
    }
}

/// Collects the answers until the connection closes.
async fn answers(mut client: tokio::io::ReadHalf<DuplexStream>) -> Vec<String> {
    let mut answers = Vec::new();
    loop {
        let answer = next(&mut client).await;
        if answer == "closed" {
            return answers;
        }
        answers.push(answer);
    }
}

/// Returns the answers, whether the token was accepted, and how long the connection was
/// open.
fn outcome(bytes: &[u8], cut: usize, close: bool) -> (Vec<String>, bool, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let began = Instant::now();
        let (client, ours) = tokio::io::duplex(64 * 1024);
        let (read, write_half) = tokio::io::split(ours);
        let server = Guarded::default();
        let known = Arc::clone(&server.known);
        let token = CancellationToken::new();
        let running = run(server, read, write_half, ConnectionSlot::uncounted(), token);
        let (client_read, client_write) = tokio::io::split(client);
        let writing = write(client_write, bytes, cut, close);
        let reading = async {
            tokio::select! {
                biased;
                answers = answers(client_read) => answers,
                // Writing ends first; answers end with the connection.
                () = async { writing.await; std::future::pending().await } => unreachable!(),
            }
        };
        let (_, answers) = tokio::join!(running, reading);
        let known = known.load(std::sync::atomic::Ordering::Relaxed);
        (answers, known, began.elapsed())
    })
}

/// Only the token authenticates, every answer is small, splits of the input have no effect, and an
/// unauthenticated client is closed in time.
#[test]
fn fuzz_handshake() {
    crabtalk_testkit::fuzz(CORPUS, |bytes| {
        let knows = knows_the_token(bytes);
        let (said, known, _) = outcome(bytes, 0, true);
        assert_eq!(known, knows, "{said:?}");
        for cut in [1, bytes.len() / 3, bytes.len() / 2] {
            let (again, known, _) = outcome(bytes, cut, true);
            assert_eq!((&again, known), (&said, knows), "cut at {cut}");
        }
        if !known {
            assert!(said.iter().all(|answer| answer.len() < LONGEST_ANSWER));
            let (kept, _, open) = outcome(bytes, 0, false);
            assert!(open <= LONGEST, "{open:?}: {kept:?}");
            let ended = kept
                .last()
                .is_some_and(|answer| answer == LATE || answer.starts_with("413: "));
            assert!(ended, "{kept:?}");
        }
    });
}
