//! One connection: requests in, scripted bytes out.

use super::state::State;
use super::{Action, Reply};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest request head.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Bytes that a flood sends per system call, for speed.
const FLOOD_BYTES: usize = 64 << 10;

/// How an answer's body is delimited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Unsent,
    Chunked,
    Length,
    UntilClose,
}

enum Outcome {
    /// The connection may serve another request.
    Done,
    /// The script closed the connection.
    Closed,
}

/// A request's head and body.
struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

pub(super) struct Connection {
    stream: TcpStream,
    state: Arc<State>,
    /// Bytes read beyond the last request.
    ahead: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, state: Arc<State>) -> Self {
        Self {
            stream,
            state,
            ahead: Vec::new(),
        }
    }

    /// Serves request after request until either side closes.
    pub(super) async fn serve(mut self) {
        if self.stream.set_nodelay(true).is_err() {
            return;
        }
        while let Ok(Some(request)) = self.read().await {
            let reply = if request.method == "HEAD" {
                Reply::page(200, &[], "")
            } else if request.method == "GET" {
                self.state.page(&request.path)
            } else if request.path == "/release" {
                self.state.release.add_permits(1);
                Reply::page(200, &[], "")
            } else {
                self.state
                    .call(request.path, request.headers, &request.body)
            };
            match self.play(reply).await {
                Ok(Outcome::Done) => {}
                Ok(Outcome::Closed) => return,
                Err(_) => {
                    self.state.advance(|progress| progress.closed_early += 1);
                    return;
                }
            }
        }
    }

    async fn read(&mut self) -> io::Result<Option<Request>> {
        let end = loop {
            if let Some(at) = self
                .ahead
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                break at;
            }
            if self.ahead.len() > MAX_HEAD_BYTES
                || self.stream.read_buf(&mut self.ahead).await? == 0
            {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&self.ahead[..end]).into_owned();
        self.ahead.drain(..end + 4);
        let mut lines = head.split("\r\n");
        let mut words = lines
            .next()
            .unwrap_or_default()
            .split(' ')
            .map(str::to_owned);
        let (method, path) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(0);
        while self.ahead.len() < length {
            if self.stream.read_buf(&mut self.ahead).await? == 0 {
                return Ok(None);
            }
        }
        let body = self.ahead.drain(..length).collect();
        Ok(Some(Request {
            method,
            path,
            headers,
            body,
        }))
    }

    async fn play(&mut self, reply: Reply) -> io::Result<Outcome> {
        let mut framing = Framing::Unsent;
        for action in reply.actions {
            if framing == Framing::Unsent && needs_head(&action) {
                let headers = vec![("content-type".into(), "text/event-stream".into())];
                framing = self.head(200, &headers).await?;
            }
            match action {
                Action::Head { status, headers } => framing = self.head(status, &headers).await?,
                Action::Event(data) => {
                    self.body(framing, format!("data: {data}\n\n").as_bytes())
                        .await?;
                }
                Action::Body(text) => self.body(framing, text.as_bytes()).await?,
                Action::Bytes(bytes) => self.body(framing, &bytes).await?,
                Action::Dribble(text) => {
                    for byte in text.bytes() {
                        self.body(framing, &[byte]).await?;
                        tokio::task::yield_now().await;
                    }
                }
                Action::Flood(text) => {
                    let piece = enough_of(&text);
                    loop {
                        self.body(framing, piece.as_bytes()).await?;
                    }
                }
                Action::FloodHeld(text) => {
                    let piece = enough_of(&text);
                    let state = self.state.clone();
                    loop {
                        if let Ok(released) = state.release.try_acquire() {
                            released.forget();
                            break;
                        }
                        self.body(framing, piece.as_bytes()).await?;
                    }
                }
                Action::RawFlood(text) => {
                    let piece = enough_of(&text);
                    loop {
                        self.stream.write_all(piece.as_bytes()).await?;
                    }
                }
                Action::Raw(text) => self.stream.write_all(text.as_bytes()).await?,
                Action::SleepMs(ms) => {
                    self.wait(tokio::time::sleep(Duration::from_millis(ms)))
                        .await?
                }
                Action::Stall => {
                    self.state.advance(|progress| progress.stalled += 1);
                    let state = self.state.clone();
                    let released = async { state.release.acquire().await.expect("open").forget() };
                    self.wait(released).await?;
                }
                Action::Cut => return Ok(Outcome::Closed),
            }
        }
        match framing {
            Framing::Chunked => self.stream.write_all(b"0\r\n\r\n").await?,
            Framing::UntilClose => return Ok(Outcome::Closed),
            Framing::Unsent | Framing::Length => {}
        }
        Ok(Outcome::Done)
    }

    async fn head(&mut self, status: u16, headers: &[(String, String)]) -> io::Result<Framing> {
        let has = |wanted: &str| {
            headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(wanted))
        };
        let framing = if has("content-length") {
            Framing::Length
        } else if has("connection") {
            Framing::UntilClose
        } else {
            Framing::Chunked
        };
        let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if framing == Framing::Chunked {
            head.push_str("transfer-encoding: chunked\r\n");
        }
        head.push_str("\r\n");
        self.stream.write_all(head.as_bytes()).await?;
        Ok(framing)
    }

    async fn body(&mut self, framing: Framing, bytes: &[u8]) -> io::Result<()> {
        if framing != Framing::Chunked {
            return self.stream.write_all(bytes).await;
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.stream.write_all(&chunk).await
    }

    /// Waits, unless the client closes.
    async fn wait(&mut self, until: impl Future<Output = ()>) -> io::Result<()> {
        let mut until = std::pin::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return Ok(()),
                read = self.stream.read_buf(&mut self.ahead) => {
                    if read? == 0 {
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                }
            }
        }
    }
}

/// Repeats a piece until sending it is worth a system call.
fn enough_of(piece: &str) -> String {
    piece.repeat((FLOOD_BYTES / piece.len().max(1)).max(1))
}

fn needs_head(action: &Action) -> bool {
    match action {
        Action::Event(_)
        | Action::Body(_)
        | Action::Bytes(_)
        | Action::Dribble(_)
        | Action::Flood(_)
        | Action::FloodHeld(_) => true,
        Action::Head { .. }
        | Action::Raw(_)
        | Action::RawFlood(_)
        | Action::SleepMs(_)
        | Action::Stall
        | Action::Cut => false,
    }
}
