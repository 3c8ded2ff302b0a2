//! A server on the loopback that behaves as it likes.

use crate::rig::TestEnv;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// What a server does with a request.
pub(super) enum Does {
    Answers(Value),
    /// What is in this stream of events, which then ends.
    Streams(String),
    /// Nothing, until it may go on; then it answers.
    Waits(Arc<Semaphore>, Value),
    /// Points elsewhere.
    Redirects(String),
    /// Shakes hands as anybody.
    Usual,
    /// An error with these words.
    Refuses(String),
    /// A gibibyte, as one JSON text or as one event.
    Floods {
        kind: &'static str,
    },
}

pub(super) type Behaviour = dyn Fn(&str, &Value) -> Does + Send + Sync;

/// A server on the loopback that behaves as it likes.
pub(super) struct Rogue {
    pub(super) port: u16,
    pub(super) counts: Arc<Counts>,
    _task: JoinSet<()>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    /// How often it has said that its tools changed.
    pub(super) announced: AtomicU64,
    /// Bytes of floods that were taken.
    pub(super) flooded: AtomicU64,
    /// Pings that came, and those of them whose connection is open.
    pub(super) pings: AtomicU64,
    pub(super) open_pings: AtomicU64,
    /// Calls that wait for their answer.
    pub(super) waiting: AtomicU64,
    /// Answers of the daemon's to what it was asked.
    pub(super) answered: AtomicU64,
    /// Whether pings have no answer.
    pub(super) is_silent: AtomicBool,
}

const A_GIBIBYTE: u64 = 1 << 30;

impl Rogue {
    /// `announces`: it says all the time that its tools changed.
    pub(super) async fn start(behaves: Box<Behaviour>, announces: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let counts = Arc::<Counts>::default();
        let (behaves, counted) = (Arc::new(behaves), Arc::clone(&counts));
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (behaves, counts) = (Arc::clone(&behaves), Arc::clone(&counted));
                connections.spawn(async move {
                    // Whoever hangs up has had enough.
                    let _ = serve(stream, &**behaves, &counts, announces).await;
                });
            }
        });
        Self {
            port,
            counts,
            _task: task,
        }
    }

    pub(super) fn announce(&self, env: &TestEnv, name: &str) {
        announce(env, name, self.port);
    }
}

/// Writes a port file, and tells where.
pub(super) fn announce(env: &TestEnv, name: &str, port: u16) -> PathBuf {
    let run = env.home.join("run");
    fs::create_dir_all(&run).unwrap();
    let file = run.join(format!("{name}.port"));
    fs::write(&file, port.to_string()).unwrap();
    file
}

async fn serve(
    mut stream: TcpStream,
    behaves: &Behaviour,
    counts: &Counts,
    announces: bool,
) -> std::io::Result<()> {
    let (method, body) = request(&mut stream).await?;
    if method == "GET" && announces {
        return announce_changes(stream, counts).await;
    }
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    if asked["method"].is_null() && !asked["id"].is_null() {
        counts.answered.fetch_add(1, Ordering::Relaxed);
    }
    if method != "POST" || asked["id"].is_null() || asked["method"].is_null() {
        let status = if method == "POST" {
            "202 Accepted"
        } else {
            "405 No"
        };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        return stream.write_all(answer.as_bytes()).await;
    }
    let method = asked["method"].as_str().unwrap_or_default();
    if method == "ping" {
        counts.pings.fetch_add(1, Ordering::Relaxed);
        if counts.is_silent.load(Ordering::Relaxed) {
            counts.open_pings.fetch_add(1, Ordering::Relaxed);
            hung_up(&mut stream).await;
            counts.open_pings.fetch_sub(1, Ordering::Relaxed);
            return Ok(());
        }
    }
    let does = match method {
        "ping" => Does::Answers(json!({})),
        method => behaves(method, &asked["params"]),
    };
    do_it(stream, does, &asked, counts).await
}

