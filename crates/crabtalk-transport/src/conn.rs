//! One connection: a request, its reply, the next request (WIRE-4).
//!
//! Invariants: a client that does not read fills only its own buffers and delays no other
//! connection; an idle connection has almost no buffer; incomplete frames count towards the shared
//! byte budget; end of input from the client closes the connection.

mod reply;

use crate::crowd::ConnectionSlot;
use crate::input::{Input, poll_input};
use bytes::BytesMut;
use crabtalk_proto::codec::{self, FrameError};
use crabtalk_proto::{ClientMessage, Reply, Role, Server, Status, TooLarge};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Sleep, sleep, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// Buffers larger than this are freed when a connection goes idle.
const IDLE_BUFFER: usize = 1024;

/// Longest frame from an unauthenticated client: a Hello with its token.
const HANDSHAKE_FRAME: usize = 4096;

/// Timeout of the TLS handshake, and of the Hello after it.
pub(crate) const HANDSHAKE_TIME: Duration = Duration::from_secs(5);

/// Timeout for sending the reason before a close. A reason fits into any fresh buffer.
const REASON_TIME: Duration = Duration::from_secs(1);

/// Why a connection ended before its client closed it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    #[error("the client closed before its reply was complete")]
    Gone,
    /// The client's bytes are not valid frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("too many large messages arrived at once")]
    Crowded,
    #[error("the client did not authenticate within {HANDSHAKE_TIME:?}")]
    Late,
    #[error("the handshake failed: {0}")]
    NotOpened(#[source] io::Error),
    /// The client's access was revoked.
    #[error("{}", .0.message)]
    Cut(Status),
    #[error("cannot write a reply")]
    Write(#[source] io::Error),
}

/// The next input of a connection.
enum Next {
    Request(Box<ClientMessage>),
    /// A frame that is not a message; the connection stays open.
    Malformed(FrameError),
    /// A frame above the limit; the connection ends.
    TooLarge(TooLarge),
    /// A frame beyond the byte budget; the connection ends.
    Crowded(Status),
    /// The handshake took too long; the connection ends.
    Late,
    /// The client's access was revoked.
    Cut(Status),
    End,
}

/// Answers a connection's requests until its client closes it, or until
/// `shutdown` if no request is waiting.
///
/// While the server's role is [`Role::Stranger`], the connection accepts only small frames
/// and is closed after [`HANDSHAKE_TIME`].
pub(crate) async fn run<S, R, W>(
    server: S,
    reader: R,
    writer: W,
    place: ConnectionSlot,
    shutdown: CancellationToken,
) -> Result<(), Ended>
where
    S: Server,
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let server = Arc::new(server);
    let mut connection = Connection::new(reader, writer, place);
    if server.role() == Role::Stranger {
        connection.handshake = Some(Box::pin(sleep(HANDSHAKE_TIME)));
    } else {
        connection.authenticated(server.ended());
    }
    let mut cancelled = pin!(shutdown.cancelled());
    loop {
        connection.release_buffers();
        let next = poll_fn(|cx| connection.poll_next(cancelled.as_mut(), cx)).await?;
        let reply = match next {
            Next::Request(_) if shutdown.is_cancelled() => refusal(Status::shutting_down(
                "the daemon is shutting down; try again later",
            )),
            Next::Request(request) => Arc::clone(&server).dispatch(*request),
            Next::Malformed(error) => refusal(Status::bad_request(error.to_string())),
            Next::TooLarge(error) => {
                let reply = refusal(Status::too_large(error.to_string()));
                connection.answer(reply).await?;
                return Err(FrameError::TooLarge(error).into());
            }
            Next::Crowded(status) => {
                connection.answer(refusal(status)).await?;
                return Err(Ended::Crowded);
            }
            Next::Late => return Err(connection.late().await),
            Next::Cut(status) => return Err(connection.cut_off(status).await),
            Next::End => return Ok(()),
        };
        match connection.answer(reply).await {
            Err(Ended::Late) => return Err(connection.late().await),
            Err(Ended::Cut(status)) => return Err(connection.cut_off(status).await),
            answered => answered?,
        }
        if connection.handshake.is_some() && server.role() > Role::Stranger {
            connection.authenticated(server.ended());
        }
    }
}

