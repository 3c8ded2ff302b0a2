//! One connection: a request, its reply, the next request (WIRE-4).
//!
//! Invariants: a client that does not read costs the bounds of its buffers and stops
//! nobody but itself; an idle connection holds next to no buffer, and not for ever;
//! what has come of a request is accounted for among all.

mod reply;

use crate::crowd::Place;
use crate::half::{Input, ReadHalf, poll_input};
use bytes::BytesMut;
use crabtalk_proto::codec::{self, FrameError};
use crabtalk_proto::{ClientMessage, Reply, Role, Server, Status, TooLarge};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// Buffers larger than this are given back when a connection goes idle, so
/// that one big frame does not cost its memory for the connection's life.
const IDLE_BUFFER: usize = 1024;

/// Longest frame of a client that has not said yet who it is: a Hello with its
/// token, and nothing that could be stored here.
const HANDSHAKE_FRAME: usize = 4096;

/// How long it has for that.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);

/// How long writing a last word may take. It fits into any fresh buffer.
const LAST_WORD_TIME: Duration = Duration::from_secs(1);

/// How long a connection may be without a byte and without a reply: whoever
/// comes back after that connects again, and a descriptor that somebody forgot
/// does not stay for ever.
const IDLE_TIME: Duration = Duration::from_secs(60 * 60);

/// Why a connection ended before its client closed it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    #[error("the client went away before its reply was complete")]
    Gone,
    /// What the client sent cannot be read on.
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("too many large messages were arriving at once")]
    Crowded,
    #[error("a client did not say within {HANDSHAKE_TIME:?} who it is")]
    Late,
    #[error("too many clients had not said who they are")]
    Refused,
    /// The client may be connected no longer.
    #[error("{}", .0.message)]
    Cut(Status),
    #[error("a reply could not be written")]
    Write(#[source] io::Error),
}

/// What comes next on a connection.
enum Next {
    Request(Box<ClientMessage>),
    /// A request of a variant that is not known, with its number.
    Unknown(Option<u32>),
    /// A frame that is no message; the connection lives.
    Malformed(FrameError),
    /// A frame above the limit; the connection ends.
    TooLarge(TooLarge),
    /// A frame for which there is no room; the connection ends.
    Crowded(Status),
    /// The handshake took too long; the connection ends.
    Late,
    /// The client may be connected no longer.
    Cut(Status),
    End,
}

/// Answers a connection's requests until its client closes it, or until
/// `shutdown` and there is nothing left to answer.
///
/// A listener that wants to know who connects gives servers whose role is
/// [`Role::Stranger`]: until one has a role, the connection takes small frames
/// only, and not for long.
pub(crate) async fn run<S, R, W>(
    server: S,
    reader: R,
    writer: W,
    place: Place,
    shutdown: CancellationToken,
) -> Result<(), Ended>
where
    S: Server,
    R: ReadHalf,
    W: AsyncWrite + Unpin + Send,
{
    let server = Arc::new(server);
    let mut connection = Connection::new(reader, writer, place);
    if server.role() == Role::Stranger {
        if let Err(status) = connection.stranger() {
            connection.last_word(refusal(status)).await;
            return Err(Ended::Refused);
        }
    } else {
        connection.known(server.ended());
    }
    let mut cancelled = pin!(shutdown.cancelled());
    loop {
        connection.release_buffers();
        connection.last = Instant::now();
        let next = poll_fn(|cx| connection.poll_next(cancelled.as_mut(), cx)).await?;
        let reply = match next {
            Next::Request(_) if shutdown.is_cancelled() => refusal(Status::shutting_down(
                "the daemon is shutting down; try again later",
            )),
            Next::Request(request) => Arc::clone(&server).dispatch(*request),
            Next::Unknown(number) => server.dispatch_unknown(number),
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
            connection.known(server.ended());
        }
    }
}

fn too_late() -> Reply {
    refusal(Status::unauthorized(format!(
        "nobody said within {} s who this is; begin with `hello` and a token",
        HANDSHAKE_TIME.as_secs()
    )))
}

fn refusal(status: Status) -> Reply {
    Reply::one(std::future::ready(status.into()))
}

