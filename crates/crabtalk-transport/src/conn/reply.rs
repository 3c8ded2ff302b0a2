//! Sends a reply at the pace of its client.
//!
//! Invariants: at most [`WRITE_BUFFER`] bytes of a reply are buffered, and at most
//! [`READ_AHEAD`] bytes of the next request are read ahead; the reply is dropped as soon
//! as its client closes.

use super::{Connection, Ended};
use crate::input::{Input, poll_input};
use bytes::Buf;
use crabtalk_proto::{
    Reply, ServerMessage, Status, StreamEnd, StreamEvent, TooLarge, code, codec, server_message,
    stream_event,
};
use futures_core::Stream;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes read ahead while a reply is sent: enough for pipelined requests, not for a flood.
const READ_AHEAD: usize = 64 * 1024;

/// Bytes of a reply in the buffer: one write. A single
/// message may exceed it.
const WRITE_BUFFER: usize = 64 * 1024;

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Connection<R, W> {
    /// Sends a reply to its end, or drops it when the client has closed.
    pub(super) async fn answer(&mut self, mut reply: Reply) -> Result<(), Ended> {
        let mut progress = Progress {
            done: false,
            yielded: false,
        };
        poll_fn(|cx| self.poll_answer(&mut reply, &mut progress, cx)).await
    }

    fn poll_answer(
        &mut self,
        reply: &mut Reply,
        progress: &mut Progress,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Ended>> {
        // Poll the reply first: the request begins even if its client has already closed.
        self.fill(reply, &mut progress.done, cx);
        if self.poll_late(cx).is_ready() {
            return Poll::Ready(Err(Ended::Late));
        }
        if let Poll::Ready(status) = self.poll_cut(cx) {
            *reply = Reply::Done;
            return Poll::Ready(Err(Ended::Cut(status)));
        }
        if !progress.done && self.poll_gone(cx).is_ready() {
            return Poll::Ready(Err(Ended::Gone));
        }
        loop {
            if self.output.is_empty() {
                if !progress.done {
                    return Poll::Pending;
                }
                return Pin::new(&mut self.writer).poll_flush(cx).map_err(ended_by);
            }
            // The reply's source yields one piece at a time. Polling it once more before the
            // write joins many pieces.
            let full = self.output.len() >= WRITE_BUFFER;
            if !progress.yielded && !progress.done && !full {
                progress.yielded = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let written = ready!(Pin::new(&mut self.writer).poll_write(cx, &self.output))
                .map_err(ended_by)?;
            if written == 0 {
                return Poll::Ready(Err(Ended::Gone));
            }
            self.output.advance(written);
            if self.output.is_empty() {
                self.output.clear();
                progress.yielded = false;
                self.fill(reply, &mut progress.done, cx);
            }
        }
    }

    /// Encodes the ready messages of a reply, up to the buffer's limit.
    fn fill(&mut self, reply: &mut Reply, done: &mut bool, cx: &mut Context<'_>) {
        while !*done && self.output.len() < WRITE_BUFFER {
            match Pin::new(&mut *reply).poll_next(cx) {
                Poll::Ready(Some(message)) => {
                    if let Err(error) = codec::encode(&message, &mut self.output) {
                        let instead = too_large(&message, error);
                        codec::encode(&instead, &mut self.output).expect("a short message fits");
                        *done = true;
                    }
                }
                Poll::Ready(None) => *done = true,
                Poll::Pending => return,
            }
            if *done {
                // Releases the resources of the reply before its last byte is read.
                *reply = Reply::Done;
            }
        }
    }

    /// Ready when the client has closed. Reads ahead within [`READ_AHEAD`].
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.ended {
                return Poll::Ready(());
            }
            let crowded = self.place.hold(self.input.len()).is_err();
            if crowded || self.input.len() >= READ_AHEAD {
                // A failing write will reveal that the client has closed.
                return Poll::Pending;
            }
            match ready!(poll_input(&mut self.reader, &mut self.input, cx)) {
                Ok(Input::Bytes) => {}
                Ok(Input::End) => self.ended = true,
                Err(_) => return Poll::Ready(()),
            }
        }
    }
}

/// The progress of a reply.
struct Progress {
    /// Whether the whole reply is encoded.
    done: bool,
    /// Whether the source was polled again since the buffer was last empty.
    yielded: bool,
}

fn ended_by(error: io::Error) -> Ended {
    let gone = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
    if gone.contains(&error.kind()) {
        Ended::Gone
    } else {
        Ended::Write(error)
    }
}

/// Replaces a message above the limit. A run that has started must still end with an
/// End (WIRE-6).
fn too_large(message: &ServerMessage, error: TooLarge) -> ServerMessage {
    let text = format!("the reply cannot be sent: {error}");
    match &message.msg {
        Some(server_message::Msg::Stream(event))
            if !matches!(event.event, Some(stream_event::Event::Start(_))) =>
        {
            let end = StreamEnd {
                error: text,
                code: code::INTERNAL,
                ..StreamEnd::default()
            };
            StreamEvent {
                event: Some(stream_event::Event::End(end)),
                seq: event.seq,
            }
            .into()
        }
        _ => Status::internal(text).into(),
    }
}
