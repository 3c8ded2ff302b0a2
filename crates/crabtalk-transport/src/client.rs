//! A client's connection.
//!
//! Invariant: a connection is unusable after a reply that was not read to its end, since
//! the remaining messages would be read as the next answer.

use crate::input::{Input, poll_input};
use bytes::BytesMut;
use crabtalk_proto::codec::{self, FrameError};
use crabtalk_proto::{Client, ClientError, ClientMessage, ServerMessage};
use futures_core::Stream;
use std::fmt;
use std::future::poll_fn;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

/// A connection to the daemon over the two halves of any byte stream.
pub struct Connection {
    reader: Box<dyn AsyncRead + Unpin + Send>,
    writer: Box<dyn AsyncWrite + Unpin + Send>,
    input: BytesMut,
    /// Whether a reply was not read to its end.
    unfinished: bool,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

impl Connection {
    /// Creates a connection over the two halves of a stream.
    pub fn new(
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
            input: BytesMut::new(),
            unfinished: false,
        }
    }

    async fn transmit(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        if self.unfinished {
            return Err(ClientError::Unfinished);
        }
        let mut frame = BytesMut::new();
        codec::encode(message, &mut frame).map_err(FrameError::from)?;
        self.unfinished = true;
        let written = async {
            self.writer.write_all(&frame).await?;
            self.writer.flush().await
        };
        // A daemon that refuses a connection sends the reason and closes; the write then fails,
        // but the reason can still be read.
        match written.await {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(FrameError::Io(error).into())
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    async fn receive(&mut self) -> Result<ServerMessage, ClientError> {
        loop {
            if let Some(message) = codec::decode(&mut self.input)? {
                return Ok(message);
            }
            let input = poll_fn(|cx| poll_input(&mut self.reader, &mut self.input, cx)).await;
            match input {
                Ok(Input::Bytes) => {}
                Ok(Input::End) => return Err(codec::end_of_file(&self.input).into()),
                // The daemon died before it read the request.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(codec::end_of_file(&self.input).into());
                }
                Err(error) => return Err(FrameError::Io(error).into()),
            }
        }
    }
}

/// Progress of a streamed reply.
enum Reply {
    Unsent(Box<ClientMessage>),
    Open,
    Closed,
}

impl Client for Connection {
    async fn request(&mut self, message: ClientMessage) -> Result<ServerMessage, ClientError> {
        self.transmit(&message).await?;
        let answer = self.receive().await?;
        self.unfinished = false;
        Ok(answer)
    }

    fn request_stream(
        &mut self,
        message: ClientMessage,
    ) -> impl Stream<Item = Result<ServerMessage, ClientError>> + Send {
        let state = (self, Reply::Unsent(Box::new(message)));
        futures_util::stream::unfold(state, async |(connection, reply)| {
            let (item, rest) = connection.next_of(reply).await?;
            Some((item, (connection, rest)))
        })
    }
}

impl Connection {
    /// Like [`Client::request_stream`], but consumes the connection: it closes when the
    /// stream is dropped.
    pub fn into_stream(
        self,
        message: ClientMessage,
    ) -> impl Stream<Item = Result<ServerMessage, ClientError>> + Send + use<> {
        let state = (self, Reply::Unsent(Box::new(message)));
        futures_util::stream::unfold(state, async |(mut connection, reply)| {
            let (item, rest) = connection.next_of(reply).await?;
            Some((item, (connection, rest)))
        })
    }

    /// Resolves when the daemon closes the connection or sends an unexpected message. For clients that
    /// send no requests.
    pub async fn closed(&mut self) {
        let _ = self.receive().await;
    }

    /// Returns the next message of a reply and the remaining state.
    async fn next_of(
        &mut self,
        reply: Reply,
    ) -> Option<(Result<ServerMessage, ClientError>, Reply)> {
        let sent = match reply {
            Reply::Unsent(message) => self.transmit(&message).await,
            Reply::Open => Ok(()),
            Reply::Closed => return None,
        };
        let item = match sent {
            Ok(()) => self.receive().await,
            Err(error) => Err(error),
        };
        let last = item.as_ref().map_or(true, ServerMessage::ends_stream);
        if last && item.is_ok() {
            self.unfinished = false;
        }
        Some((item, if last { Reply::Closed } else { Reply::Open }))
    }
}

#[cfg(test)]
mod tests;