struct Connection<R: ReadHalf, W> {
    reader: R,
    writer: W,
    input: BytesMut,
    output: BytesMut,
    /// The client sends no more.
    ended: bool,
    place: Place,
    /// Until when the client has to say who it is; `None` once it has.
    handshake: Option<Pin<Box<Sleep>>>,
    /// Resolves when the client may be connected no longer.
    cut: Option<Pin<Box<dyn Future<Output = Status> + Send>>>,
    /// When something last came or went.
    last: Instant,
    /// Runs out when the connection may have been idle for too long; made
    /// when it first waits, and looked at again only when it has run out.
    idle: Option<Pin<Box<Sleep>>>,
}

impl<R: ReadHalf, W: AsyncWrite + Unpin> Connection<R, W> {
    fn new(reader: R, writer: W, place: Place) -> Self {
        Self {
            reader,
            writer,
            input: BytesMut::new(),
            output: BytesMut::new(),
            ended: false,
            place,
            handshake: None,
            cut: None,
            last: Instant::now(),
            idle: None,
        }
    }

    /// The client has yet to show who it is, and not for long.
    fn stranger(&mut self) -> Result<(), Status> {
        self.place.is_strangers()?;
        self.handshake = Some(Box::pin(sleep(HANDSHAKE_TIME)));
        Ok(())
    }

    /// The client has not said in time who it is.
    async fn late(&mut self) -> Ended {
        self.last_word(too_late()).await;
        Ended::Late
    }

    /// The client may be connected no longer.
    async fn cut_off(&mut self, status: Status) -> Ended {
        self.last_word(refusal(status.clone())).await;
        Ended::Cut(status)
    }

    /// The client has shown who it is, until `ended`.
    fn known(&mut self, ended: impl Future<Output = Status> + Send + 'static) {
        self.handshake = None;
        self.cut = Some(Box::pin(ended));
        self.place.known();
    }

    fn release_buffers(&mut self) {
        if self.place.holds_bytes() {
            // What follows a large frame would keep the whole of its memory.
            self.input = BytesMut::from(&self.input[..]);
            let given_back = self.place.hold(self.input.len());
            debug_assert!(given_back.is_ok(), "less is never refused");
        }
        for buffer in [&mut self.input, &mut self.output] {
            if buffer.is_empty() && buffer.capacity() > IDLE_BUFFER {
                *buffer = BytesMut::new();
            }
        }
    }

    /// Waits for the next request. During shutdown what has come already is
    /// still handed out, so that it is answered.
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
            let number = codec::first_field(&self.input);
            let limit = match self.handshake {
                Some(_) => HANDSHAKE_FRAME,
                None => codec::MAX_FRAME,
            };
            match codec::decode_within::<ClientMessage>(&mut self.input, limit) {
                Ok(Some(ClientMessage { msg: None })) => {
                    return Poll::Ready(Ok(Next::Unknown(number)));
                }
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
                    self.last = Instant::now();
                    if let Err(status) = self.place.hold(self.input.len()) {
                        return Poll::Ready(Ok(Next::Crowded(status)));
                    }
                }
                Poll::Ready(Input::End) => self.ended = true,
                Poll::Pending => {
                    if cancelled.poll(cx).is_pending() {
                        ready!(self.poll_idle(cx));
                        tracing::debug!("a connection was closed: it was idle for {IDLE_TIME:?}");
                    }
                    return Poll::Ready(Ok(Next::End));
                }
            }
        }
    }

    /// Ready when a client has not said in time who it is.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.handshake {
            Some(handshake) => handshake.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }

    /// Ready when the client may be connected no longer.
    fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        match &mut self.cut {
            Some(cut) => cut.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }

    /// Says why the connection ends. A client that does not take it goes
    /// without.
    async fn last_word(&mut self, reply: Reply) {
        (self.handshake, self.cut) = (None, None);
        if !self.output.is_empty() {
            // It stopped reading in the middle of another.
            return;
        }
        let _ = timeout(LAST_WORD_TIME, self.answer(reply)).await;
    }

    /// Ready when nothing has come for too long.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let until = self.last + IDLE_TIME;
        let idle = self
            .idle
            .get_or_insert_with(|| Box::pin(sleep_until(until)));
        loop {
            ready!(idle.as_mut().poll(cx));
            if Instant::now() >= until {
                return Poll::Ready(());
            }
            idle.as_mut().reset(until);
        }
    }
}

#[cfg(test)]
mod tests;
