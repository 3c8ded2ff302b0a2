//! Reads the model server without anything in between: what the daemon is
//! measured against.

use super::server::{LAST_CHUNK, Plan};
use anyhow::ensure;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A connection to the model server that is kept.
pub(crate) struct Direct<S = TcpStream> {
    stream: S,
    buffer: Vec<u8>,
}

/// How an answer came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// From the request to the first text.
    pub(crate) first: Duration,
    /// From the request to the end.
    pub(crate) whole: Duration,
}

/// A request as a client that has its bytes ready posts it.
pub(crate) fn request(plan: Plan, body: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "POST {}/v1/chat/completions HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer x\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        plan.path(),
        body.len()
    )
    .into_bytes();
    out.extend_from_slice(body);
    out
}

impl Direct {
    pub(crate) fn connect(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self::over(stream))
    }
}

impl<S: Read + Write> Direct<S> {
    /// Over a stream that leads there.
    pub(crate) fn over(stream: S) -> Self {
        Self {
            stream,
            buffer: vec![0; 64 * 1024],
        }
    }

    /// Posts a request and reads its answer to the end.
    pub(crate) fn turn(&mut self, request: &[u8]) -> anyhow::Result<Timing> {
        let begun = Instant::now();
        self.stream.write_all(request)?;
        let mut first = None;
        let mut in_head = true;
        let mut tail = Vec::new();
        loop {
            let count = self.stream.read(&mut self.buffer)?;
            ensure!(count > 0, "the model server closed the connection");
            let bytes = &self.buffer[..count];
            if first.is_none() {
                // The head comes first and holds no text.
                let text = if in_head {
                    bytes.windows(5).any(|w| w == b"data:")
                } else {
                    true
                };
                if text {
                    first = Some(begun.elapsed());
                }
                in_head = false;
            }
            // The end may come in two reads.
            tail.extend_from_slice(&bytes[count.saturating_sub(LAST_CHUNK.len())..]);
            let from = tail.len().saturating_sub(LAST_CHUNK.len());
            tail.drain(..from);
            if tail == LAST_CHUNK {
                let whole = begun.elapsed();
                return Ok(Timing {
                    first: first.unwrap_or(whole),
                    whole,
                });
            }
        }
    }
}
