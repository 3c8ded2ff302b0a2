//! Two hundred clients connect, leave, stall and misbehave: memory and
//! descriptors do not grow, and other clients are served.

use crate::world::{Chance, Usage, World, setting};
use crabtalk_proto::{
    AttachMsg, Client, GetHistoryMsg, GetStats, ListActiveConversationsMsg, RemoveConversationMsg,
    StreamMsg, SubscribeEvents,
};
use futures_util::StreamExt;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

const SECS: &str = "CRABTALK_SOAK_SECS";
const CLIENTS: &str = "CRABTALK_SOAK_CLIENTS";

/// File for the samples, if set.
const CSV: &str = "CRABTALK_SOAK_CSV";

/// Duration of the test; `cargo xtask soak` takes ten minutes.
const SECS_IN_TESTS: u64 = 8;

const ALL_CLIENTS: u64 = 200;

const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// Turns of a conversation, after which its sender is not used again, so that
/// histories stay short.
const TURNS: u64 = 10;

/// Maximum number of conversations: listing thousands takes memory.
const KEEP: u64 = 200;

/// Allowed growth of memory between the second and the last quarter: measurement noise,
/// which is larger in short runs.
const MAY_GROW_KIB: u64 = 6 * 1024;

/// Time for the daemon to close the connections of gone clients on a busy
/// machine.
const SETTLE: Duration = Duration::from_secs(120);

/// Answers per client before measuring.
const WARM_UP: u64 = 4;

/// Maximum additional time until enough answers were given.
const UNTIL_ANSWERED: Duration = Duration::from_secs(300);

/// Counts conversations and their turns.
#[derive(Default)]
struct Counter {
    turns: AtomicU64,
    answers: AtomicU64,
}

impl Counter {
    fn sender(&self) -> String {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        format!("soak-{}", turn / TURNS)
    }

    /// Whether a sender's conversation is removed.
    fn is_old(&self, sender: &str) -> bool {
        let now = self.turns.load(Ordering::Relaxed) / TURNS;
        let number = sender.strip_prefix("soak-").and_then(|n| n.parse().ok());
        number.is_some_and(|number: u64| number + KEEP < now)
    }
}

/// A model that answers every request with a few words in half a second.
async fn model(listener: TcpListener) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(answer(stream));
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut input = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = input.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
        };
        let head = String::from_utf8_lossy(&input[..end]).to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let whole = end + length.unwrap_or(0);
        while input.len() < whole {
            if stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
        }
        input.drain(..whole);
        stream
            .write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                  transfer-encoding: chunked\r\n\r\n",
            )
            .await?;
        for word in ["Well", ", ", "that ", "is ", "a ", "question", "."] {
            let delta = serde_json::json!({"choices": [{"index": 0, "delta": {"content": word}}]});
            write_event(&mut stream, &delta.to_string()).await?;
            tokio::time::sleep(Duration::from_millis(70)).await;
        }
        write_event(
            &mut stream,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        )
        .await?;
        write_event(&mut stream, "[DONE]").await?;
        stream.write_all(b"0\r\n\r\n").await?;
    }
}

async fn write_event(stream: &mut TcpStream, data: &str) -> std::io::Result<()> {
    let event = format!("data: {data}\n\n");
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    stream.write_all(chunk.as_bytes()).await
}

/// Runs a client with one behaviour after the other.
async fn client(world: Arc<World>, counter: Arc<Counter>, number: u64) {
    let mut chance = Chance::new(number);
    loop {
        match chance.below(8) {
            0 | 1 => ask(&world, &counter, usize::MAX).await,
            2 => ask(&world, &counter, 3).await,
            3 => stall(&world, &counter, &mut chance).await,
            4 => garbage(&world, &mut chance).await,
            5 => watch(&world, &mut chance).await,
            6 => attach(&world, &counter).await,
            _ => look_around(&world, &counter).await,
        }
        tokio::time::sleep(Duration::from_millis(chance.below(300))).await;
    }
}

fn question(counter: &Counter) -> StreamMsg {
    StreamMsg {
        content: "What do you say?".into(),
        sender: Some(counter.sender()),
        ..StreamMsg::default()
    }
}

