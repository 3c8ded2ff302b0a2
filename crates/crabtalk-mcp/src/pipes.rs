//! A program's standard streams as a transport: each line is a message.
//!
//! Invariants: a line longer than the limit ends the connection; a response that cannot
//! be parsed fails its call with the reason; other lines are stored as the program's
//! output, to be shown with an error.

use crate::answers::MAX_EVENT;
use crate::program::Complaints;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::sync::{Arc, OnceLock};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader, Empty, empty};

/// Longest message, as over HTTP.
const MAX_LINE: usize = MAX_EVENT;

/// The reason why a connection was given up.
pub(crate) type GivenUp = Arc<OnceLock<&'static str>>;

const TOO_LONG: &str = "it sent a line of more than 16 MiB";

/// The transport over pipes.
pub(crate) struct Pipes<R, W: AsyncWrite> {
    reads: BufReader<R>,
    /// The read part of the current line.
    line: Vec<u8>,
    /// The library's transport, which only writes.
    writes: AsyncRwTransport<RoleClient, Empty, W>,
    babble: Complaints,
    given_up: GivenUp,
}

impl<R, W> Pipes<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Creates a transport. Lines that are not messages go to `babble`.
    pub(crate) fn new(reads: R, writes: W, babble: Complaints, given_up: GivenUp) -> Self {
        Self {
            reads: BufReader::new(reads),
            line: Vec::new(),
            writes: AsyncRwTransport::new_client(empty(), writes),
            babble,
            given_up,
        }
    }

    /// Reads to the end of a line; `false` at the end of the output. Cancel safe.
    async fn read_line(&mut self) -> bool {
        let room = (MAX_LINE + 1).saturating_sub(self.line.len());
        let mut reads = (&mut self.reads).take(room as u64);
        let read = reads.read_until(b'\n', &mut self.line).await;
        if read.is_ok() && self.line.ends_with(b"\n") {
            return true;
        }
        if self.line.len() > MAX_LINE {
            // The cell is set only here.
            let _ = self.given_up.set(TOO_LONG);
        }
        false
    }

    fn message(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let text = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        let text = text.trim_ascii();
        let message = match serde_json::from_slice(text) {
            Ok(message) => return Some(message),
            Err(error) => failed(text, &error),
        };
        if message.is_none() {
            self.babble.add(text);
            self.babble.add(b"\n");
        }
        message
    }
}

/// Fails the call whose response cannot be parsed, for example because of `NaN`, which
/// Python writes. Servers begin a response with version and id.
fn failed(text: &[u8], error: &serde_json::Error) -> Option<ServerJsonRpcMessage> {
    let head = String::from_utf8_lossy(&text[..text.len().min(64)]);
    let head: String = head.split_whitespace().collect();
    let rest = head.strip_prefix(r#"{"jsonrpc":"2.0","id":"#)?;
    let (id, rest) = rest.split_once(',')?;
    let id = RequestId::Number(id.parse().ok()?);
    let answers = rest.starts_with("\"result\"") || rest.starts_with("\"error\"");
    let why = format!("cannot read its answer: {error}");
    let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None);
    answers.then(|| JsonRpcMessage::error(error, Some(id)))
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
        while self.read_line().await {
            let line = std::mem::take(&mut self.line);
            if let Some(message) = self.message(&line) {
                return Some(message);
            }
        }
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.writes.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_messages_and_other_output_is_kept() {
        let output = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\nWelcome\n\
            {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\
            {\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {\"n\": NaN}}\n\
            {\"id\":8,\"said\":\"log\"}\nhalf a li";
        let babble = Complaints::default();
        let sink = tokio::io::sink();
        let mut pipes = Pipes::new(output.as_bytes(), sink, babble.clone(), <_>::default());
        assert!(matches!(
            pipes.receive().await,
            Some(JsonRpcMessage::Response(_))
        ));
        assert!(matches!(
            pipes.receive().await,
            Some(JsonRpcMessage::Notification(_))
        ));
        let Some(JsonRpcMessage::Error(error)) = pipes.receive().await else {
            panic!("a response that cannot be parsed fails its call")
        };
        assert_eq!(error.id, Some(RequestId::Number(7)));
        assert!(pipes.receive().await.is_none());
        assert_eq!(babble.text(), "Welcome\n{\"id\":8,\"said\":\"log\"}");
    }

    #[tokio::test]
    async fn a_line_without_end_ends_the_connection() {
        let given_up = GivenUp::default();
        let endless = tokio::io::repeat(b'y').take(u64::MAX);
        let sink = tokio::io::sink();
        let mut pipes = Pipes::new(endless, sink, <_>::default(), given_up.clone());
        assert!(pipes.receive().await.is_none());
        assert_eq!(given_up.get(), Some(&TOO_LONG));
    }
}
