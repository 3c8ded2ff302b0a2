//! A model server that is as fast as a few lines can make it: the yardstick.
//!
//! The request's path holds its orders, so that one server serves every case: `/b/LATENCY_US/CHUNKS/GAP_US/GROUP/...` answers a POST after that
//! latency with so many events, `GROUP` of them per write (0: as many as fit)
//! and a pause between writes. `GET /last` answers the last request's body.
//!
//! It blocks, one thread per connection, because the clock of a thread that
//! sleeps is finer than a timer wheel's millisecond.

use anyhow::Context;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, sleep};
use std::time::Duration;

/// The end of a chunked body.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Stack of a connection's thread; there are a thousand of them.
const STACK_BYTES: usize = 64 * 1024;

/// Connections that may wait to be accepted: all of a crowd.
const BACKLOG: i32 = 4096;

/// Bytes of one write from a backlogged source.
const BURST_BYTES: usize = 64 * 1024;

/// Pieces as models give them, some of which JSON has to escape.
const WORDS: [&str; 16] = [
    " the",
    " a",
    "con",
    "versation",
    " is",
    ".",
    "\\n\\n",
    " never",
    " lost",
    ",",
    " and",
    " \\\"fast\\\"",
    " again",
    " 42",
    " und so",
    " weiter",
];

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

/// The orders in a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// From the request to the first byte.
    pub(crate) latency_us: u64,
    /// Events with text.
    pub(crate) chunks: usize,
    /// Between two writes.
    pub(crate) gap_us: u64,
    /// Events per write; 0 is as many as fit.
    pub(crate) group: usize,
}

impl Plan {
    /// The beginning of the path.
    pub(crate) fn path(&self) -> String {
        let Self {
            latency_us,
            chunks,
            gap_us,
            group,
        } = self;
        format!("/b/{latency_us}/{chunks}/{gap_us}/{group}")
    }

    fn parse(path: &str) -> Option<Self> {
        let mut words = path.strip_prefix("/b/")?.split('/');
        Some(Self {
            latency_us: words.next()?.parse().ok()?,
            chunks: words.next()?.parse().ok()?,
            gap_us: words.next()?.parse().ok()?,
            group: words.next()?.parse().ok()?,
        })
    }
}

/// The server, in a process that ends with this value.
pub(crate) struct ModelServer {
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
    /// Where homes are made that its daemons run on.
    pub(crate) room: PathBuf,
    /// The daemon that is measured.
    pub(crate) program: PathBuf,
    child: Child,
}

impl ModelServer {
    /// Starts this program again as the server.
    pub(crate) fn start(room: &Path, program: PathBuf) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("model-server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the model server")?;
        let stdout = child.stdout.take().context("its stdout is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        Ok(Self {
            address: line.trim().to_owned(),
            room: room.to_owned(),
            program,
            child,
        })
    }

    /// The body of the last request.
    pub(crate) fn last_body(&self) -> anyhow::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.write_all(b"GET /last HTTP/1.1\r\nconnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let at = answer.windows(4).position(|w| w == b"\r\n\r\n");
        Ok(answer.split_off(at.context("no head")? + 4))
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // It ends with its stdin as well; nothing is left to be told.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves until stdin ends.
pub(crate) fn serve() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    rustix::net::listen(&listener, BACKLOG)?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    let last = Arc::new(Mutex::new(Vec::new()));
    Builder::new().spawn(move || {
        for stream in listener.incoming().flatten() {
            let last = Arc::clone(&last);
            let thread = Builder::new().stack_size(STACK_BYTES);
            // A client that goes away ends its thread with an error.
            let started = thread.spawn(move || drop(serve_one(&stream, &last)));
            if started.is_err() {
                return;
            }
        }
    })?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

fn serve_one(stream: &TcpStream, last: &Mutex<Vec<u8>>) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let events: Vec<Vec<u8>> = WORDS.iter().map(|word| framed(&event(word))).collect();
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let (path, length) = match read_head(&mut reader)? {
            Some(head) => head,
            None => return Ok(()),
        };
        if path == "/last" {
            let body = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
            writer.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
            writer.write_all(&body)?;
            return Ok(());
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        *last.lock().unwrap_or_else(PoisonError::into_inner) = body;
        let plan = Plan::parse(&path).with_context(|| format!("a strange path: {path}"))?;
        play(writer, plan, &events)?;
    }
}

fn read_head(reader: &mut impl BufRead) -> anyhow::Result<Option<(String, usize)>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let header = line.trim_end();
        if header.is_empty() {
            return Ok(Some((path, length)));
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
}

fn play(mut writer: impl Write, plan: Plan, events: &[Vec<u8>]) -> anyhow::Result<()> {
    pause(plan.latency_us);
    writer.write_all(HEAD)?;
    let mut out = Vec::with_capacity(2 * BURST_BYTES);
    for at in 0..plan.chunks {
        out.extend_from_slice(&events[at % events.len()]);
        let full = match plan.group {
            0 => out.len() >= BURST_BYTES,
            group => (at + 1) % group == 0,
        };
        if full {
            writer.write_all(&out)?;
            out.clear();
            if at + 1 < plan.chunks {
                pause(plan.gap_us);
            }
        }
    }
    let finish = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let usage = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}"#;
    out.extend(framed(&format!("{finish}\n\n{usage}\n\ndata: [DONE]\n\n")));
    out.extend_from_slice(LAST_CHUNK);
    writer.write_all(&out)?;
    Ok(())
}

fn pause(us: u64) {
    if us > 0 {
        sleep(Duration::from_micros(us));
    }
}

fn event(content: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\
         \"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{content}\"}},\
         \"finish_reason\":null}}]}}\n\n"
    )
}

/// One chunk of a chunked body.
fn framed(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}