/// Sends a message, and disconnects after this many events.
async fn ask(world: &World, counter: &Counter, events: usize) {
    let mut connection = world.try_connect().await.expect("it accepts");
    let answer = connection.stream(question(counter)).take(events);
    let answer: Vec<_> = answer.collect().await;
    if events == usize::MAX {
        // The queue of a conversation that another client uses may be full.
        if answer.iter().all(Result::is_ok) {
            counter.answers.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sends messages repeatedly without reading.
async fn stall(world: &World, counter: &Counter, chance: &mut Chance) {
    let stream = UnixStream::connect(world.socket()).await;
    let mut stream = stream.expect("it accepts");
    for _ in 0..3 {
        let mut frame = bytes_of(question(counter).into());
        if chance.below(4) == 0 {
            frame.truncate(frame.len() / 2);
        }
        let _ = stream.write_all(&frame).await;
    }
    tokio::time::sleep(Duration::from_millis(chance.below(3_000))).await;
}

fn bytes_of(message: crabtalk_proto::ClientMessage) -> Vec<u8> {
    let mut frame = Default::default();
    crabtalk_proto::codec::encode(&message, &mut frame).expect("a short message");
    frame.to_vec()
}

/// Sends invalid requests and incomplete frames.
async fn garbage(world: &World, chance: &mut Chance) {
    let stream = UnixStream::connect(world.socket()).await;
    let mut stream = stream.expect("it accepts");
    let length = chance.below(20_000);
    let mut bytes: Vec<u8> = (0..length).map(|_| chance.below(256) as u8).collect();
    if chance.below(2) == 0 {
        // A frame with invalid content, or an incomplete one.
        let declared = (length / 2 + chance.below(1 << 23)) as u32;
        bytes.splice(0..0, declared.to_be_bytes());
    }
    let _ = stream.write_all(&bytes).await;
    tokio::time::sleep(Duration::from_millis(chance.below(1_000))).await;
}

/// Watches all events, without reading for a while.
async fn watch(world: &World, chance: &mut Chance) {
    let mut connection = world.try_connect().await.expect("it accepts");
    let mut events = Box::pin(connection.subscribe_events(SubscribeEvents::default()));
    for _ in 0..3 {
        let _ = tokio::time::timeout(Duration::from_millis(200), events.next()).await;
        tokio::time::sleep(Duration::from_millis(chance.below(1_500))).await;
    }
}

async fn attach(world: &World, counter: &Counter) {
    let mut connection = world.try_connect().await.expect("it accepts");
    let request = AttachMsg {
        sender: counter.sender(),
        ..AttachMsg::default()
    };
    let events: Vec<_> = connection.attach(request).take(20).collect().await;
    drop(events);
}

async fn look_around(world: &World, counter: &Counter) {
    let mut connection = world.try_connect().await.expect("it accepts");
    let all = ListActiveConversationsMsg::default();
    let all = connection.list_active_conversations(all).await.unwrap();
    for old in all.conversations {
        if counter.is_old(&old.sender) {
            let remove = RemoveConversationMsg {
                agent: old.agent,
                sender: old.sender,
            };
            // Another client may have removed it.
            let _ = connection.remove_conversation(remove).await;
        }
    }
    let request = GetHistoryMsg {
        sender: counter.sender(),
        ..GetHistoryMsg::default()
    };
    // The conversation may not exist yet.
    let _ = connection.get_history(request).await;
    connection.get_stats(GetStats::default()).await.unwrap();
}

/// The median of a part of the samples.
fn median(samples: &[(f64, Usage)], of: impl Fn(&Usage) -> u64) -> u64 {
    let mut values: Vec<u64> = samples.iter().map(|(_, usage)| of(usage)).collect();
    values.sort_unstable();
    values[values.len() / 2]
}

fn write_csv(path: &Path, samples: &[(f64, Usage)]) {
    let mut text = String::from("seconds,rss_kib,descriptors,threads\n");
    for (at, usage) in samples {
        let Usage {
            rss_kib,
            threads,
            descriptors,
            ..
        } = usage;
        writeln!(text, "{at:.1},{rss_kib},{descriptors},{threads}").unwrap();
    }
    std::fs::write(path, text).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_come_and_go_leave_nothing_behind() {
    let time = Duration::from_secs(setting(SECS, SECS_IN_TESTS));
    let clients = setting(CLIENTS, ALL_CLIENTS);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let mut server = JoinSet::new();
    server.spawn(model(listener));
    let world = Arc::new(World::new(&url));
    let daemon = world.start().await;
    let before = daemon.usage();
    let counter = Arc::new(Counter::default());
    let mut living = JoinSet::new();
    for number in 0..clients {
        living.spawn(client(Arc::clone(&world), Arc::clone(&counter), number));
    }
    // Code that runs for the first time is mapped, and caches are filled: this is not
    // growth.
    let warm = Instant::now();
    while counter.answers.load(Ordering::Relaxed) < clients * WARM_UP
        && warm.elapsed() < UNTIL_ANSWERED
    {
        tokio::time::sleep(SAMPLE_EVERY).await;
    }
    let begun = Instant::now();
    let mut samples = Vec::new();
    // Waits longer on a slow machine, so that there are enough samples.
    let warmed = counter.answers.load(Ordering::Relaxed);
    let answers = || counter.answers.load(Ordering::Relaxed) - warmed;
    let enough = || answers() > clients / 4 || begun.elapsed() > time + UNTIL_ANSWERED;
    while begun.elapsed() < time || !enough() {
        tokio::time::sleep(SAMPLE_EVERY).await;
        samples.push((begun.elapsed().as_secs_f64(), daemon.usage()));
        if let Some(ended) = living.try_join_next() {
            panic!("a client failed: {ended:?}");
        }
    }
    living.shutdown().await;
    let left = Instant::now();
    loop {
        let usage = daemon.usage();
        samples.push((begun.elapsed().as_secs_f64(), usage));
        // Allows for idle connections to the model.
        if usage.descriptors <= before.descriptors + 16 {
            break;
        }
        assert!(left.elapsed() < SETTLE, "{before:?} {usage:?}");
        tokio::time::sleep(SAMPLE_EVERY).await;
    }
    if let Some(path) = std::env::var_os(CSV) {
        write_csv(Path::new(&path), &samples);
    }
    let answers = answers();
    assert!(answers > clients / 4, "only {answers} were answered");
    let quarter = samples.len() / 4;
    let second = median(&samples[quarter..2 * quarter], |u| u.rss_kib);
    let last = median(&samples[3 * quarter..], |u| u.rss_kib);
    println!("{answers} answers; {second} KiB, later {last} KiB");
    assert!(
        last <= second + MAY_GROW_KIB,
        "{second} KiB, later {last} KiB"
    );
    daemon.terminate().await;
}