fn too_late() -> Reply {
    refusal(Status::unauthorized(format!(
        "not authenticated within {} s: send `hello` with a token first",
        HANDSHAKE_TIME.as_secs()
    )))
}

fn refusal(status: Status) -> Reply {
    Reply::one(std::future::ready(status.into()))
}

struct Connection<R, W> {
    reader: R,
    writer: W,
    input: BytesMut,
    output: BytesMut,
    /// The client closed its writing half.
    ended: bool,
    place: ConnectionSlot,
    /// The deadline for the Hello; `None` once the client is authenticated.
    handshake: Option<Pin<Box<Sleep>>>,
    /// Resolves when the client's access is revoked.
    cut: Option<Pin<Box<dyn Future<Output = Status> + Send>>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Connection<R, W> {
    fn new(reader: R, writer: W, place: ConnectionSlot) -> Self {
        Self {
            reader,
            writer,
            input: BytesMut::new(),
            output: BytesMut::new(),
            ended: false,
            place,
            handshake: None,
            cut: None,
        }
    }

    async fn late(&mut self) -> Ended {
        self.send_reason(too_late()).await;
        Ended::Late
    }

    async fn cut_off(&mut self, status: Status) -> Ended {
        self.send_reason(refusal(status.clone())).await;
        Ended::Cut(status)
    }

    /// Marks the client as authenticated until `ended` resolves.
    fn authenticated(&mut self, ended: impl Future<Output = Status> + Send + 'static) {
        self.handshake = None;
        self.cut = Some(Box::pin(ended));
    }

    fn release_buffers(&mut self) {
        if self.place.holds_bytes() {
            // A slice would keep the memory of the whole large frame.
            self.input = BytesMut::from(&self.input[..]);
            let shrunk = self.place.hold(self.input.len());
            debug_assert!(shrunk.is_ok(), "less is never refused");
        }
        for buffer in [&mut self.input, &mut self.output] {
            if buffer.is_empty() && buffer.capacity() > IDLE_BUFFER {
                *buffer = BytesMut::new();
            }
        }
    }

    /// Waits for the next request. Requests that arrived before the shutdown are still
    /// answered.
    fn poll_next(
        &mut self,
        cancelled: Pin<&mut WaitForCancellationFuture<'_>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Next, FrameError>> {
        loop {
            if self.poll_late(cx).is_ready() {
                return Poll::Ready(Ok(Next::Late));
            }
            if let Poll::Ready(status) = self.poll_cut(cx) {
                return Poll::Ready(Ok(Next::Cut(status)));
            }
            let limit = match self.handshake {
                Some(_) => HANDSHAKE_FRAME,
                None => codec::MAX_FRAME,
            };
            match codec::decode_within::<ClientMessage>(&mut self.input, limit) {
                Ok(Some(request)) => return Poll::Ready(Ok(Next::Request(Box::new(request)))),
                Ok(None) => {}
                Err(FrameError::TooLarge(error)) => {
                    return Poll::Ready(Ok(Next::TooLarge(error)));
                }
                Err(error) => return Poll::Ready(Ok(Next::Malformed(error))),
            }
            if self.ended {
                let end = codec::end_of_file(&self.input);
                let clean = matches!(end, FrameError::Closed);
                return Poll::Ready(if clean { Ok(Next::End) } else { Err(end) });
            }
            match poll_input(&mut self.reader, &mut self.input, cx)? {
                Poll::Ready(Input::Bytes) => {
                    if let Err(status) = self.place.hold(self.input.len()) {
                        return Poll::Ready(Ok(Next::Crowded(status)));
                    }
                }
                Poll::Ready(Input::End) => self.ended = true,
                Poll::Pending => return cancelled.poll(cx).map(|()| Ok(Next::End)),
            }
        }
    }

    /// Ready when the deadline for the Hello has passed.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.handshake {
            Some(handshake) => handshake.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }

    /// Ready when the client's access is revoked.
    fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        match &mut self.cut {
            Some(cut) => cut.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }

    /// Sends the reason before the connection is closed, if the client reads.
    async fn send_reason(&mut self, reply: Reply) {
        (self.handshake, self.cut) = (None, None);
        if !self.output.is_empty() {
            // The client stopped reading in the middle of another message.
            return;
        }
        let _ = timeout(REASON_TIME, self.answer(reply)).await;
    }
}

#[cfg(test)]
mod tests;
