use super::*;
use futures_util::FutureExt;
use serde_json::{Value, json};

/// A server that always has something to say, and may take nothing.
struct Talker {
    says: Box<dyn FnMut() -> Value + Send>,
    takes: bool,
}

impl Transport<RoleClient> for Talker {
    type Error = std::io::Error;

    fn send(
        &mut self,
        _: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let takes = self.takes;
        async move {
            if takes {
                return Ok(());
            }
            std::future::pending().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        tokio::task::yield_now().await;
        Some(serde_json::from_value((self.says)()).expect("a message"))
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

fn asking(takes: bool) -> Talker {
    let mut at = 0;
    let says = Box::new(move || {
        at += 1;
        json!({"jsonrpc": "2.0", "id": at, "method": "ping"})
    });
    Talker { says, takes }
}

fn message(text: Value) -> ClientJsonRpcMessage {
    serde_json::from_value(text).expect("a message")
}

fn answer(id: u64) -> ClientJsonRpcMessage {
    message(json!({"jsonrpc": "2.0", "id": id, "result": {}}))
}

fn patient() -> Stuck {
    Stuck {
        after: Duration::from_secs(10),
        tell: CancellationToken::new(),
    }
}

/// Reads for as long as something may be read.
async fn read_all(transport: &mut Bounded<Talker>) -> usize {
    let mut count = 0;
    let long = Duration::from_secs(3600);
    while tokio::time::timeout(long, transport.receive())
        .await
        .is_ok()
    {
        count += 1;
    }
    count
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_while_too_many_questions_have_no_answer() {
    let mut transport = Bounded::pipes(asking(true), patient());
    assert_eq!(read_all(&mut transport).await, MAX_ASKED);
    assert_eq!(read_all(&mut transport).await, 0);
    transport.send(answer(3)).await.expect("it is taken");
    transport.send(answer(4)).await.expect("it is taken");
    assert_eq!(read_all(&mut transport).await, 2);
    // An answer that nobody sends any more makes room as well.
    drop(transport.send(answer(5)));
    assert_eq!(read_all(&mut transport).await, 1);
    // And one to what was never asked makes none.
    transport.send(answer(5)).await.expect("it is taken");
    assert_eq!(read_all(&mut transport).await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_takes_back_is_no_question_any_more() {
    let mut at = 0;
    let says = Box::new(move || {
        at += 1;
        let id = at / 2;
        match at % 2 {
            0 => json!({"jsonrpc": "2.0", "id": id, "method": "ping"}),
            _ => {
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            }
        }
    });
    let mut transport = Bounded::pipes(Talker { says, takes: true }, patient());
    for _ in 0..MAX_ASKED * 4 {
        assert!(transport.receive().await.is_some());
    }
}

fn request() -> ClientJsonRpcMessage {
    message(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
}

#[tokio::test(start_paused = true)]
async fn who_takes_nothing_and_says_nothing_is_stuck_after_its_time() {
    let stuck = patient();
    let mut transport = Bounded::pipes(asking(false), stuck.clone());
    let begun = Instant::now();
    let sending = transport.send(request());
    tokio::select! {
        _ = sending => unreachable!("nobody takes it"),
        () = stuck.tell.cancelled() => {}
    }
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn who_says_something_has_more_time_but_not_for_ever() {
    let stuck = patient();
    let after = stuck.after;
    let says = Box::new(
        || json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}),
    );
    let talker = Talker { says, takes: false };
    let mut transport = Bounded::pipes(talker, stuck.clone());
    let begun = Instant::now();
    let mut sending = Box::pin(transport.send(request()));
    while !stuck.tell.is_cancelled() {
        assert!(sending.as_mut().now_or_never().is_none());
        assert!(transport.receive().await.is_some());
        tokio::time::advance(Duration::from_secs(7)).await;
        tokio::task::yield_now().await;
    }
    let took = begun.elapsed();
    assert!(took >= after * MAX_TURNS, "{took:?}");
    assert!(took <= after * (MAX_TURNS + 2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn who_takes_what_is_sent_is_never_stuck() {
    let stuck = patient();
    let mut transport = Bounded::pipes(asking(true), stuck.clone());
    transport.send(request()).await.expect("it is taken");
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert!(!stuck.tell.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn over_http_whoever_reads_events_waits_and_nobody_misses_an_answer() {
    let state = State::new();
    let mut transport = Bounded::http(asking(true), Arc::clone(&state));
    for _ in 0..MAX_ASKED * 2 {
        assert!(transport.receive().await.is_some());
    }
    let (one, other) = (state.room(), state.room());
    let answers = async {
        for id in 1..=MAX_ASKED as u64 + 1 {
            tokio::task::yield_now().await;
            transport.send(answer(id)).await.expect("it is taken");
        }
    };
    tokio::join!(one, other, answers);
}