/// Says again and again that its tools changed.
async fn announce_changes(mut stream: TcpStream, counts: &Counts) -> std::io::Result<()> {
    begin(&mut stream, "text/event-stream").await?;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let events = format!("data: {changed}\n\n").repeat(100);
    loop {
        stream.write_all(events.as_bytes()).await?;
        counts.announced.fetch_add(100, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Answers a request in its way.
async fn do_it(
    mut stream: TcpStream,
    does: Does,
    asked: &Value,
    counts: &Counts,
) -> std::io::Result<()> {
    match does {
        Does::Usual => {
            let result = json!({
                "protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "rogue", "version": "1"},
            });
            answer(&mut stream, &asked["id"], &result).await
        }
        Does::Answers(result) => answer(&mut stream, &asked["id"], &result).await,
        Does::Refuses(why) => {
            let error = json!({"code": -32000, "message": why});
            let said = json!({"jsonrpc": "2.0", "id": asked["id"], "error": error});
            send(&mut stream, &said).await
        }
        Does::Waits(until, result) => {
            counts.waiting.fetch_add(1, Ordering::Relaxed);
            drop(until.acquire().await);
            counts.waiting.fetch_sub(1, Ordering::Relaxed);
            answer(&mut stream, &asked["id"], &result).await
        }
        Does::Redirects(to) => {
            let answer =
                format!("HTTP/1.1 307 Elsewhere\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await
        }
        Does::Streams(events) => {
            begin(&mut stream, "text/event-stream").await?;
            let id = asked["id"].to_string();
            stream
                .write_all(events.replace("\"ID\"", &id).as_bytes())
                .await?;
            stream.shutdown().await
        }
        Does::Floods { kind } => {
            begin(&mut stream, kind).await?;
            let text = if kind == "application/json" {
                "\""
            } else {
                "data: \""
            };
            stream.write_all(text.as_bytes()).await?;
            let piece = vec![b'x'; 64 << 10];
            while counts.flooded.load(Ordering::Relaxed) < A_GIBIBYTE {
                stream.write_all(&piece).await?;
                counts
                    .flooded
                    .fetch_add(piece.len() as u64, Ordering::Relaxed);
            }
            Ok(())
        }
    }
}

async fn answer(stream: &mut TcpStream, id: &Value, result: &Value) -> std::io::Result<()> {
    let said = json!({"jsonrpc": "2.0", "id": id, "result": result});
    send(stream, &said).await
}

async fn send(stream: &mut TcpStream, said: &Value) -> std::io::Result<()> {
    let body = said.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await
}

/// Waits for the end of whoever called.
async fn hung_up(stream: &mut TcpStream) {
    while matches!(stream.read(&mut [0; 64]).await, Ok(1..)) {}
}

/// The head of an answer that ends with its connection.
async fn begin(stream: &mut TcpStream, kind: &str) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await
}

/// Reads a request: its method and its body.
pub(super) async fn request(stream: &mut TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    while bytes.len() < end + length.unwrap_or(0) {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    let method = head.split(' ').next().unwrap_or_default();
    Ok((method.to_ascii_uppercase(), bytes[end..].to_vec()))
}

pub(super) fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// One tool, whose calls do this.
pub(super) fn calls(name: &str, does: impl Fn() -> Does + Send + Sync + 'static) -> Box<Behaviour> {
    let tools = json!([tool(name, "")]);
    Box::new(move |method, _| match method {
        "initialize" => Does::Usual,
        "tools/list" => Does::Answers(json!({"tools": tools})),
        _ => does(),
    })
}

pub(super) fn lists(tools: Value) -> Box<Behaviour> {
    Box::new(move |method, _| match method {
        "initialize" => Does::Usual,
        "tools/list" => Does::Answers(json!({"tools": tools})),
        _ => Does::Answers(json!({"content": [{"type": "text", "text": "called"}]})),
    })
}
