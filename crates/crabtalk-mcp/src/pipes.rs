//! A program's standard streams as a transport: each line is a message.
//!
//! The library takes a line that it cannot read for none, and its call then waits until its time is
//! over. Invariants: a line is kept to a bound, and one that goes on for much longer ends the
//! connection; an answer that cannot be read, or is too long, answers its call with the
//! reason; what is no message is kept as the program's words.

use crate::answers::MAX_EVENT;
use crate::beside::MAX_AT_ONCE;
use crate::program::Complaints;
use crate::values;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::sync::{Arc, OnceLock};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, Empty, empty};
use tokio::task::{JoinHandle, spawn_blocking};

/// Longest message, as over HTTP.
const MAX_LINE: usize = MAX_EVENT;

/// How much of one line is passed over until its end, before the program is taken for
/// one that never ends it: large files fit, as text.
const MAX_PASSED_OVER: usize = 16 * MAX_LINE;

/// How much of the beginning and of the end of a line is kept to tell whose answer it is.
const ENDS: usize = 128;

/// Why a connection over pipes was given up, once it was.
pub(crate) type GivenUp = Arc<OnceLock<&'static str>>;

const WITHOUT_END: &str = "it sent a line without end";

/// The transport.
pub(crate) struct Pipes<R, W: AsyncWrite> {
    reads: BufReader<R>,
    line: Line,
    /// A long line that is being read, beside; what follows waits.
    long: Option<JoinHandle<Option<ServerJsonRpcMessage>>>,
    /// The library's, which writes.
    writes: AsyncRwTransport<RoleClient, Empty, W>,
    babble: Complaints,
    given_up: GivenUp,
}

impl<R, W> Pipes<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// What the program writes that is no message goes to `babble`.
    pub(crate) fn new(reads: R, writes: W, babble: Complaints, given_up: GivenUp) -> Self {
        Self {
            reads: BufReader::new(reads),
            line: Line::default(),
            long: None,
            writes: AsyncRwTransport::new_client(empty(), writes),
            babble,
            given_up,
        }
    }

    /// Reads to the end of the line; `false` when there is none any more. May be dropped
    /// and called again.
    async fn read_line(&mut self) -> bool {
        loop {
            let Ok(read @ [_, ..]) = self.reads.fill_buf().await else {
                return false;
            };
            let end = read.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(read.len(), |at| at + 1);
            self.line.add(&read[..taken]);
            self.reads.consume(taken);
            if end.is_some() {
                return true;
            }
            if self.line.length > MAX_PASSED_OVER {
                // It is set once.
                let _ = self.given_up.set(WITHOUT_END);
                return false;
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Pipes<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.writes.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        // It may be dropped at any wait, and called again.
        loop {
            let message = if let Some(long) = &mut self.long {
                let read = long.await;
                self.long = None;
                // Nobody reads any more once the daemon ends.
                read.ok()?
            } else if self.read_line().await {
                let line = std::mem::take(&mut self.line);
                if line.bytes.len() > MAX_AT_ONCE {
                    let babble = self.babble.clone();
                    self.long = Some(spawn_blocking(move || line.message(&babble)));
                    continue;
                }
                line.message(&self.babble)
            } else {
                return None;
            };
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.writes.close().await
    }
}

/// A line as far as it was read.
#[derive(Default)]
struct Line {
    /// All of it, or its beginning if it is too long.
    bytes: Vec<u8>,
    /// The end of one that is too long.
    tail: Vec<u8>,
    length: usize,
}

impl Line {
    fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        if self.length <= MAX_LINE {
            return self.bytes.extend_from_slice(bytes);
        }
        if self.tail.is_empty() {
            let from = self.bytes.len().saturating_sub(ENDS);
            self.tail = self.bytes[from..].to_vec();
            self.bytes.truncate(ENDS);
            self.bytes.shrink_to_fit();
        }
        self.tail.extend_from_slice(bytes);
        let excess = self.tail.len().saturating_sub(ENDS);
        self.tail.drain(..excess);
    }

    /// The message, or what stands for an answer that cannot be read.
    fn message(self, babble: &Complaints) -> Option<ServerJsonRpcMessage> {
        let text = self.bytes.strip_prefix(b"\xEF\xBB\xBF");
        let text = text.unwrap_or(&self.bytes).trim_ascii();
        let why = match self.length > MAX_LINE {
            true => format!("its answer has more than {MAX_LINE} bytes"),
            false if values::has_too_many(text) => values::too_many(),
            false => match serde_json::from_slice(text) {
                Ok(message) => return Some(message),
                Err(error) => format!("its answer cannot be read: {error}"),
            },
        };
        if !text.starts_with(b"{") {
            babble.add(text);
            babble.add(b"\n");
            return None;
        }
        let tail = match self.tail.is_empty() {
            true => &text[text.len().saturating_sub(ENDS)..],
            false => &self.tail,
        };
        let Some(id) = answered(text, tail) else {
            tracing::debug!(%why, "what an MCP server said is passed over");
            return None;
        };
        let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None);
        Some(JsonRpcMessage::error(error, Some(id)))
    }
}

/// Whose answer it is that begins and ends so: of its keys the first ones, or the last
/// one, are read. What is inside of a result says nothing.
fn answered(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let head = &head[..head.len().min(ENDS)];
    let mut rest = head.strip_prefix(b"{")?;
    let mut id = None;
    loop {
        let (key, value) = key(rest)?;
        match key {
            b"result" | b"error" => return id.or_else(|| last_id(tail)),
            b"id" => {
                let (number, after) = number(value)?;
                (id, rest) = (Some(number), after);
            }
            b"jsonrpc" => rest = value.strip_prefix(b"\"2.0\"")?,
            _ => return None,
        }
        rest = rest.trim_ascii_start().strip_prefix(b",")?;
    }
}

/// `"id": 7 }` at the end of an object.
fn last_id(tail: &[u8]) -> Option<RequestId> {
    let rest = tail.trim_ascii_end().strip_suffix(b"}")?;
    let at = rest.windows(4).rposition(|word| word == b"\"id\"")?;
    let before = rest[..at].trim_ascii_end();
    let (_, value) = key(&rest[at..])?;
    let (id, after) = number(value)?;
    (before.ends_with(b",") && after.trim_ascii().is_empty()).then_some(id)
}

/// A key, and what stands behind its colon.
fn key(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start().strip_prefix(b"\"")?;
    let end = text.iter().position(|byte| *byte == b'"')?;
    let value = text[end + 1..].trim_ascii_start().strip_prefix(b":")?;
    Some((&text[..end], value.trim_ascii_start()))
}

/// A number as ours are, and what stands behind it.
fn number(text: &[u8]) -> Option<(RequestId, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    let number = str::from_utf8(digits).ok()?.parse().ok()?;
    Some((RequestId::Number(number), rest))
}

#[cfg(test)]
mod tests;
